//! ValidatingWebhookConfigurations. They are stored, and not called yet.

use super::STRATEGY;
use super::webhook;
use crate::kinds::shared::json::each_mut;
use crate::kinds::{NameRule, Rules};
use crate::table::Cell;

/// The rules of ValidatingWebhookConfigurations.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .defaulted(|object| each_mut(object, "webhooks", webhook::default))
    .with_strategy(STRATEGY)
    .printed(&[Cell::Name, Cell::Count("/webhooks"), Cell::Age]);

//! MutatingWebhookConfigurations. They are stored, and not called yet.

use super::STRATEGY;
use super::webhook;
use crate::kinds::shared::json::{default_to, each_mut};
use crate::kinds::{NameRule, Rules};
use crate::table::Cell;

/// The rules of MutatingWebhookConfigurations.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .defaulted(|object| {
        each_mut(object, "webhooks", |it| {
            webhook::default(it);
            default_to(it, "reinvocationPolicy", "Never");
        });
    })
    .with_strategy(STRATEGY)
    .printed(&[Cell::Name, Cell::Count("/webhooks"), Cell::Age]);

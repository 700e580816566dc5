//! MutatingWebhookConfigurations. Follows `pkg/apis/admissionregistration/validation/validation.go`.

use super::webhook;
use super::{EXEMPT, STRATEGY};
use crate::kinds::shared::json::{default_to, each_mut};
use crate::kinds::{NameRule, Rules};
use crate::table::Cell;

/// The rules of MutatingWebhookConfigurations.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .rechecked()
    .defaulted(|object| {
        each_mut(object, "webhooks", |it| {
            webhook::default(it);
            default_to(it, "reinvocationPolicy", "Never");
        });
    })
    .validated(webhook::validate)
    .with_strategy(STRATEGY)
    .admitted(EXEMPT)
    .after_write(|registry, _| registry.webhooks_changed())
    .after_delete(|registry, _| registry.webhooks_changed())
    .printed(&[Cell::Name, Cell::Count("/webhooks"), Cell::Age]);

//! ResourceClaimTemplates: `pkg/apis/resource/v1/defaults.go`.

use super::resource_claim::device_requests;
use crate::kinds::shared::json::object_mut;
use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::Strategy;
use crate::table::Cell;

/// The rules of ResourceClaimTemplates.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .defaulted(|object| {
        if let Some(spec) = object_mut(object, "spec").and_then(|spec| object_mut(spec, "spec")) {
            device_requests(spec);
        }
    })
    .with_strategy(Strategy::RETURNS_DELETED)
    .printed(&[Cell::Name, Cell::Age]);

//! Leases: `pkg/apis/coordination/validation/validation.go`.

use crate::field::{FieldError, Path};
use crate::kinds::shared::check::{self, forbid_if};
use crate::kinds::shared::json::{is_empty, is_set, number};
use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::Strategy;
use crate::table::Cell;

/// The rules of Leases.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .validated(|new, _, errors| {
        let spec = &new["spec"];
        let path = Path::new("spec");
        if is_set(&spec["leaseDurationSeconds"]) {
            let seconds = number(&spec["leaseDurationSeconds"]);
            let at = path.child("leaseDurationSeconds");
            if seconds <= 0 {
                errors.push(FieldError::invalid(&at, seconds, "must be greater than 0"));
            }
        }
        check::non_negative(&spec["leaseTransitions"], &path.child("leaseTransitions"), errors);
        forbid_if(
            !is_empty(&spec["preferredHolder"]) && is_empty(&spec["strategy"]),
            "may only be specified if `strategy` is defined",
            &path.child("preferredHolder"),
            errors,
        );
    })
    .with_strategy(Strategy {
        create_on_update: true,
        unconditional_update: false,
        has_short_history: true,
        ..Strategy::DEFAULT
    })
    .printed(&[Cell::Name, Cell::Text("/spec/holderIdentity"), Cell::Age]);

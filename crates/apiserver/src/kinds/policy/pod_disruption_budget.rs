//! PodDisruptionBudgets: `pkg/apis/policy/validation/validation.go`.

use crate::field::{FieldError, Path};
use crate::kinds::shared::check::{self, one_of_if_set};
use crate::kinds::shared::go;
use crate::kinds::shared::json::is_set;
use crate::kinds::shared::meta::validate_meta_update;
use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::Strategy;
use crate::table::{Cell, cell};

/// The rules of PodDisruptionBudgets.
pub(crate) static RULES: Rules = Rules::named(NameRule::PathSegment)
    .validated(|new, _, errors| {
        let spec = &new["spec"];
        let path = Path::new("spec");
        if is_set(&spec["minAvailable"]) && is_set(&spec["maxUnavailable"]) {
            let shown = go::show("PodDisruptionBudgetSpec", spec);
            errors.push(FieldError::invalid(&path, shown, "minAvailable and maxUnavailable cannot be both set"));
        }
        for field in ["minAvailable", "maxUnavailable"] {
            if is_set(&spec[field]) {
                check::number_or_percent(&spec[field], &path.child(field), errors);
                check::percent_at_most_100(&spec[field], &path.child(field), errors);
            }
        }
        check::label_selector(&spec["selector"], &path.child("selector"), errors);
        one_of_if_set(
            &spec["unhealthyPodEvictionPolicy"],
            &["AlwaysAllow", "IfHealthyBudget"],
            &path.child("unhealthyPodEvictionPolicy"),
            errors,
        );
    })
    .status_validated(|new, old, errors| {
        validate_meta_update(new, old, errors);
        for field in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
            check::non_negative(&new["status"][field], &Path::new("status").child(field), errors);
        }
    })
    .with_strategy(Strategy { unconditional_update: false, ..Strategy::GENERATION })
    .printed(&[
        Cell::Name,
        Cell::Made(|row| row.at("/spec/minAvailable").map_or_else(|| "N/A".to_owned(), cell::int_or_string)),
        Cell::Made(|row| row.at("/spec/maxUnavailable").map_or_else(|| "N/A".to_owned(), cell::int_or_string)),
        Cell::Int("/status/disruptionsAllowed"),
        Cell::Age,
    ]);

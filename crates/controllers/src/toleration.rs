//! Pure: whether a toleration matches a taint.
//!
//! Follows `ToleratesTaint` in `k8s.io/api` 0.37.1.

use steersman_model::core::Taint;
use steersman_model::core::pod::Toleration;

/// Whether tolerations may compare numbers (`Lt`, `Gt`): the gate `TaintTolerationComparisonOperators`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Comparison {
    On,
    #[default]
    Off,
}

// === impl Comparison ===

impl From<bool> for Comparison {
    fn from(is_on: bool) -> Self {
        if is_on { Self::On } else { Self::Off }
    }
}

/// Whether a toleration matches a taint.
pub(crate) fn tolerates(toleration: &Toleration, taint: &Taint, comparison: Comparison) -> bool {
    if !toleration.effect.is_empty() && toleration.effect != taint.effect {
        return false;
    }
    if !toleration.key.is_empty() && toleration.key != taint.key {
        return false;
    }
    let numbers = || match comparison {
        Comparison::On => number(&taint.value).zip(number(&toleration.value)),
        Comparison::Off => None,
    };
    match &*toleration.operator {
        "" | "Equal" => toleration.value == taint.value,
        "Exists" => true,
        "Lt" => numbers().is_some_and(|(taint, bound)| taint < bound),
        "Gt" => numbers().is_some_and(|(taint, bound)| taint > bound),
        _ => false,
    }
}

/// Parses a decimal integer in its only form: without a plus sign and leading zeros.
fn number(text: &str) -> Option<i64> {
    text.parse().ok().filter(|number: &i64| number.to_string() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toleration_matches_by_effect_key_and_operator() {
        let toleration = |key: &str, operator: &str, value: &str, effect: &str| Toleration {
            key: key.into(),
            operator: operator.into(),
            value: value.into(),
            effect: effect.into(),
            toleration_seconds: None,
        };
        let taint = |value: &str| Taint {
            key: "k".into(),
            value: value.into(),
            effect: "NoExecute".into(),
            ..Taint::default()
        };
        let check = |toleration: Toleration, value: &str, want: bool| {
            assert_eq!(tolerates(&toleration, &taint(value), Comparison::On), want, "{toleration:?} {value:?}");
        };
        check(toleration("k", "Exists", "", "NoExecute"), "v", true);
        check(toleration("", "Exists", "", ""), "v", true);
        check(toleration("k", "Exists", "", "NoSchedule"), "v", false);
        check(toleration("other", "Exists", "", ""), "v", false);
        check(toleration("k", "", "v", ""), "v", true);
        check(toleration("k", "Equal", "w", ""), "v", false);
        check(toleration("k", "Lt", "5", ""), "4", true);
        check(toleration("k", "Lt", "5", ""), "5", false);
        check(toleration("k", "Gt", "-5", ""), "-4", true);
        check(toleration("k", "Gt", "5", ""), "06", false);
        check(toleration("k", "Gt", "+5", ""), "6", false);
        check(toleration("k", "NotIn", "v", ""), "w", false);
        assert!(!tolerates(&toleration("k", "Lt", "5", ""), &taint("4"), Comparison::Off));
    }
}

//! The scopes of a quota: which objects it counts.

use serde::Deserialize;

use crate::Istr;
use crate::null::as_default;

/// A scope of a quota, and how an object is in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Requirement {
    /// `BestEffort`, `PriorityClass`, …
    #[serde(deserialize_with = "as_default")]
    pub scope_name: Istr,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    #[serde(deserialize_with = "as_default")]
    pub operator: Istr,
    /// The values, for `In` and `NotIn`.
    #[serde(deserialize_with = "as_default")]
    pub values: Vec<Istr>,
}

// === impl Requirement ===

impl Requirement {
    /// Returns the scope of a quota that is given by name alone.
    #[must_use]
    pub fn exists(scope: &Istr) -> Self {
        Self { scope_name: scope.clone(), operator: "Exists".into(), values: Vec::new() }
    }

    /// Whether a value, or the absence of one, meets the operator. An unknown operator is never met.
    #[must_use]
    pub fn admits(&self, value: Option<&str>) -> bool {
        let is_among = |value: &str| self.values.iter().any(|one| *one == *value);
        match &*self.operator {
            "In" => value.is_some_and(is_among),
            "NotIn" => !value.is_some_and(is_among),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
    }
}

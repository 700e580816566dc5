//! Selectors as objects declare them.

use serde::{Deserialize, Serialize};

use super::{Operator, Requirement, Selector};
use crate::validation::{FieldError, FieldErrors, label_value, qualified_name};
use crate::{Istr, StringMap, null};

/// `metav1.LabelSelector`: a selector as an object declares it, not yet validated.
///
/// ```
/// use steersman_base::{LabelSelector, StringMap};
///
/// let declared: LabelSelector = serde_json::from_str(
///     r#"{"matchLabels":{"app":"web"},"matchExpressions":[{"key":"tier","operator":"Exists"}]}"#)?;
/// let selector = declared.compile().expect("the selector is valid");
/// assert_eq!(selector.to_string(), "app=web,tier");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels and the values they must have.
    #[serde(default, deserialize_with = "null::as_default", skip_serializing_if = "StringMap::is_empty")]
    pub match_labels: StringMap,
    /// Further requirements.
    #[serde(default, deserialize_with = "null::as_default", skip_serializing_if = "<[_]>::is_empty")]
    pub match_expressions: Box<[LabelSelectorRequirement]>,
}

/// `metav1.LabelSelectorRequirement`: one requirement as declared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LabelSelectorRequirement {
    /// The label it is about.
    #[serde(default)]
    pub key: Istr,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    #[serde(default)]
    pub operator: Istr,
    /// Values, for `In` and `NotIn`.
    #[serde(default, deserialize_with = "null::as_default", skip_serializing_if = "<[_]>::is_empty")]
    pub values: Box<[Istr]>,
}

// === impl LabelSelector ===

impl LabelSelector {
    /// Whether it restricts nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }

    /// The selector it declares.
    ///
    /// # Errors
    /// If a key, operator or value is invalid; the error names each field, from `matchLabels` or `matchExpressions` on.
    pub fn compile(&self) -> Result<Selector, FieldErrors> {
        FieldErrors::check(self.validate(""))?;
        let labels = self.match_labels.iter().map(|(key, value)| (key, Operator::Equals(value.clone())));
        let expressions = self.match_expressions.iter().filter_map(|expression| {
            let operator = match expression.operator.as_str() {
                "In" => Operator::In(expression.values.clone()),
                "NotIn" => Operator::NotIn(expression.values.clone()),
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                _ => return None, // `validate` accepts no other
            };
            Some((&expression.key, operator))
        });
        let requirement = |(key, operator): (&Istr, Operator)| Requirement::unchecked(key.clone(), operator);
        Ok(Selector::new(labels.chain(expressions).map(requirement)))
    }

    /// All that is wrong with it, as the API server reports it; `field` is the path of the field that holds it.
    ///
    /// Follows `ValidateLabelSelector` of Kubernetes 1.37.
    #[must_use]
    pub fn validate(&self, field: &str) -> Vec<FieldError> {
        let child = |name: &str| if field.is_empty() { name.to_owned() } else { format!("{field}.{name}") };
        let mut errors = Vec::new();
        for (key, value) in self.match_labels.iter() {
            let problems = qualified_name(key).into_iter().map(|problem| (key, problem));
            for (bad, problem) in problems.chain(label_value(value).into_iter().map(|problem| (value, problem))) {
                errors.push(FieldError::invalid(child("matchLabels"), bad.as_str(), problem));
            }
        }
        for (at, expression) in self.match_expressions.iter().enumerate() {
            expression.validate(&child(&format!("matchExpressions[{at}]")), &mut errors);
        }
        errors
    }
}

impl From<StringMap> for LabelSelector {
    fn from(match_labels: StringMap) -> Self {
        Self { match_labels, ..Self::default() }
    }
}

// === impl LabelSelectorRequirement ===

impl LabelSelectorRequirement {
    fn validate(&self, field: &str, errors: &mut Vec<FieldError>) {
        match self.operator.as_str() {
            "In" | "NotIn" if self.values.is_empty() => errors.push(FieldError::required(
                format!("{field}.values"),
                "must be specified when `operator` is 'In' or 'NotIn'",
            )),
            "Exists" | "DoesNotExist" if !self.values.is_empty() => errors.push(FieldError::forbidden(
                format!("{field}.values"),
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            )),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                errors.push(FieldError::invalid(format!("{field}.operator"), other, "not a valid selector operator"));
            }
        }
        for problem in qualified_name(&self.key) {
            errors.push(FieldError::invalid(format!("{field}.key"), self.key.as_str(), problem));
        }
        for (at, value) in self.values.iter().enumerate() {
            for problem in label_value(value) {
                errors.push(FieldError::invalid(format!("{field}.values[{at}]"), value.as_str(), problem));
            }
        }
    }
}

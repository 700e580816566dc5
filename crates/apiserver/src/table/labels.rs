//! Labels and label selectors as text.

use serde_json::Value;

/// The text for no labels.
const NONE: &str = "<none>";

/// Returns labels as `a=b,c=d`.
pub(crate) fn labels(labels: Option<&Value>) -> String {
    let pairs: Vec<String> = labels
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    or_none(pairs.join(","))
}

/// Returns a label selector as `a=b,c in (d,e),!f`, ordered by key.
pub(crate) fn selector(selector: Option<&Value>) -> String {
    or_none(raw_selector(selector))
}

/// Returns a label selector like [`selector`], and an empty text for one without requirements.
pub(crate) fn raw_selector(selector: Option<&Value>) -> String {
    let Some(selector) = selector else { return String::new() };
    let equal = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let equal = equal.map(|(key, value)| (key.as_str(), format!("{key}={}", value.as_str().unwrap_or_default())));
    let expressions = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
    let expressions = expressions.map(|expression| {
        let text = |name: &str| expression.get(name).and_then(Value::as_str).unwrap_or_default();
        let key = text("key");
        let mut values: Vec<&str> = expression
            .get("values")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        values.sort_unstable();
        let values = values.join(",");
        let requirement = match text("operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        (key, requirement)
    });
    let mut requirements: Vec<(&str, String)> = equal.chain(expressions).collect();
    requirements.sort_by(|left, right| left.0.cmp(right.0));
    requirements.into_iter().map(|(_, requirement)| requirement).collect::<Vec<_>>().join(",")
}

fn or_none(text: String) -> String {
    if text.is_empty() { NONE.to_owned() } else { text }
}

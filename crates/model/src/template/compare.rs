//! Whether two pod specs ask for the same.

use serde_json::{Map, Value};
use steersman_base::Quantity;

/// Where a map is empty or absent all the same. Elsewhere an empty object says something: an empty label selector
/// matches everything, an absent one nothing.
const MAPS: [&str; 12] = [
    "annotations",
    "labels",
    "limits",
    "matchLabels",
    "metadata",
    "nodeSelector",
    "options",
    "overhead",
    "requests",
    "resources",
    "spec",
    "volumeAttributes",
];

/// Where an empty text says something: no class at all, and not the default one.
const TEXTS_THAT_MAY_BE_EMPTY: [&str; 2] = ["storageClassName", "volumeAttributesClassName"];

/// Whether two JSON texts of a pod's spec ask for the same pod.
///
/// Follows what upstream's semantic comparison makes of the decoded types: the order of fields does not count, a list,
/// map or text may as well be absent as empty, and quantities are equal by value.
pub(super) fn same_spec(left: &str, right: &str) -> bool {
    let parse = |text: &str| if text.is_empty() { Ok(Value::Null) } else { serde_json::from_str(text) };
    match (parse(left), parse(right)) {
        (Ok(left), Ok(right)) => same("spec", "", &left, &right),
        _ => left == right,
    }
}

/// Whether two values of the field `name` are the same; `parent` is the field that holds the object they are in.
fn same(name: &str, parent: &str, left: &Value, right: &Value) -> bool {
    if is_absent(name, left) || is_absent(name, right) {
        return is_absent(name, left) && is_absent(name, right);
    }
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => same_object(name, parent, left, right),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(name, parent, left, right))
        }
        (left, right) => left == right || (is_quantity(name, parent) && same_quantity(left, right)),
    }
}

fn same_object(name: &str, parent: &str, left: &Map<String, Value>, right: &Map<String, Value>) -> bool {
    // The entries of `resources.limits` are quantities, whatever their names.
    let inner = if matches!(name, "limits" | "requests") && parent == "resources" { "resources.*" } else { name };
    let field = |object: &Map<String, Value>, key: &str| object.get(key).cloned().unwrap_or(Value::Null);
    let mut keys: Vec<&String> = left.keys().chain(right.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter().all(|key| match (left.get(key), right.get(key)) {
        (Some(left), Some(right)) => same(key, inner, left, right),
        _ => same(key, inner, &field(left, key), &field(right, key)),
    })
}

fn is_absent(name: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::String(text) => text.is_empty() && !TEXTS_THAT_MAY_BE_EMPTY.contains(&name),
        Value::Object(object) => MAPS.contains(&name) && object.iter().all(|(name, value)| is_absent(name, value)),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn is_quantity(name: &str, parent: &str) -> bool {
    matches!(parent, "resources.*" | "overhead")
        || (name == "sizeLimit" && parent == "emptyDir")
        || (name == "divisor" && parent == "resourceFieldRef")
}

fn same_quantity(left: &Value, right: &Value) -> bool {
    let parse = |value: &Value| -> Option<Quantity> {
        match value {
            Value::String(text) => text.parse().ok(),
            Value::Number(number) => number.to_string().parse().ok(),
            _ => None,
        }
    };
    matches!((parse(left), parse(right)), (Some(left), Some(right)) if left == right)
}

#[cfg(test)]
mod tests {
    use super::same_spec;

    #[test]
    fn specs_that_ask_for_the_same_are_equal() {
        let check = |left: &str, right: &str, want: bool| {
            assert_eq!(same_spec(left, right), want, "{left} and {right}");
            assert_eq!(same_spec(right, left), want, "{right} and {left}");
        };
        check("", "{}", true);
        check(r#"{"a":1,"b":2}"#, r#"{ "b": 2, "a": 1 }"#, true);
        check(r#"{"a":1}"#, r#"{"a":2}"#, false);
        check(r#"{"a":1}"#, r#"{"a":1,"b":1}"#, false);
        check(r#"{"volumes":[]}"#, "{}", true);
        check(r#"{"volumes":null}"#, "{}", true);
        check(r#"{"hostname":""}"#, "{}", true);
        check(r#"{"nodeSelector":{}}"#, "{}", true);
        check(r#"{"nodeSelector":{"a":""}}"#, r#"{"nodeSelector":{"b":""}}"#, true);
        check(r#"{"hostNetwork":false}"#, "{}", false);
        check(r#"{"containers":[{"name":"a","resources":{}}]}"#, r#"{"containers":[{"name":"a"}]}"#, true);
        check(r#"{"containers":[{"name":"a"}]}"#, r#"{"containers":[{"name":"b"}]}"#, false);
        check(r#"{"containers":[{"name":"a"},{"name":"b"}]}"#, r#"{"containers":[{"name":"b"},{"name":"a"}]}"#, false);
        check("not json", "not json", true);
        check("not json", "{}", false);
    }

    #[test]
    fn quantities_are_equal_by_value_and_other_texts_are_not() {
        let check =
            |left: &str, right: &str, want: bool| assert_eq!(same_spec(left, right), want, "{left} and {right}");
        let container = |cpu: &str| format!(r#"{{"containers":[{{"resources":{{"limits":{{"cpu":{cpu}}}}}}}]}}"#);
        check(&container(r#""1""#), &container(r#""1000m""#), true);
        check(&container(r#""1""#), &container("1"), true);
        check(&container(r#""1""#), &container(r#""1001m""#), false);
        check(r#"{"overhead":{"memory":"1Ki"}}"#, r#"{"overhead":{"memory":"1024"}}"#, true);
        check(
            r#"{"resources":{"requests":{"memory":"1Ki"}}}"#,
            r#"{"resources":{"requests":{"memory":"1024"}}}"#,
            true,
        );
        check(
            r#"{"volumes":[{"emptyDir":{"sizeLimit":"1Gi"}}]}"#,
            r#"{"volumes":[{"emptyDir":{"sizeLimit":"1024Mi"}}]}"#,
            true,
        );
        check(r#"{"resourceFieldRef":{"divisor":"1"}}"#, r#"{"resourceFieldRef":{"divisor":"1000m"}}"#, true);
        check(r#"{"nodeSelector":{"size":"1"}}"#, r#"{"nodeSelector":{"size":"1000m"}}"#, false);
        check(r#"{"nodeSelector":{"limits":"1"}}"#, r#"{"nodeSelector":{"limits":"1000m"}}"#, false);
        check(r#"{"env":[{"value":"1"}]}"#, r#"{"env":[{"value":"1000m"}]}"#, false);
    }

    #[test]
    fn what_says_something_by_being_empty_is_not_absent() {
        let check = |left: &str| assert!(!same_spec(left, "{}"), "{left}");
        check(r#"{"namespaceSelector":{}}"#);
        check(r#"{"labelSelector":{}}"#);
        check(r#"{"securityContext":{}}"#);
        check(r#"{"storageClassName":""}"#);
        check(r#"{"emptyDir":{}}"#);
    }
}

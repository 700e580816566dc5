//! JSON with its keys in the order in which upstream writes them.
//!
//! Go writes the fields of a struct in their order, and the keys of a map sorted. A `Value` has its keys sorted, so what is a
//! struct upstream is put in order here: `kind` before `apiVersion` in every answer, and all of discovery and statuses,
//! which people read.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use crate::registry::Row;

/// In what order an answer's keys are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Sorted, as upstream writes what has no Go type: custom resources, OpenAPI.
    Sorted,
    /// The kind first, then sorted.
    KindFirst,
    /// As in the Go types of discovery and of a status.
    Document,
    /// As within [`Self::Document`].
    Part,
}

/// The order on the outermost level; what is not named here follows, sorted.
const OUTER: [&str; 15] = [
    "kind",
    "apiVersion",
    "metadata",
    "groupVersion",
    "name",
    "versions",
    "preferredVersion",
    "groups",
    "resources",
    "serverAddressByClientCIDRs",
    "status",
    "message",
    "reason",
    "details",
    "code",
];

/// The order on every other level of a document.
const INNER: [&str; 28] = [
    "metadata",
    "name",
    "singularName",
    "namespaced",
    "resource",
    "subresource",
    "groupVersion",
    "group",
    "version",
    "kind",
    "uid",
    "responseKind",
    "scope",
    "singularResource",
    "resources",
    "verbs",
    "shortNames",
    "categories",
    "subresources",
    "storageVersionHash",
    "freshness",
    "versions",
    "preferredVersion",
    "causes",
    "reason",
    "message",
    "field",
    "retryAfterSeconds",
];

/// Encodes a value.
pub(crate) fn encode(value: &Value, order: Order, is_pretty: bool) -> String {
    let text = match order {
        Order::Sorted => text(value, is_pretty),
        Order::KindFirst => text(&Ordered { value, ranks: &OUTER[..3], inner: &[] }, is_pretty),
        Order::Document => text(&Ordered { value, ranks: &OUTER, inner: &INNER }, is_pretty),
        Order::Part => text(&Ordered { value, ranks: &INNER, inner: &INNER }, is_pretty),
    };
    // Writing JSON into memory fails only for maps whose keys are no strings, and a `Value` has none.
    text.unwrap_or_default()
}

fn text<T: Serialize>(value: &T, is_pretty: bool) -> serde_json::Result<String> {
    if is_pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) }
}

/// A value whose keys are written in an order, and those of the values in it in another.
struct Ordered<'a> {
    value: &'a Value,
    ranks: &'static [&'static str],
    inner: &'static [&'static str],
}

// === impl Order ===

impl Order {
    /// Returns the order of a resource's objects.
    pub(crate) fn of(row: &Row) -> Self {
        if row.custom.is_some() { Self::Sorted } else { Self::KindFirst }
    }
}

// === impl Ordered ===

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.ranks.is_empty() {
            return self.value.serialize(serializer);
        }
        let below = |value| Ordered { value, ranks: self.inner, inner: self.inner };
        match self.value {
            Value::Object(entries) => {
                let named = self.ranks.iter().filter_map(|name| entries.get_key_value(*name));
                let others = entries.iter().filter(|(name, _)| !self.ranks.contains(&name.as_str()));
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (name, value) in named.chain(others) {
                    map.serialize_entry(name, &below(value))?;
                }
                map.end()
            }
            Value::Array(elements) => serializer.collect_seq(elements.iter().map(below)),
            other => other.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Order, encode};

    #[test]
    fn the_kind_comes_first_and_the_rest_is_sorted() {
        let object = json!({"apiVersion": "v1", "data": {"kind": "b", "apiVersion": "a"}, "kind": "K", "metadata": {}});
        let want = r#"{"kind":"K","apiVersion":"v1","metadata":{},"data":{"apiVersion":"a","kind":"b"}}"#;
        assert_eq!(encode(&object, Order::KindFirst, false), want);
        let sorted = r#"{"apiVersion":"v1","data":{"apiVersion":"a","kind":"b"},"kind":"K","metadata":{}}"#;
        assert_eq!(encode(&object, Order::Sorted, false), sorted);
    }

    #[test]
    fn a_document_has_the_order_of_go_on_every_level() {
        let list = json!({
            "apiVersion": "v1", "groupVersion": "apps/v1", "kind": "APIResourceList",
            "resources": [{"kind": "Scale", "name": "deployments/scale", "namespaced": true, "group": "autoscaling",
                "version": "v1", "singularName": "", "verbs": ["get"]}],
        });
        let want = r#"{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apps/v1","resources":[{"name":"deployments/scale","singularName":"","namespaced":true,"group":"autoscaling","version":"v1","kind":"Scale","verbs":["get"]}]}"#;
        assert_eq!(encode(&list, Order::Document, false), want);
    }

    #[test]
    fn indented_answers_look_as_upstreams() {
        let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "details": {"causes": []}});
        let want = "{\n  \"kind\": \"Status\",\n  \"apiVersion\": \"v1\",\n  \"metadata\": {},\n  \"status\": \"Failure\",\n  \
                    \"details\": {\n    \"causes\": []\n  }\n}";
        assert_eq!(encode(&status, Order::Document, true), want);
    }
}

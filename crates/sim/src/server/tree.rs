//! Stored objects as trees, without `managedFields`: no invariant is about them, and they are half of a small object.

use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};
use steersman_apiserver::store::Object;

/// An object.
struct Tree(Map<String, Value>);

/// Its metadata.
struct Metadata(Value);

struct Fields;

struct MetadataFields;

/// Returns a stored object as a tree; none if the server lost bytes.
pub(super) fn tree_of(object: &Object) -> Option<Arc<Value>> {
    let Tree(map) = serde_json::from_slice(&object.bytes()).ok()?;
    Some(Arc::new(Value::Object(map)))
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields)
    }
}

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MetadataFields)
    }
}

impl<'de> Visitor<'de> for Fields {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Tree, A::Error> {
        let mut map = Map::new();
        while let Some(name) = access.next_key::<String>()? {
            let value = match name.as_str() {
                "metadata" => access.next_value::<Metadata>()?.0,
                _ => access.next_value()?,
            };
            map.insert(name, value);
        }
        Ok(Tree(map))
    }
}

impl<'de> Visitor<'de> for MetadataFields {
    type Value = Metadata;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the metadata of an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Metadata, A::Error> {
        let mut map = Map::new();
        while let Some(name) = access.next_key::<String>()? {
            if name == "managedFields" {
                access.next_value::<IgnoredAny>()?;
            } else {
                map.insert(name, access.next_value()?);
            }
        }
        Ok(Metadata(Value::Object(map)))
    }
}

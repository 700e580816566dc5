//! Which part of the old object a part of the new one was. Follows `apiserver/pkg/cel/common/{equality,maplist}.go`.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::schema::Schema;

/// A value and the old value that it is compared with.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    pub(super) schema: &'a Schema,
    pub(super) new: &'a Value,
    pub(super) old: &'a Value,
}

/// The items of an old list, by their keys; none if its items cannot be found again.
pub(super) struct Items<'a> {
    keys: &'a [String],
    by_key: Option<HashMap<String, &'a Value>>,
}

// === impl Pair ===

impl<'a> Pair<'a> {
    /// The pair of a property: it is in both objects, and the schema knows it.
    pub(super) fn property(self, name: &str, schema: &'a Schema) -> Option<Self> {
        let new = self.new.as_object()?.get(name)?;
        let old = self.old.as_object()?.get(name)?;
        Some(Self { schema, new, old })
    }

    /// The old items.
    pub(super) fn items(self) -> Items<'a> {
        let keys = self.schema.list_map_keys();
        let old = self.old.as_array().filter(|_| self.schema.list_type() == "map");
        let by_key = old.map(|old| {
            let mut by_key = HashMap::new();
            for item in old {
                if let Some(key) = key_of(item, keys) {
                    by_key.insert(key, item);
                }
            }
            by_key
        });
        Items { keys, by_key }
    }

    /// Whether the value is what it was. A property that the schema does not know counts as changed, as upstream.
    pub(super) fn is_unchanged(self) -> bool {
        match (self.new, self.old) {
            (Value::Array(new), Value::Array(old)) => {
                let items = self.items();
                let Some(of_items) = self.schema.items.as_deref().filter(|_| items.by_key.is_some()) else {
                    return new == old;
                };
                let is_same = |item: &'a Value| items.pair(of_items, item).is_some_and(Self::is_unchanged);
                new.len() == old.len() && new.iter().all(is_same)
            }
            (Value::Object(new), Value::Object(old)) => {
                let is_same = |(name, _): (&'a String, &'a Value)| {
                    let schema = self.schema.property(name);
                    schema.and_then(|schema| self.property(name, schema)).is_some_and(Self::is_unchanged)
                };
                new.len() == old.len() && new.iter().all(is_same)
            }
            (new, old) => new == old,
        }
    }
}

// === impl Items ===

impl<'a> Items<'a> {
    /// The pair of an item, if the old list has one with the same keys.
    pub(super) fn pair(&self, schema: &'a Schema, item: &'a Value) -> Option<Pair<'a>> {
        let old = self.by_key.as_ref()?.get(&key_of(item, self.keys)?)?;
        Some(Pair { schema, new: item, old })
    }
}

/// The keys of an item as one text. A single key must be there; of several, those that are not count as null.
fn key_of(item: &Value, keys: &[String]) -> Option<String> {
    let map = item.as_object()?;
    match keys {
        [key] => map.get(key).map(Value::to_string),
        keys => {
            let key = |key: &String| (key.clone(), map.get(key).cloned().unwrap_or_default());
            Some(Value::Object(keys.iter().map(key).collect::<Map<_, _>>()).to_string())
        }
    }
}

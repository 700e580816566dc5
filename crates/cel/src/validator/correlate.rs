//! What belongs together in an object and the one before. Follows `apiserver/pkg/cel/common/equality.go`, `maplist.go`.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::rc::Rc;

use serde_json::Value as Json;

use crate::schema::{Schema, SchemaType};

/// A value, the one before, and whether they are equal.
struct Pair<'j> {
    value: &'j Json,
    old: &'j Json,
    schema: &'j Schema,
    equal: OnceCell<bool>,
    old_items: OnceCell<KeyedItems<'j>>,
}

/// The place of a validation, in an object and its previous version.
#[derive(Clone, Default)]
pub(super) struct Ratchet<'j> {
    current: Option<Rc<Pair<'j>>>,
    /// The nearest value above that has one before.
    above: Option<Rc<Pair<'j>>>,
}

/// Items of a list by their keys, if it has any.
pub(super) struct KeyedItems<'j> {
    keys: &'j [String],
    items: HashMap<Vec<String>, &'j Json>,
}

// === impl Ratchet ===

impl<'j> Ratchet<'j> {
    pub(super) fn new(value: &'j Json, old: &'j Json, schema: &'j Schema) -> Self {
        Self { current: Some(Rc::new(Pair::new(value, old, schema))), above: None }
    }

    /// Whether the value, or the nearest one above that can be compared, did not change.
    pub(super) fn is_unchanged(&self) -> bool {
        self.current.as_ref().or(self.above.as_ref()).is_some_and(|pair| pair.is_equal())
    }

    pub(super) fn key(&self, name: &str) -> Self {
        let Some(current) = &self.current else { return self.clone() };
        if self.above.is_none() && matches!(name, "apiVersion" | "kind") {
            return Self::default();
        }
        Self { current: current.key(name).map(Rc::new), above: Some(current.clone()) }
    }

    pub(super) fn index(&self, at: usize) -> Self {
        let Some(current) = &self.current else { return self.clone() };
        Self { current: current.index(at).map(Rc::new), above: Some(current.clone()) }
    }

    /// For rules within `allOf`, which only know what is above.
    pub(super) fn of_all_of(&self) -> Self {
        Self { current: None, above: self.above.clone() }
    }
}

// === impl Pair ===

impl<'j> Pair<'j> {
    fn new(value: &'j Json, old: &'j Json, schema: &'j Schema) -> Self {
        Self { value, old, schema, equal: OnceCell::new(), old_items: OnceCell::new() }
    }

    fn key(&self, name: &str) -> Option<Self> {
        let value = self.value.as_object()?.get(name)?;
        let old = self.old.as_object()?.get(name)?;
        let named = self.schema.properties.as_ref().and_then(|properties| properties.get(name));
        let schema = named.or_else(|| self.schema.additional_schema())?;
        Some(Self::new(value, old, schema))
    }

    fn index(&self, at: usize) -> Option<Self> {
        let value = self.value.as_array()?.get(at)?;
        let old = self.old.as_array()?;
        if &*self.schema.list_type != "map" {
            return None;
        }
        let old = self.old_items.get_or_init(|| KeyedItems::new(self.schema, Some(old))).get(value)?;
        Some(Self::new(value, old, self.schema.items.as_deref()?))
    }

    fn is_equal(&self) -> bool {
        *self.equal.get_or_init(|| self.compare())
    }

    fn compare(&self) -> bool {
        match (self.value, self.old) {
            (Json::Array(values), Json::Array(old)) => {
                if values.len() != old.len() {
                    return false;
                }
                if &*self.schema.list_type != "map" {
                    return values == old;
                }
                (0..values.len()).all(|at| self.index(at).is_some_and(|pair| pair.is_equal()))
            }
            (Json::Object(values), Json::Object(old)) => {
                values.len() == old.len()
                    && values.keys().all(|name| self.key(name).is_some_and(|pair| pair.is_equal()))
            }
            (value, old) => value == old,
        }
    }
}

// === impl KeyedItems ===

impl<'j> KeyedItems<'j> {
    pub(super) fn new(schema: &'j Schema, items: Option<&'j [Json]>) -> Self {
        let keyed = schema.kind == SchemaType::Array && &*schema.list_type == "map";
        let keys: &[String] = if keyed { &schema.list_map_keys } else { &[] };
        let mut found = Self { keys, items: HashMap::new() };
        for item in items.into_iter().flatten() {
            if let Some(key) = found.key(item) {
                found.items.entry(key).or_insert(item);
            }
        }
        found
    }

    pub(super) fn get(&self, item: &Json) -> Option<&'j Json> {
        self.items.get(&self.key(item)?).copied()
    }

    fn key(&self, item: &Json) -> Option<Vec<String>> {
        if self.keys.is_empty() {
            return None;
        }
        let item = item.as_object()?;
        let value = |key: &String| {
            item.get(key)
                .filter(|value| !value.is_object() && !value.is_array() && !value.is_null())
                .map(Json::to_string)
        };
        self.keys.iter().map(value).collect()
    }
}

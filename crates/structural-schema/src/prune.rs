//! Dropping what a schema does not know.
//!
//! 1. A field is kept if a property declares it, `additionalProperties` allows it, or unknown fields are preserved there;
//!    preserved objects are still pruned inside the properties that are declared.
//! 2. `apiVersion`, `kind` and `metadata` of the object and of embedded resources are left alone: [`crate::embedded`] and the
//!    API server look after them.
//! 3. Null is dropped where it is not allowed, unless there is a default for it ([`prune_nulls`]).
//! 4. At most [`UNKNOWN_MAX`] paths of dropped fields are reported.
//!
//! Follows `apiextensions-apiserver/pkg/apiserver/schema/{pruning,defaulting/prunenulls.go}`.

use std::fmt::Write;

use serde_json::{Map, Value};

use crate::schema::Schema;

/// The maximum number of reported unknown fields; upstream reports as many of those that it finds while decoding.
pub const UNKNOWN_MAX: usize = 100;

const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The position of a walk, and its findings.
#[derive(Default)]
pub(crate) struct Tracker {
    path: String,
    unknown: Vec<String>,
}

/// Drops the fields of an object that its schema does not know, and returns their paths in order.
pub fn prune(object: &mut Value, schema: &Schema) -> Vec<String> {
    prune_value(object, schema, true)
}

/// [`prune`] for a value that may be a whole object or a part of one.
pub(crate) fn prune_value(value: &mut Value, schema: &Schema, is_object: bool) -> Vec<String> {
    let mut tracker = Tracker::default();
    tracker.value(value, Some(schema), is_object);
    tracker.into_unknown()
}

/// Drops nulls that are neither allowed nor replaced by a default.
pub fn prune_nulls(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(map) => {
            map.retain(|name, value| {
                let Some(schema) = schema.property(name) else { return true };
                if value.is_null() {
                    return schema.nullable || schema.default.is_some();
                }
                prune_nulls(value, schema);
                true
            });
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                items.iter_mut().for_each(|item| prune_nulls(item, schema));
            }
        }
        _ => {}
    }
}

// === impl Tracker ===

impl Tracker {
    fn value(&mut self, value: &mut Value, schema: Option<&Schema>, is_embedded: bool) {
        let keeps = schema.is_some_and(Schema::keeps_unknown);
        let is_embedded = is_embedded || schema.is_some_and(|schema| schema.is_embedded);
        match value {
            Value::Object(map) => self.map(map, schema, is_embedded, keeps),
            Value::Array(items) => {
                let of_items = schema.and_then(|schema| schema.items.as_deref());
                if keeps && of_items.is_none() {
                    return;
                }
                for (at, item) in items.iter_mut().enumerate() {
                    let length = self.enter_item(at);
                    match of_items {
                        // Inside a list that preserves unknown fields, its items do too.
                        Some(schema) if keeps => self.kept(item, schema),
                        schema => self.value(item, schema, false),
                    }
                    self.leave(length);
                }
            }
            _ => {}
        }
    }

    /// A value whose unknown fields are kept.
    fn kept(&mut self, value: &mut Value, schema: &Schema) {
        match value {
            Value::Object(map) => self.map(map, Some(schema), schema.is_embedded, true),
            Value::Array(items) => {
                let Some(schema) = &schema.items else { return };
                for (at, item) in items.iter_mut().enumerate() {
                    let length = self.enter_item(at);
                    self.kept(item, schema);
                    self.leave(length);
                }
            }
            _ => {}
        }
    }

    fn map(&mut self, map: &mut Map<String, Value>, schema: Option<&Schema>, is_embedded: bool, keeps: bool) {
        let others = schema.and_then(|schema| schema.additional.as_deref());
        map.retain(|name, value| {
            if is_embedded && META.contains(&name.as_str()) {
                return true;
            }
            let declared = schema.and_then(|schema| schema.properties.get(name));
            if declared.is_some() || others.is_some() {
                let length = self.enter(name);
                let schema = declared.or_else(|| others.and_then(|others| others.schema.as_ref()));
                self.value(value, schema, false);
                self.leave(length);
                return true;
            }
            if !keeps && (!META.contains(&name.as_str()) || !self.path.is_empty()) {
                self.record(name);
            }
            keeps
        });
    }

    pub(crate) fn record(&mut self, name: &str) {
        if self.unknown.len() < UNKNOWN_MAX {
            let length = self.enter(name);
            self.unknown.push(self.path.clone());
            self.leave(length);
        }
    }

    fn enter(&mut self, name: &str) -> usize {
        let length = self.path.len();
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(name);
        length
    }

    fn enter_item(&mut self, at: usize) -> usize {
        let length = self.path.len();
        // Writing to a string does not fail.
        let _ = write!(self.path, "[{at}]");
        length
    }

    fn leave(&mut self, length: usize) {
        self.path.truncate(length);
    }

    fn into_unknown(mut self) -> Vec<String> {
        self.unknown.sort_unstable();
        self.unknown
    }
}

//! Decoding into a struct, done to a tree: what is unknown goes, what is wrong is named, the rest is normalised.
//!
//! The words are those of `sigs.k8s.io/json`, which kube-apiserver decodes with: the first value of a wrong type is
//! reported once everything is read, but a type that reads itself (quantities, times) stops at once.

use std::fmt::Write;

use serde_json::{Map, Value};

use crate::decode;
use crate::findings::{FINDINGS_MAX, Findings, is_within, shown_path, unknown_field};
use crate::schema::scalar::{self, Fault};
use crate::schema::table::{Omit, Shape, Struct};

/// The maximum number of items of a list of a built-in kind. Upstream takes as many as fit into etcd; what is checked
/// about items is often checked pair by pair, so there is a bound here. Ten thousand owners, the most that anybody has,
/// are fewer.
const ITEMS_MAX: usize = 1 << 14;

/// A walk through one object.
pub(super) struct Checker {
    /// The current path, with list indexes and map keys: `spec.containers[0].image`.
    path: String,
    /// The unknown fields.
    unknown: Findings,
    /// Duplicate keys, found while parsing.
    duplicates: Vec<String>,
    /// The current path in the words of Go's decoder, without indexes and keys but with embedded structs.
    go_path: String,
    /// The struct whose field we are in.
    go_struct: &'static str,
    /// The first value of a wrong type.
    mismatch: Option<String>,
}

/// A place on the way, to come back to.
struct Mark {
    path: usize,
    go_path: usize,
    go_struct: &'static str,
}

/// Whether a value is what Go has when nothing was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Zero {
    Yes,
    No,
}

// === impl Checker ===

impl Checker {
    pub(super) fn new(duplicates: Vec<String>) -> Self {
        Self {
            path: String::new(),
            unknown: Findings::default(),
            duplicates,
            go_path: String::new(),
            go_struct: "",
            mismatch: None,
        }
    }

    /// Checks a whole object. `null` is an empty one.
    pub(super) fn object(&mut self, schema: &'static Struct, object: &mut Value) -> Result<(), String> {
        if object.is_null() {
            *object = Value::Object(Map::new());
        }
        match object {
            Value::Object(fields) => self.fields(schema, fields),
            other => {
                self.wrong(decode::type_name(other), &format!("v1.{}", schema.short));
                Ok(())
            }
        }
    }

    /// Checks only the metadata of an object whose kind has no schema.
    pub(super) fn metadata(&mut self, schema: Option<&'static Struct>, object: &mut Value) -> Result<(), String> {
        let (Some(schema), Some(metadata)) = (schema, object.get_mut("metadata")) else {
            return Ok(());
        };
        let mark = self.mark();
        self.path.push_str("metadata");
        self.go_path.push_str("metadata");
        let result = match metadata {
            Value::Object(fields) => self.fields(schema, fields),
            Value::Null => Ok(()),
            other => {
                self.wrong(decode::type_name(other), "v1.ObjectMeta");
                Ok(())
            }
        };
        self.back(&mark);
        result
    }

    /// Returns the findings in upstream's words, unless a value was wrong.
    pub(super) fn finish(self) -> Result<Vec<String>, String> {
        if let Some(mismatch) = self.mismatch {
            return Err(mismatch);
        }
        let mut findings = self.duplicates;
        // What is inside an unknown field is skipped, not read: its duplicates do not count.
        let unknown = self.unknown.into_sentences();
        findings.retain(|duplicate| !unknown.iter().any(|unknown| is_within(duplicate, unknown)));
        findings.extend(unknown);
        findings.truncate(FINDINGS_MAX);
        Ok(findings)
    }

    fn fields(&mut self, schema: &'static Struct, fields: &mut Map<String, Value>) -> Result<(), String> {
        let mut result = Ok(());
        fields.retain(|name, value| {
            if result.is_err() {
                return true;
            }
            let mark = self.mark();
            self.enter(name);
            let Some(field) = schema.field(name) else {
                self.unknown.add(|| unknown_field(&self.path));
                self.back(&mark);
                return false;
            };
            for part in [field.embedded, field.name].into_iter().filter(|part| !part.is_empty()) {
                push_dotted(&mut self.go_path, part);
            }
            self.go_struct = schema.short;
            let zero = self.value(&field.shape, field.go, value);
            let keep = match zero {
                // Empty bytes are not nil, but only fields that are always written show it.
                Ok(Zero::Yes) => {
                    let is_distinct =
                        field.pointer || (matches!(field.shape, Shape::Bytes) && field.omit == Omit::Never);
                    is_distinct && !value.is_null()
                }
                Ok(Zero::No) => true,
                Err(error) => {
                    // The place stays in the message, so we do not go back.
                    result = Err(error);
                    return true;
                }
            };
            self.back(&mark);
            keep
        });
        result?;
        if schema.has_defaults {
            for field in &schema.fields {
                if let Some(default) = &field.default
                    && !fields.contains_key(field.name)
                {
                    fields.insert(field.name.to_owned(), default.clone());
                }
            }
        }
        Ok(())
    }

    fn value(&mut self, shape: &Shape, go: &'static str, value: &mut Value) -> Result<Zero, String> {
        if value.is_null() {
            return Ok(Zero::Yes);
        }
        match (shape, &mut *value) {
            (Shape::Any, _) => return Ok(Zero::No),
            (Shape::StructOr(id), Value::Array(elements)) => return self.elements(&Shape::Struct(*id), "", elements),
            (Shape::StructOr(id), Value::Object(fields)) => return self.fields(id.schema(), fields).map(|()| Zero::No),
            (Shape::StructOr(_), _) => return Ok(Zero::No),
            (Shape::Struct(id), Value::Object(fields)) => {
                self.fields(id.schema(), fields)?;
                return Ok(Zero::of(fields.is_empty()));
            }
            (Shape::List(element), Value::Array(elements)) => {
                return self.elements(element, element_type(go), elements);
            }
            (Shape::Map(element), Value::Object(entries)) => return self.entries(element, element_type(go), entries),
            (Shape::Struct(_) | Shape::List(_) | Shape::Map(_), other) => {
                let type_name = type_name(shape, go);
                self.wrong(decode::type_name(other), &type_name);
                return Ok(Zero::Yes);
            }
            _ => {}
        }
        match scalar::normalise(shape, value) {
            Ok(zero) => Ok(zero),
            Err(Fault::Type(found)) => {
                self.wrong(&found, &type_name(shape, go));
                Ok(Zero::Yes)
            }
            Err(Fault::InnerType(found, type_name)) => Err(self.mismatch_text(&found, type_name)),
            Err(Fault::Value(sentence)) => {
                self.mismatch.get_or_insert(sentence);
                Ok(Zero::Yes)
            }
            Err(Fault::Stop(sentence)) => Err(sentence),
        }
    }

    fn elements(&mut self, shape: &Shape, go: &'static str, elements: &mut [Value]) -> Result<Zero, String> {
        let length = self.path.len();
        if elements.len() > ITEMS_MAX {
            let path = shown_path(&self.path);
            return Err(format!(
                "{path}: a list may not have more than {ITEMS_MAX} items, and this has {}",
                elements.len()
            ));
        }
        for (index, element) in elements.iter_mut().enumerate() {
            // Writing to a string does not fail.
            let _ = write!(self.path, "[{index}]");
            self.value(shape, go, element)?;
            zero_for_null(shape, element);
            self.path.truncate(length);
        }
        Ok(Zero::of(elements.is_empty()))
    }

    fn entries(&mut self, shape: &Shape, go: &'static str, entries: &mut Map<String, Value>) -> Result<Zero, String> {
        let length = self.path.len();
        for (key, entry) in entries.iter_mut() {
            self.enter(key);
            self.value(shape, go, entry)?;
            zero_for_null(shape, entry);
            self.path.truncate(length);
        }
        Ok(Zero::of(entries.is_empty()))
    }

    fn wrong(&mut self, found: &str, type_name: &str) {
        if self.mismatch.is_none() {
            self.mismatch = Some(self.mismatch_text(found, type_name));
        }
    }

    fn mismatch_text(&self, found: &str, type_name: &str) -> String {
        if self.go_struct.is_empty() && self.go_path.is_empty() {
            return format!("json: cannot unmarshal {found} into Go value of type {type_name}");
        }
        let go_struct = self.go_struct;
        let go_path = &self.go_path;
        format!("json: cannot unmarshal {found} into Go struct field {go_struct}.{go_path} of type {type_name}")
    }

    fn enter(&mut self, name: &str) {
        push_dotted(&mut self.path, name);
    }

    fn mark(&self) -> Mark {
        Mark { path: self.path.len(), go_path: self.go_path.len(), go_struct: self.go_struct }
    }

    fn back(&mut self, mark: &Mark) {
        self.path.truncate(mark.path);
        self.go_path.truncate(mark.go_path);
        self.go_struct = mark.go_struct;
    }
}

// === impl Zero ===

impl Zero {
    pub(super) fn of(is_zero: bool) -> Self {
        if is_zero { Self::Yes } else { Self::No }
    }
}

fn push_dotted(path: &mut String, part: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(part);
}

/// An element that is `null` is the zero value of its type; lists and maps have no holes.
fn zero_for_null(shape: &Shape, element: &mut Value) {
    if element.is_null() {
        *element = match shape {
            Shape::Bytes => Value::String(String::new()),
            Shape::List(_) => Value::Array(Vec::new()),
            other => scalar::zero(other),
        };
    }
}

/// The type of a list's or map's elements, as far as it follows from the name of the type.
fn element_type(go: &'static str) -> &'static str {
    if let Some(element) = go.strip_prefix("[]") {
        return element.trim_start_matches('*');
    }
    go.strip_prefix("map[").and_then(|rest| rest.split_once(']')).map_or("", |(_, element)| element)
}

/// The Go type of a value; that of the elements of a named list or map is not written down.
fn type_name(shape: &Shape, go: &'static str) -> String {
    if !go.is_empty() {
        return go.to_owned();
    }
    match shape {
        Shape::Struct(id) | Shape::StructOr(id) => format!("v1.{}", id.schema().short),
        Shape::List(element) => format!("[]{}", type_name(element, "")),
        Shape::Map(element) => format!("map[string]{}", type_name(element, "")),
        Shape::Bytes => "[]uint8".to_owned(),
        Shape::Bool => "bool".to_owned(),
        Shape::Int32 => "int32".to_owned(),
        Shape::Int64 => "int64".to_owned(),
        Shape::Float => "float64".to_owned(),
        Shape::String | Shape::Time | Shape::MicroTime | Shape::Quantity | Shape::IntOrString | Shape::Any => {
            "string".to_owned()
        }
    }
}

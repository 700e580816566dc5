//! Whether defaults are valid, and nothing in them would be pruned. Follows
//! `apiextensions-apiserver/pkg/apiserver/schema/defaulting/validation.go`.

use serde_json::{Map, Value, json};
use steersman_base::validation::{FieldError, FieldErrors};

use super::{Errors, RuleChecks};
use crate::embedded::{Malformed, coerce_at, validate_at};
use crate::path::Path;
use crate::prune::prune_value;
use crate::schema::Schema;
use crate::validate::validate_default;

/// The way from an object to a value in it.
enum Step<'a> {
    Field(&'a str),
    Item,
}

struct Walk<'a> {
    /// The schema of the innermost object that the value is in, and the way from there.
    object: &'a Schema,
    steps: Vec<Step<'a>>,
    /// Whether the value is in the metadata of that object.
    is_metadata: bool,
}

/// The findings, and the check that adds to them.
struct Finds<'a> {
    errors: Errors,
    rules: &'a mut dyn RuleChecks,
}

/// A schema, as it is read and as it is written.
#[derive(Clone, Copy)]
struct Read<'a> {
    schema: &'a Schema,
    written: &'a Value,
}

/// Checks the defaults of a schema.
pub(super) fn validate(
    schema: &Schema,
    written: &Value,
    path: &Path<'_>,
    rules: &mut dyn RuleChecks,
) -> Vec<FieldError> {
    let mut finds = Finds { errors: Errors::default(), rules };
    let walk = &mut Walk { object: schema, steps: Vec::new(), is_metadata: false };
    walk.schema(Read { schema, written }, true, path, &mut finds);
    finds.errors.0
}

// === impl Walk ===

impl<'a> Walk<'a> {
    fn schema(&mut self, read: Read<'a>, is_root: bool, path: &Path<'_>, finds: &mut Finds<'_>) {
        let is_object = is_root || read.schema.is_embedded;
        if is_object && !is_root {
            let mut inner = Walk { object: read.schema, steps: Vec::new(), is_metadata: false };
            inner.inside(read, true, path, finds);
        } else {
            self.inside(read, is_object, path, finds);
        }
    }

    fn inside(&mut self, read: Read<'a>, is_object: bool, path: &Path<'_>, finds: &mut Finds<'_>) {
        let Read { schema, written } = read;
        if let Some(default) = &schema.default {
            let at = path.child("default").to_string();
            let found = if self.is_metadata {
                self.metadata(schema, default, &at)
            } else {
                value(schema, default, is_object, &at)
            };
            if found.is_empty() && schema.has_rules() {
                finds.errors.extend(finds.rules.default(written, default, is_object, &at));
            }
            finds.errors.extend(found);
        }
        if let Some(items) = &schema.items {
            self.steps.push(Step::Item);
            let read = Read { schema: items, written: &written["items"] };
            self.schema(read, false, &path.child("items"), finds);
            self.steps.pop();
        }
        let properties = path.child("properties");
        for (name, property) in &schema.properties {
            let read = Read { schema: property, written: &written["properties"][name.as_str()] };
            let is_meta = matches!(&**name, "metadata" | "apiVersion" | "kind");
            let before = self.is_metadata;
            self.is_metadata |= is_object && is_meta;
            self.steps.push(Step::Field(name));
            self.schema(read, false, &properties.key(name), finds);
            self.steps.pop();
            self.is_metadata = before;
        }
    }

    /// Checks a default inside metadata: an object that has nothing else must be valid.
    fn metadata(&self, schema: &Schema, default: &Value, at: &str) -> Vec<FieldError> {
        let mut object = self.steps.iter().rev().fold(default.clone(), |value, step| match step {
            Step::Field(name) => Value::Object(Map::from_iter([((*name).to_owned(), value)])),
            Step::Item => Value::Array(vec![value]),
        });
        for (name, value) in [("kind", "Validation"), ("apiVersion", "validation/v1")] {
            if object.get(name).is_none() {
                object[name] = json!(value);
            }
        }
        let wrong = |problem: &dyn std::fmt::Display| {
            vec![FieldError::invalid(at, default.clone(), format!("must result in valid metadata: {problem}"))]
        };
        if let Err(problem) = coerce_at(&mut object, self.object, true, "", Malformed::Refuse) {
            return wrong(&problem);
        }
        if let Err(problems) = FieldErrors::check(validate_at(self.object, &object, true, "")) {
            return wrong(&problems);
        }
        validate_default(schema, default, at)
    }
}

/// Checks a default outside metadata.
fn value(schema: &Schema, default: &Value, is_object: bool, at: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut pruned = default.clone();
    prune_value(&mut pruned, schema, is_object);
    if pruned != *default {
        errors.push(FieldError::invalid(at, default.clone(), "must not have unknown fields"));
    }
    let mut coerced = default.clone();
    match coerce_at(&mut coerced, schema, is_object, at, Malformed::Refuse) {
        Err(problem) => errors.push(*problem),
        Ok(_) => {
            let found = validate_at(schema, &coerced, is_object, at);
            if found.is_empty() {
                errors.extend(validate_default(schema, &coerced, at));
            } else {
                errors.extend(found);
            }
        }
    }
    errors
}

//! Filling in the defaults of a schema.
//!
//! 1. An absent property gets its default, and so does a null where null is not allowed; an object that exists gets the
//!    defaults inside it, an absent one does not come into being for them.
//! 2. An item or an additional property that is null and may not be gets its default, or stays null.
//! 3. Bounded: what is added to one object has at most [`FILLED_BYTES_MAX`] bytes, and at most [`STEPS_MAX`] properties are
//!    looked at.
//!
//! Follows `apiextensions-apiserver/pkg/apiserver/schema/defaulting/algorithm.go`.

use serde_json::{Map, Value};

use crate::schema::Schema;

/// The maximum number of bytes that the defaults of a schema may add to one object: the maximum of a body.
pub const FILLED_BYTES_MAX: usize = 3 << 20;
/// The maximum number of properties that are visited to fill them in; those of the schema count again for each object
/// in a list.
pub const STEPS_MAX: usize = 1 << 22;

/// The defaults of a schema make more of an object than is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the defaults of its schema add more than {FILLED_BYTES_MAX} bytes to the object, or are too many")]
pub struct TooMuch;

/// Fills in the defaults of a schema.
///
/// # Errors
/// If they are too many.
pub fn default(value: &mut Value, schema: &Schema) -> Result<(), TooMuch> {
    Filler { steps: 0, bytes: 0 }.value(value, schema)
}

struct Filler {
    steps: usize,
    bytes: usize,
}

// === impl Filler ===

impl Filler {
    fn value(&mut self, value: &mut Value, schema: &Schema) -> Result<(), TooMuch> {
        match value {
            Value::Object(map) => self.map(map, schema),
            Value::Array(items) => {
                let Some(schema) = &schema.items else { return Ok(()) };
                items.iter_mut().try_for_each(|item| self.element(item, schema))
            }
            _ => Ok(()),
        }
    }

    /// An item or an additional property.
    fn element(&mut self, value: &mut Value, schema: &Schema) -> Result<(), TooMuch> {
        self.step()?;
        if value.is_null()
            && !schema.nullable
            && let Some(default) = &schema.default
        {
            *value = self.copy(default)?;
        }
        self.value(value, schema)
    }

    fn map(&mut self, map: &mut Map<String, Value>, schema: &Schema) -> Result<(), TooMuch> {
        for (name, property) in &schema.properties {
            self.step()?;
            let Some(default) = &property.default else { continue };
            if map.get(name).is_none_or(|value| value.is_null() && !property.nullable) {
                map.insert(name.clone(), self.copy(default)?);
            }
        }
        for (name, value) in map.iter_mut() {
            match (schema.properties.get(name), schema.additional_schema()) {
                (Some(property), _) => self.value(value, property)?,
                (None, Some(others)) => self.element(value, others)?,
                (None, None) => {}
            }
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), TooMuch> {
        self.steps += 1;
        if self.steps > STEPS_MAX { Err(TooMuch) } else { Ok(()) }
    }

    fn copy(&mut self, default: &Value) -> Result<Value, TooMuch> {
        self.bytes += match default {
            Value::Array(_) | Value::Object(_) => default.to_string().len(),
            Value::String(text) => text.len(),
            _ => 1,
        };
        if self.bytes > FILLED_BYTES_MAX { Err(TooMuch) } else { Ok(default.clone()) }
    }
}

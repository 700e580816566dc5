//! Lists, maps and values of patches that an expression makes, whose entries may be optional.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Evaluator, Result};
use crate::made::Made;
use crate::plan::Node;
use crate::value::{Key, Map, Value};

impl<'a, 'p> Evaluator<'a, 'p> {
    pub(super) fn list(&mut self, items: &'p [Node], optional: &[bool]) -> Result<Value<'a>> {
        let mut values = Vec::with_capacity(items.len());
        for (item, optional) in items.iter().zip(optional) {
            let value = self.eval(item)?;
            match value {
                Value::Error(_) => return Ok(value),
                Value::Optional(None) if *optional => {}
                Value::Optional(Some(value)) if *optional => values.push((*value).clone()),
                other if *optional => {
                    return Ok(Value::error(format!(
                        "cannot initialize optional list element from non-optional value {}",
                        other.text()
                    )));
                }
                value => values.push(value),
            }
        }
        Ok(Value::list(values))
    }

    pub(super) fn map(&mut self, entries: &'p [[Node; 2]], optional: &[bool]) -> Result<Value<'a>> {
        let mut values = BTreeMap::new();
        for ([key, value], optional) in entries.iter().zip(optional) {
            let key = self.eval(key)?;
            if key.is_error() {
                return Ok(key);
            }
            let value = self.eval(value)?;
            if let Err(error) = enter(&mut values, Key::new(&key), value, *optional, || key.text()) {
                return Ok(error);
            }
        }
        Ok(Value::Map(Map::Values(Arc::new(values))))
    }

    pub(super) fn made(
        &mut self,
        type_name: &Arc<str>,
        fields: &'p [(Arc<str>, Node)],
        optional: &[bool],
    ) -> Result<Value<'a>> {
        let mut values = BTreeMap::new();
        for ((name, value), optional) in fields.iter().zip(optional) {
            let value = self.eval(value)?;
            if let Err(error) = enter(&mut values, name.clone(), value, *optional, || name.to_string()) {
                return Ok(error);
            }
        }
        Ok(Made::value(type_name.clone(), values))
    }
}

/// Sets an entry. An optional one without a value removes what was set before; `shown` is its key in the error about one whose
/// value is not optional.
fn enter<'a, K: Ord>(
    values: &mut BTreeMap<K, Value<'a>>,
    key: K,
    value: Value<'a>,
    optional: bool,
    shown: impl FnOnce() -> String,
) -> std::result::Result<(), Value<'a>> {
    match value {
        Value::Error(_) => return Err(value),
        Value::Optional(None) if optional => {
            values.remove(&key);
        }
        Value::Optional(Some(value)) if optional => {
            values.insert(key, (*value).clone());
        }
        other if optional => {
            let shown = shown();
            let text = other.text();
            return Err(Value::error(format!(
                "cannot initialize optional entry '{shown}' from non-optional value {text}"
            )));
        }
        value => {
            values.insert(key, value);
        }
    }
    Ok(())
}

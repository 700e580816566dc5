//! What of a configuration would replace a value as a whole.

use serde_json::Value;

use crate::path::PathElement;
use crate::schema::{Relation, TypeId, Types};
use crate::set::DEPTH_MAX;
use crate::value;

/// The maximum number of returned paths.
const PATHS_MAX: usize = 100;

impl Types {
    /// Collects the paths of atomic maps, structs and lists. Members of maps that are no fields are not looked at, as upstream.
    pub(super) fn atomics(&self, object: &Value, ty: TypeId, path: &str, depth: usize, found: &mut Vec<String>) {
        if depth > DEPTH_MAX || found.len() >= PATHS_MAX {
            return;
        }
        let atom = self.atom(ty);
        match (object, &atom.map, &atom.list) {
            (Value::Object(members), Some(map), _) => {
                if map.atomic {
                    found.push(path.to_owned());
                }
                for (name, member) in value::sorted(members) {
                    if let Some(field) = map.field(name) {
                        let path = format!("{path}{}", PathElement::field(name.as_str()));
                        self.atomics(member, field.ty, &path, depth + 1, found);
                    }
                }
            }
            (Value::Array(items), _, Some(list)) => {
                if matches!(list.relation, Relation::Atomic) {
                    found.push(path.to_owned());
                }
                for (index, item) in items.iter().enumerate() {
                    self.atomics(item, list.element, &format!("{path}[{index}]"), depth + 1, found);
                }
            }
            _ => {}
        }
    }
}

//! Items taken out of a value, or everything else.

use serde_json::{Map, Value};

use crate::path::PathElement;
use crate::schema::{Relation, Shape, TypeId, Types};
use crate::set::{DEPTH_MAX, FieldSet};

impl Types {
    /// Removes items in place. What loses all it had becomes null, and so do atomic values that the set looks into.
    pub(super) fn remove(&self, value: &mut Value, items: &FieldSet, ty: TypeId, depth: usize) {
        if depth > DEPTH_MAX {
            return;
        }
        let atom = self.atom(ty);
        match atom.shape(atom.choose(Some(value))) {
            Shape::Scalar(_) => {}
            Shape::Nothing => *value = Value::Null,
            Shape::Map(map) => {
                if let Value::Object(members) = value
                    && !map.atomic
                {
                    for node in &items.nodes {
                        let PathElement::Field(name) = &node.element else {
                            continue;
                        };
                        if node.member {
                            members.remove(&**name);
                        } else if let Some(member) = members.get_mut(&**name) {
                            self.remove(member, &node.children, map.member(name), depth + 1);
                        }
                    }
                    if !members.is_empty() {
                        return;
                    }
                }
                *value = Value::Null;
            }
            Shape::List(list) => {
                if let Value::Array(values) = value
                    && !matches!(list.relation, Relation::Atomic)
                {
                    values.retain_mut(|item| {
                        let element = self.element_of(list, item).ok();
                        match element.and_then(|element| items.node(&element)) {
                            Some(node) if node.member => false,
                            Some(node) => {
                                self.remove(item, &node.children, list.element, depth + 1);
                                true
                            }
                            None => true,
                        }
                    });
                    if !values.is_empty() {
                        return;
                    }
                }
                *value = Value::Null;
            }
        }
    }

    /// A copy of the items of a set.
    pub(super) fn extract(&self, value: &Value, items: &FieldSet, ty: TypeId, depth: usize) -> Value {
        if depth > DEPTH_MAX {
            return Value::Null;
        }
        let atom = self.atom(ty);
        match (atom.shape(atom.choose(Some(value))), value) {
            (Shape::Scalar(_), _) => value.clone(),
            (Shape::Map(map), Value::Object(members)) => {
                if map.atomic || members.is_empty() {
                    return value.clone();
                }
                let mut out = Map::new();
                for node in &items.nodes {
                    let PathElement::Field(name) = &node.element else {
                        continue;
                    };
                    let Some(member) = members.get(&**name) else {
                        continue;
                    };
                    // Upstream looks for a member's contents in the set of its parent.
                    let below = if node.member { items } else { &node.children };
                    let extracted = self.extract(member, below, map.member(name), depth + 1);
                    out.insert(name.as_ref().to_owned(), extracted);
                }
                if out.is_empty() { Value::Null } else { Value::Object(out) }
            }
            (Shape::List(list), Value::Array(values)) => {
                if matches!(list.relation, Relation::Atomic) || values.is_empty() {
                    return value.clone();
                }
                let kept = values.iter().filter_map(|item| {
                    let node = items.node(&self.element_of(list, item).ok()?)?;
                    if node.children.is_empty() {
                        return Some(item.clone());
                    }
                    Some(self.extract(item, &node.children, list.element, depth + 1))
                });
                let kept: Vec<Value> = kept.collect();
                if kept.is_empty() { Value::Null } else { Value::Array(kept) }
            }
            (Shape::Map(_) | Shape::List(_) | Shape::Nothing, _) => Value::Null,
        }
    }
}

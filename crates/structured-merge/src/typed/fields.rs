//! The fields that a value mentions.

use std::sync::Arc;

use serde_json::Value;

use super::{ValidationErrors, check_scalar, invalid_atom};
use crate::path::PathElement;
use crate::schema::{ListType, MapType, Relation, Shape, TypeId, Types};
use crate::set::{DEPTH_MAX, FieldSet, Node};
use crate::value;

/// Whether a value is in the set itself, and what is below it.
#[derive(Default)]
struct Found {
    member: bool,
    nodes: Vec<Node>,
}

impl Types {
    pub(super) fn to_field_set(&self, value: &Value, ty: TypeId) -> Result<FieldSet, ValidationErrors> {
        self.fields(value, ty, 0).map(|found| FieldSet::from_nodes(found.nodes))
    }

    fn fields(&self, value: &Value, ty: TypeId, depth: usize) -> Result<Found, ValidationErrors> {
        if depth > DEPTH_MAX {
            return Err(ValidationErrors::too_deep());
        }
        let leaf = Found { member: true, nodes: Vec::new() };
        let atom = self.atom(ty);
        match (atom.shape(atom.choose(Some(value))), value) {
            (Shape::Scalar(_), _) => Ok(leaf),
            (Shape::Map(map), _) if map.atomic => Ok(leaf),
            (Shape::List(ListType { relation: Relation::Atomic, .. }), _) => Ok(leaf),
            (Shape::Map(map), Value::Object(members)) => self.map_fields(map, members, depth),
            (Shape::List(list), Value::Array(items)) => self.list_fields(list, items, depth),
            (Shape::Map(_) | Shape::List(_), _) => Ok(Found::default()),
            (Shape::Nothing, _) => Err(invalid_atom()),
        }
    }

    fn map_fields(
        &self,
        map: &MapType,
        members: &serde_json::Map<String, Value>,
        depth: usize,
    ) -> Result<Found, ValidationErrors> {
        let mut nodes = Vec::with_capacity(members.len());
        for (name, value) in value::in_order(members) {
            let field = map.field(name);
            let element = match field {
                Some(field) => PathElement::Field(Arc::clone(&field.name)),
                None => PathElement::field(name.as_str()),
            };
            let found = match self.fields(value, field.map_or(map.element, |field| field.ty), depth + 1) {
                Ok(found) => found,
                Err(errors) => return Err(errors.under(&element)),
            };
            let empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
            let member = found.member || empty || field.is_none();
            push(&mut nodes, element, member, found.nodes);
        }
        Ok(Found { member: false, nodes })
    }

    fn list_fields(&self, list: &ListType, items: &[Value], depth: usize) -> Result<Found, ValidationErrors> {
        let items = self.items(list, items)?;
        let mut nodes = Vec::with_capacity(items.all.len());
        for (element, places) in items.groups() {
            // Items that share their element cannot be owned field by field.
            let below = match places {
                [place] => match self.fields(items.value(*place), list.element, depth + 1) {
                    Ok(found) => found.nodes,
                    Err(errors) => return Err(errors.under(element)),
                },
                _ => Vec::new(),
            };
            push(&mut nodes, element.clone(), true, below);
        }
        Ok(Found { member: false, nodes })
    }

    pub(super) fn may_fill(&self, set: &FieldSet, ty: TypeId) -> bool {
        let atom = self.atom(ty);
        set.nodes.iter().any(|node| {
            let below = match &node.element {
                PathElement::Field(name) => atom.map.as_ref().map(|map| map.member(name)),
                _ => atom.list.as_ref().map(|list| list.element),
            };
            let Some(below) = below else { return false };
            if !node.children.is_empty() {
                return self.may_fill(&node.children, below);
            }
            let atom = self.atom(below);
            let is_granular = |list: &ListType| !matches!(list.relation, Relation::Atomic);
            let may_have_parts =
                atom.map.as_ref().is_some_and(|map| !map.atomic) || atom.list.as_ref().is_some_and(is_granular);
            may_have_parts && atom.scalar.is_none()
        })
    }

    pub(super) fn is_plain(&self, value: &Value, ty: TypeId, depth: usize) -> bool {
        if depth > DEPTH_MAX {
            return false;
        }
        let atom = self.atom(ty);
        match (atom.shape(atom.choose(Some(value))), value) {
            (Shape::Nothing, _) => false,
            // Of a type like `IntOrString`, of which nothing is known.
            (Shape::Map(_), Value::Object(_)) | (Shape::List(_), Value::Array(_)) if atom.scalar.is_some() => false,
            (Shape::Map(map), Value::Object(members)) if !map.atomic => {
                members.iter().all(|(name, member)| self.is_plain(member, map.member(name), depth + 1))
            }
            (Shape::List(list), Value::Array(items)) => self.has_plain_items(list, items, depth),
            (Shape::Scalar(scalar), _) => check_scalar(scalar, Some(value), "").is_none(),
            _ => true,
        }
    }

    pub(super) fn has_plain_items(&self, list: &ListType, items: &[Value], depth: usize) -> bool {
        let is_plain = |item: &Value| self.is_plain(item, list.element, depth + 1);
        match &list.relation {
            Relation::Atomic => true,
            Relation::Set => items.iter().all(|item| {
                let is_named = !matches!(item, Value::Object(_) | Value::Array(_) | Value::Null);
                is_named && is_plain(item)
            }),
            Relation::Keyed(keys) => items.iter().all(|item| {
                let has_key = keys.iter().any(|key| item.get(&**key).is_some());
                (has_key || self.element_of(list, item).is_ok()) && is_plain(item)
            }),
        }
    }

    /// The set with the struct fields that lead to its paths.
    pub(super) fn with_named_fields(&self, set: &FieldSet, ty: TypeId) -> FieldSet {
        let map = self.atom(ty).map.as_ref();
        let nodes = set.nodes.iter().map(|node| {
            let named = match (&node.element, map) {
                (PathElement::Field(name), Some(map)) => map.field(name).is_some() && !node.children.is_empty(),
                _ => false,
            };
            let below = super::type_below(self, ty, &node.element);
            let children = self.with_named_fields(&node.children, below);
            Node { element: node.element.clone(), member: node.member || named, children }
        });
        FieldSet { nodes: nodes.collect() }
    }
}

fn push(nodes: &mut Vec<Node>, element: PathElement, member: bool, below: Vec<Node>) {
    if member || !below.is_empty() {
        nodes.push(Node { element, member, children: FieldSet::from_nodes(below) });
    }
}

//! Field sets that were written under an older schema.

use crate::path::PathElement;
use crate::schema::{MapType, Relation, Scalar, Shape, TypeId, Types};
use crate::set::{FieldSet, Node};

impl Types {
    pub(super) fn reconcile_root(&self, mut set: FieldSet, ty: TypeId) -> FieldSet {
        let atom = self.atom(ty);
        if let Shape::Map(map) = atom.shape(atom.all())
            && !map.atomic
        {
            self.reconcile_members(map, &mut set);
        }
        set
    }

    /// Makes a node a leaf where its type has become atomic. The other way round nothing can be known.
    fn reconcile(&self, node: &mut Node, ty: TypeId) {
        let atom = self.atom(ty);
        match atom.shape(atom.all()) {
            Shape::Scalar(_) | Shape::Nothing => {}
            Shape::Map(map) => {
                if self.is_deduced(map) {
                    return;
                }
                if map.atomic {
                    become_leaf(node);
                } else {
                    self.reconcile_members(map, &mut node.children);
                }
            }
            Shape::List(list) => {
                if let Relation::Atomic = list.relation {
                    become_leaf(node);
                } else {
                    for child in &mut node.children.nodes {
                        self.reconcile(child, list.element);
                    }
                }
            }
        }
    }

    fn reconcile_members(&self, map: &MapType, set: &mut FieldSet) {
        if self.is_deduced(map) {
            return;
        }
        for node in &mut set.nodes {
            let ty = match &node.element {
                PathElement::Field(name) => map.member(name),
                _ => map.element,
            };
            if ty != TypeId::NONE {
                self.reconcile(node, ty);
            }
        }
    }

    /// Whether all that is known of a map is that it is one.
    fn is_deduced(&self, map: &MapType) -> bool {
        let untyped = || self.atom(map.element).scalar == Some(Scalar::Untyped);
        map.fields.is_empty() && (map.element == TypeId::DEDUCED || untyped())
    }
}

fn become_leaf(node: &mut Node) {
    if !node.children.is_empty() {
        node.member = true;
        node.children = FieldSet::default();
    }
}

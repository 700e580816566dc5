//! What changed between two values.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::items::Items;
use super::{ValidationErrors, check_scalar, invalid_atom};
use crate::path::PathElement;
use crate::schema::{Atom, Choice, ListType, MapType, Relation, Shape, TypeId, Types};
use crate::set::{DEPTH_MAX, FieldSet, Node};
use crate::value;

/// The number of lists within each other that are looked at as a whole before their items are: containers, what each of them has.
const LISTS_LOOKED_AT_MAX: usize = 3;

/// The fields that one object has and another lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Fields that only the new object has.
    pub added: FieldSet,
    /// Fields that both have, with different values.
    pub modified: FieldSet,
    /// Fields that only the old object has.
    pub removed: FieldSet,
}

/// The changes at and below one value.
#[derive(Default)]
struct Changes {
    added: Part,
    modified: Part,
    removed: Part,
}

#[derive(Default)]
struct Part {
    member: bool,
    nodes: Vec<Node>,
}

/// Two values of one type, of which one may be absent.
#[derive(Clone, Copy)]
struct Pair<'v> {
    old: Option<&'v Value>,
    new: Option<&'v Value>,
}

/// The members of an object, if there is one.
type Members<'v> = Option<&'v Map<String, Value>>;

/// The place of a pair.
#[derive(Clone, Copy)]
struct Place {
    depth: usize,
    /// The number of lists around it that are known to have changed.
    changed_lists: usize,
}

impl Comparison {
    /// Whether nothing changed.
    pub fn is_same(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// The same comparison, with each set passed through `filter`.
    #[must_use]
    pub(crate) fn map(self, filter: impl Fn(FieldSet) -> FieldSet) -> Self {
        Self { added: filter(self.added), modified: filter(self.modified), removed: filter(self.removed) }
    }
}

impl Changes {
    fn into_sets(self) -> Comparison {
        Comparison {
            added: FieldSet::from_nodes(self.added.nodes),
            modified: FieldSet::from_nodes(self.modified.nodes),
            removed: FieldSet::from_nodes(self.removed.nodes),
        }
    }

    /// Puts the changes of a child into its parent's.
    fn take(&mut self, element: &PathElement, child: Self) {
        self.added.take(element, child.added);
        self.modified.take(element, child.modified);
        self.removed.take(element, child.removed);
    }
}

impl Part {
    fn take(&mut self, element: &PathElement, child: Self) {
        if child.member || !child.nodes.is_empty() {
            let children = FieldSet::from_nodes(child.nodes);
            self.nodes.push(Node { element: element.clone(), member: child.member, children });
        }
    }

    fn mark(&mut self, element: &PathElement) {
        self.take(element, Self { member: true, nodes: Vec::new() });
    }
}

impl<'v> Pair<'v> {
    /// The objects among the two.
    fn maps(self) -> (Members<'v>, Members<'v>) {
        (self.old.and_then(Value::as_object), self.new.and_then(Value::as_object))
    }

    /// The lists among the two, empty where a value is none.
    fn lists(self) -> (&'v [Value], &'v [Value]) {
        let list = |value: Option<&'v Value>| value.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        (list(self.old), list(self.new))
    }
}

impl Types {
    pub(super) fn compare_root(&self, old: &Value, new: &Value, ty: TypeId) -> Result<Comparison, ValidationErrors> {
        let pair = Pair { old: Some(old), new: Some(new) };
        self.compare(pair, ty, Place { depth: 0, changed_lists: 0 }).map(Changes::into_sets)
    }

    fn compare(&self, pair: Pair<'_>, ty: TypeId, place: Place) -> Result<Changes, ValidationErrors> {
        if place.depth > DEPTH_MAX {
            return Err(ValidationErrors::too_deep());
        }
        let atom = self.atom(ty);
        let as_old = atom.choose(pair.old);
        let as_new = atom.choose(pair.new);
        let mut changes = Changes::default();
        let choice = if pair.new.is_none() { as_old } else { as_new };
        // A value that has become another kind of value is looked at as both.
        if pair.old.is_some() && pair.new.is_some() && as_old != as_new {
            self.compare_as(pair, (atom, as_old), place, &mut changes)?;
        }
        let leaf = self.compare_as(pair, (atom, choice), place, &mut changes)?;
        if !leaf {
            changes.added.member |= pair.old.is_none();
            changes.removed.member |= pair.old.is_some() && pair.new.is_none();
        }
        Ok(changes)
    }

    /// Compares two values as one kind of value; returns whether they are leaves.
    fn compare_as(
        &self,
        pair: Pair<'_>,
        (atom, choice): (&Atom, Choice),
        place: Place,
        changes: &mut Changes,
    ) -> Result<bool, ValidationErrors> {
        let leaf = match atom.shape(choice) {
            Shape::Nothing => return Err(invalid_atom()),
            Shape::Scalar(scalar) => {
                let old = check_scalar(scalar, pair.old, "lhs: ");
                if let (Some(mut errors), Some(more)) = (old, check_scalar(scalar, pair.new, "rhs: ")) {
                    errors.extend(more);
                    return Err(errors);
                }
                true
            }
            Shape::Map(map) => {
                let (old, new) = pair.maps();
                let empty = old.is_none_or(Map::is_empty) && new.is_none_or(Map::is_empty);
                if !map.atomic && !empty {
                    self.compare_maps(map, old, new, place, changes)?;
                }
                map.atomic || empty
            }
            Shape::List(list) => {
                let (old, new) = pair.lists();
                let leaf = matches!(list.relation, Relation::Atomic) || (old.is_empty() && new.is_empty());
                if !leaf {
                    self.compare_lists(list, old, new, place, changes)?;
                }
                leaf
            }
        };
        if leaf {
            match (pair.old, pair.new) {
                (None, _) => changes.added.member = true,
                (Some(_), None) => changes.removed.member = true,
                (Some(old), Some(new)) => changes.modified.member |= !value::equal(old, new),
            }
        }
        Ok(leaf)
    }

    fn compare_maps(
        &self,
        map: &MapType,
        old: Members<'_>,
        new: Members<'_>,
        place: Place,
        changes: &mut Changes,
    ) -> Result<(), ValidationErrors> {
        for (name, before) in old.into_iter().flatten() {
            let pair = Pair { old: Some(before), new: new.and_then(|new| new.get(name)) };
            self.compare_member(map, name, pair, place, changes)?;
        }
        for (name, after) in new.into_iter().flatten() {
            if old.is_none_or(|old| !old.contains_key(name)) {
                self.compare_member(map, name, Pair { old: None, new: Some(after) }, place, changes)?;
            }
        }
        Ok(())
    }

    fn compare_member(
        &self,
        map: &MapType,
        name: &str,
        pair: Pair<'_>,
        place: Place,
        changes: &mut Changes,
    ) -> Result<(), ValidationErrors> {
        let field = map.field(name);
        let ty = field.map_or(map.element, |field| field.ty);
        let element = || match field {
            Some(field) => PathElement::Field(Arc::clone(&field.name)),
            None => PathElement::field(name),
        };
        match self.compare(pair, ty, Place { depth: place.depth + 1, ..place }) {
            Ok(child) => {
                changes.take(&element(), child);
                Ok(())
            }
            Err(errors) => Err(errors.under(&element())),
        }
    }

    fn compare_lists(
        &self,
        list: &ListType,
        old: &[Value],
        new: &[Value],
        place: Place,
        changes: &mut Changes,
    ) -> Result<(), ValidationErrors> {
        // Most writes leave most lists alone. Looking costs one walk for each list around, so it is done for few of them; in
        // a list that has changed, what cannot be compared is an error even if it is the same.
        let is_same = place.changed_lists < LISTS_LOOKED_AT_MAX && old == new;
        if is_same && (place.changed_lists == 0 || self.has_plain_items(list, new, place.depth)) {
            return Ok(());
        }
        let place = Place { depth: place.depth + 1, changed_lists: place.changed_lists + 1 };
        let old = self.items(list, old)?;
        let new = self.items(list, new)?;
        let mut from = 0;
        for (element, befores) in old.groups() {
            let afters = new.places_from(element, &mut from);
            self.compare_items(list, element, (&old, befores), (&new, afters), place, changes)?;
        }
        let mut from = 0;
        for (element, afters) in new.groups() {
            if old.places_from(element, &mut from).is_empty() {
                self.compare_items(list, element, (&old, &[]), (&new, afters), place, changes)?;
            }
        }
        Ok(())
    }

    /// Compares the items that have one element; more than one where a list has it twice.
    fn compare_items(
        &self,
        list: &ListType,
        element: &PathElement,
        (old, befores): (&Items<'_>, &[usize]),
        (new, afters): (&Items<'_>, &[usize]),
        place: Place,
        changes: &mut Changes,
    ) -> Result<(), ValidationErrors> {
        let first_old = befores.first().map(|place| old.value(*place));
        let first_new = afters.first().map(|place| new.value(*place));
        let mut pair = Pair { old: first_old, new: first_new };
        if befores.len() > 1 && afters.len() > 1 {
            let same = |(a, b): (&usize, &usize)| value::equal(old.value(*a), new.value(*b));
            if befores.len() != afters.len() || !befores.iter().zip(afters).all(same) {
                changes.modified.mark(element);
            }
            return Ok(());
        }
        // Duplicates are owned as one item; when they come or go, the fields of the single item do the opposite.
        if befores.len() > 1 {
            pair.old = None;
            changes.removed.mark(element);
        }
        if afters.len() > 1 {
            pair.new = None;
            changes.added.mark(element);
        }
        if pair.old.is_none() && pair.new.is_none() {
            return Ok(());
        }
        match self.compare(pair, list.element, place) {
            Ok(child) => {
                changes.take(element, child);
                Ok(())
            }
            Err(errors) => Err(errors.under(element)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::schema::Schema;

    /// Keyed lists within keyed lists, whose items also have a set and an atomic list.
    fn schema() -> Schema {
        let list = |kind: &str, items: &Value| json!({"type": "array", "x-kubernetes-list-type": kind, "items": items});
        let text = json!({"type": "string"});
        let nested = (0..3).fold(json!({}), |inner, _| {
            let item = json!({"type": "object", "properties": {
                "a": text, "b": list("set", &text), "c": list("atomic", &text), "d": inner,
            }});
            let mut keyed = list("map", &item);
            keyed["x-kubernetes-list-map-keys"] = json!(["a"]);
            keyed
        });
        Schema::custom_resource(Some(&json!({"type": "object", "properties": {"d": nested}}))).expect("structural")
    }

    fn items() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(Value::Null), Just(json!(1)), "[xy]".prop_map(Value::from)];
        leaf.prop_recursive(6, 20, 3, |inner| {
            let item = (prop::option::of("[xy]"), prop::sample::select(&["b", "c", "d"][..]), inner.clone());
            let item = item.prop_map(|(key, name, value)| match key {
                Some(key) => json!({"a": key, name: value}),
                None => json!({name: value}),
            });
            prop_oneof![
                3 => prop::collection::vec(item, 0..3).prop_map(Value::from),
                1 => prop::collection::vec(inner, 0..3).prop_map(Value::from),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn a_plain_list_is_the_same_as_itself_item_by_item(items in items()) {
            let schema = schema();
            let object = json!({"d": items});
            if schema.is_plain(&object) {
                let pair = Pair { old: Some(&object), new: Some(&object) };
                let place = Place { depth: 0, changed_lists: LISTS_LOOKED_AT_MAX };
                let same = schema.types.compare(pair, schema.root, place).map(Changes::into_sets);
                prop_assert_eq!(same, Ok(Comparison::default()));
            }
        }
    }
}

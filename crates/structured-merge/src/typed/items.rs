//! Which item of a list is which.

use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::Value;

use super::ValidationErrors;
use crate::path::PathElement;
use crate::schema::{ListType, Relation, Types};

/// The items of a list by their element.
pub(super) struct Items<'v> {
    /// The items with their elements, in the list's order.
    pub(super) all: Vec<(PathElement, &'v Value)>,
    /// Places in `all`, ordered by element and then by place.
    order: Vec<usize>,
}

impl Types {
    /// The element of an item, or why it has none.
    pub(super) fn element_of(&self, list: &ListType, item: &Value) -> Result<PathElement, String> {
        match &list.relation {
            Relation::Atomic => Err("invalid indexing of non-associative list".to_owned()),
            Relation::Keyed(keys) => self.keyed_element(list, keys, item),
            Relation::Set => match item {
                Value::Object(_) => Err("associative list without keys has an element that's a map type".to_owned()),
                Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
                Value::Null => Err("associative list without keys has an element that's an explicit null".to_owned()),
                _ => Ok(PathElement::value(item.clone())),
            },
        }
    }

    fn keyed_element(&self, list: &ListType, keys: &[Arc<str>], item: &Value) -> Result<PathElement, String> {
        let members = match item {
            Value::Object(members) => members,
            Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
            _ => return Err("associative list with keys may not have non-map elements".to_owned()),
        };
        // Almost all lists have one key, and almost all items have it.
        if let [name] = keys
            && let Some(value) = members.get(&**name)
        {
            return Ok(PathElement::Key(Arc::new([(Arc::clone(name), value.clone())])));
        }
        let mut found = Vec::with_capacity(keys.len());
        for name in keys {
            if let Some(value) = members.get(&**name) {
                found.push((Arc::clone(name), value.clone()));
                continue;
            }
            let Some(map) = &self.atom(list.element).map else {
                let why = "associative list may not have non-map types";
                return Err(format!("couldn't find default value for {name}: {why}"));
            };
            // A key that is absent and has no default is no part of the item's name.
            if let Some(default) = map.field(name).and_then(|field| field.default.as_ref()) {
                found.push((Arc::clone(name), default.clone()));
            }
        }
        if found.is_empty() {
            let names: Vec<String> = keys.iter().map(|name| format!("{name:?}")).collect();
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values \
                 for any key fields)",
                names.join(" ")
            ));
        }
        Ok(PathElement::key(found))
    }

    /// The items of a list by their element.
    pub(super) fn items<'v>(&self, list: &ListType, values: &'v [Value]) -> Result<Items<'v>, ValidationErrors> {
        let mut all = Vec::with_capacity(values.len());
        let mut errors = ValidationErrors(Vec::new());
        for (index, value) in values.iter().enumerate() {
            match self.element_of(list, value) {
                Ok(element) => all.push((element, value)),
                Err(why) => errors.extend(ValidationErrors::one(format!("element {index}: {why}"))),
            }
            if errors.is_full() {
                break;
            }
        }
        errors.into_result()?;
        Ok(Items::new(all))
    }
}

// === impl Items ===

impl<'v> Items<'v> {
    pub(super) fn new(all: Vec<(PathElement, &'v Value)>) -> Self {
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_by(|a, b| all[*a].0.cmp(&all[*b].0));
        Self { all, order }
    }

    /// The places of the items that have this element, in the list's order.
    pub(super) fn places(&self, element: &PathElement) -> &[usize] {
        let start = self.order.partition_point(|place| self.all[*place].0.cmp(element) == Ordering::Less);
        let len = self.order[start..].partition_point(|place| self.all[*place].0.cmp(element) == Ordering::Equal);
        &self.order[start..start + len]
    }

    /// [`places`](Self::places) of elements that are asked for in order. `from` is where the last search ended, 0 at first.
    pub(super) fn places_from(&self, element: &PathElement, from: &mut usize) -> &[usize] {
        let count = |order: &[usize], wanted: Ordering| {
            order.iter().take_while(|place| self.all[**place].0.cmp(element) == wanted).count()
        };
        let start = *from + count(&self.order[*from..], Ordering::Less);
        *from = start + count(&self.order[start..], Ordering::Equal);
        &self.order[start..*from]
    }

    /// Whether the same elements are at the same places.
    pub(super) fn is_aligned_with(&self, other: &Self) -> bool {
        self.all.len() == other.all.len() && self.all.iter().zip(&other.all).all(|(a, b)| a.0 == b.0)
    }

    /// The elements in order, each with the places of its items.
    pub(super) fn groups(&self) -> impl Iterator<Item = (&PathElement, &[usize])> {
        self.order.chunk_by(|a, b| self.all[*a].0 == self.all[*b].0).map(|places| (&self.all[places[0]].0, places))
    }

    /// The value at a place.
    pub(super) fn value(&self, place: usize) -> &'v Value {
        self.all[place].1
    }
}

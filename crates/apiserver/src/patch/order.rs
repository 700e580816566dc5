//! In which order the elements of a merged list stand.
//!
//! The patch's order counts most (`$setElementOrder`, else the order in which the patch names elements), then the order
//! in the object. Elements that only the object has keep their place before the first patched one that they stood
//! before.

use std::collections::HashMap;

use serde_json::Value;

use super::PatchError;
use super::work::Work;

/// The cost of looking an element up, besides the bytes of its identity.
const STEPS_PER_ELEMENT: usize = 16;
/// Up to this many elements upstream sorts by insertion, which shows when elements are in no order.
const INSERTION_SORTED_MAX: usize = 20;

/// The identity of elements: one of their fields, or the whole element.
#[derive(Clone, Copy)]
pub(super) struct Identity<'a>(pub(super) Option<&'a str>);

/// The positions of the elements of a list. Lists come from clients and may be long, so they are never searched through
/// for each element of another.
pub(super) struct Places<'a> {
    identity: Identity<'a>,
    places: HashMap<String, usize>,
}

/// An element of a merged list, and where it stands in the orders that count. What elements are known by can be long, so
/// it is looked at once.
struct Placed {
    element: Value,
    by_patch: Option<usize>,
    by_server: Option<usize>,
}

/// Puts the elements of a merged list in order: first cut into those that `patch_order` names and the others. The server's
/// order is that of the first `server_count` elements of `server_order`.
pub(super) fn arrange(
    merged: Vec<Value>,
    patch_order: &Places<'_>,
    server_order: &Places<'_>,
    server_count: usize,
) -> Vec<Value> {
    let placed = merged.into_iter().map(|element| {
        let by_patch = patch_order.get(&element);
        let by_server = server_order.get(&element).filter(|place| *place < server_count);
        Placed { element, by_patch, by_server }
    });
    let (mut patched, mut server_only): (Vec<_>, Vec<_>) = placed.partition(|placed| placed.by_patch.is_some());
    sort(&mut patched, |placed| placed.by_patch);
    sort(&mut server_only, |placed| placed.by_server);
    interleave(server_only, patched)
}

fn sort(elements: &mut [Placed], place: impl Fn(&Placed) -> Option<usize>) {
    let is_ordered = elements.iter().all(|element| place(element).is_some());
    if is_ordered || elements.len() > INSERTION_SORTED_MAX {
        elements.sort_by_key(place);
        return;
    }
    // An element that is in no order goes before every other, and every other before it.
    let is_less = |left: &Placed, right: &Placed| match (place(left), place(right)) {
        (Some(left), Some(right)) => left < right,
        _ => true,
    };
    for end in 1..elements.len() {
        let mut at = end;
        while at > 0 && is_less(&elements[at], &elements[at - 1]) {
            elements.swap(at, at - 1);
            at -= 1;
        }
    }
}

/// Merges two sorted lists: an element of `left` comes first only if both are in the server's order, and in that order.
fn interleave(left: Vec<Placed>, right: Vec<Placed>) -> Vec<Value> {
    let mut all = Vec::with_capacity(left.len() + right.len());
    let mut left = left.into_iter().peekable();
    let mut right = right.into_iter().peekable();
    while let (Some(from_left), Some(from_right)) = (left.peek(), right.peek()) {
        let is_left_first = matches!(
            (from_left.by_server, from_right.by_server),
            (Some(left), Some(right)) if left < right
        );
        all.extend(if is_left_first { left.next() } else { right.next() });
    }
    all.into_iter().chain(left).chain(right).map(|placed| placed.element).collect()
}

// === impl Identity ===

impl Identity<'_> {
    /// Returns the identity of an element as text: equal values have equal texts, because keys are sorted.
    pub(super) fn of(self, element: &Value) -> String {
        match self.0 {
            None => element.to_string(),
            Some(key) => element.get(key).unwrap_or(&Value::Null).to_string(),
        }
    }
}

// === impl Places ===

impl<'a> Places<'a> {
    /// Returns the positions of the elements of a list; the work for their identities is counted.
    pub(super) fn of(list: &[Value], identity: Identity<'a>, work: &Work) -> Result<Self, PatchError> {
        let mut places = Self { identity, places: HashMap::with_capacity(list.len()) };
        for (place, element) in list.iter().enumerate() {
            places.add(element, place, work)?;
        }
        Ok(places)
    }

    /// Remembers where an element is; of several that are known by the same, the first. Returns where that is.
    pub(super) fn add(&mut self, element: &Value, place: usize, work: &Work) -> Result<usize, PatchError> {
        let known_by = self.identity.of(element);
        work.spend(known_by.len() + STEPS_PER_ELEMENT)?;
        Ok(*self.places.entry(known_by).or_insert(place))
    }

    pub(super) fn get(&self, element: &Value) -> Option<usize> {
        self.places.get(&self.identity.of(element)).copied()
    }
}

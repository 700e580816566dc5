//! In which order the elements of a merged list stand.
//!
//! The patch's order counts most (`$setElementOrder`, else the order in which the patch names elements), then the order
//! in the object. Elements that only the object has keep their place before the first patched one that they stood
//! before.

use std::collections::HashMap;

use serde_json::Value;

/// Up to this many elements upstream sorts by insertion, which shows when elements are in no order.
const INSERTION_SORTED_MAX: usize = 20;

/// How elements are told apart: by a field of theirs, or as they are.
#[derive(Clone, Copy)]
pub(super) struct Identity<'a>(pub(super) Option<&'a str>);

/// Where the elements of a list are. Lists come from clients and may be long, so they are never searched through for
/// each element of another.
pub(super) struct Places<'a> {
    identity: Identity<'a>,
    places: HashMap<String, usize>,
}

/// Puts the elements of a merged list in order: first cut into those that `patch_order` names and the others.
pub(super) fn arrange(
    merged: Vec<Value>,
    patch_order: &[Value],
    server_order: &[Value],
    identity: Identity<'_>,
) -> Vec<Value> {
    let (patch_order, server_order) = (Places::of(patch_order, identity), Places::of(server_order, identity));
    let (mut patched, mut server_only): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|element| patch_order.get(element).is_some());
    sort(&mut patched, &patch_order);
    sort(&mut server_only, &server_order);
    interleave(server_only, patched, &server_order)
}

fn sort(elements: &mut [Value], order: &Places<'_>) {
    let is_ordered = elements.iter().all(|element| order.get(element).is_some());
    if is_ordered || elements.len() > INSERTION_SORTED_MAX {
        elements.sort_by_cached_key(|element| order.get(element));
        return;
    }
    // An element that is in no order goes before every other, and every other before it.
    let is_less = |left: &Value, right: &Value| match (order.get(left), order.get(right)) {
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

/// Merges two sorted lists: an element of `left` comes first only if both are in `order`, and in that order.
fn interleave(left: Vec<Value>, right: Vec<Value>, order: &Places<'_>) -> Vec<Value> {
    let mut all = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    while let (Some(from_left), Some(from_right)) = (left.peek(), right.peek()) {
        let is_left_first = matches!(
            (order.get(from_left), order.get(from_right)),
            (Some(left), Some(right)) if left < right
        );
        all.extend(if is_left_first { left.next() } else { right.next() });
    }
    all.extend(left);
    all.extend(right);
    all
}

// === impl Identity ===

impl Identity<'_> {
    /// What an element is known by, as text: equal values have equal texts, because keys are sorted.
    fn of(self, element: &Value) -> String {
        match self.0 {
            None => element.to_string(),
            Some(key) => element.get(key).unwrap_or(&Value::Null).to_string(),
        }
    }

    /// Whether two elements are known by the same.
    pub(super) fn is_same(self, left: &Value, right: &Value) -> bool {
        self.of(left) == self.of(right)
    }
}

// === impl Places ===

impl<'a> Places<'a> {
    pub(super) fn of(list: &[Value], identity: Identity<'a>) -> Self {
        let mut places = Self { identity, places: HashMap::with_capacity(list.len()) };
        list.iter().enumerate().for_each(|(place, element)| places.add(element, place));
        places
    }

    /// Remembers where an element is; of several that are known by the same, the first.
    pub(super) fn add(&mut self, element: &Value, place: usize) {
        self.places.entry(self.identity.of(element)).or_insert(place);
    }

    pub(super) fn get(&self, element: &Value) -> Option<usize> {
        self.places.get(&self.identity.of(element)).copied()
    }
}

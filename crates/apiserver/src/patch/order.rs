//! In which order the elements of a merged list stand.
//!
//! The patch's order counts most (`$setElementOrder`, else the order in which the patch names elements), then the order
//! in the object. Elements that only the object has keep their place before the first patched one that they stood
//! before.

use serde_json::Value;

/// How elements are told apart: by a field of theirs, or as they are.
#[derive(Clone, Copy)]
pub(super) struct Identity<'a>(pub(super) Option<&'a str>);

/// Puts the elements of a merged list in order: first cut into those that `patch_order` names and the others.
pub(super) fn arrange(
    merged: Vec<Value>,
    patch_order: &[Value],
    server_order: &[Value],
    identity: Identity<'_>,
) -> Vec<Value> {
    let (mut patched, mut server_only): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|element| identity.index(patch_order, element).is_some());
    sort(&mut patched, patch_order, identity);
    sort(&mut server_only, server_order, identity);
    interleave(server_only, patched, server_order, identity)
}

fn sort(elements: &mut [Value], order: &[Value], identity: Identity<'_>) {
    elements.sort_by_cached_key(|element| identity.index(order, element).unwrap_or(usize::MAX));
}

/// Merges two sorted lists: an element of `left` comes first only if both are in `order`, and in that order.
fn interleave(left: Vec<Value>, right: Vec<Value>, order: &[Value], identity: Identity<'_>) -> Vec<Value> {
    let mut all = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    while let (Some(from_left), Some(from_right)) = (left.peek(), right.peek()) {
        let places = (identity.index(order, from_left), identity.index(order, from_right));
        let is_left_first = matches!(places, (Some(left), Some(right)) if left < right);
        all.extend(if is_left_first { left.next() } else { right.next() });
    }
    all.extend(left);
    all.extend(right);
    all
}

// === impl Identity ===

impl Identity<'_> {
    /// What an element is known by.
    fn of(self, element: &Value) -> &Value {
        match self.0 {
            None => element,
            Some(key) => element.get(key).unwrap_or(&Value::Null),
        }
    }

    /// Where this element is in a list.
    pub(super) fn index(self, list: &[Value], element: &Value) -> Option<usize> {
        let sought = self.of(element);
        list.iter().position(|other| self.of(other) == sought)
    }
}

//! The objects of an incomplete list.

use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use steersman_base::{Meta, ObjectKey};
use steersman_model::View;

/// Collects a list. Later states of an object replace earlier ones, and deletions remove it.
///
/// Servers list in order of keys, without repeating any. As long as that holds, nothing is looked up and no index is
/// kept, so that a large list costs no more than its objects.
#[derive(Debug)]
pub(super) struct Staging<V> {
    objects: Vec<Arc<V>>,
    /// The position of each object; created when something comes out of order.
    places: Option<HashMap<ObjectKey, usize, RandomState>>,
}

// === impl Staging ===

impl<V: View> Staging<V> {
    pub(super) fn new() -> Self {
        Self { objects: Vec::new(), places: None }
    }

    /// Adds an object, or a newer state of it.
    pub(super) fn put(&mut self, object: Arc<V>) {
        if self.places.is_none() {
            let in_order = self.objects.last().is_none_or(|last| follows(object.meta(), last.meta()));
            if in_order {
                self.objects.push(object);
                return;
            }
        }
        let key = object.meta().key();
        let end = self.objects.len();
        let place = *self.places().entry(key).or_insert(end);
        match self.objects.get_mut(place) {
            Some(held) if held.meta().resource_version.is_newer_than(&object.meta().resource_version) => {}
            Some(held) => *held = object,
            None => self.objects.push(object),
        }
    }

    /// Removes an object.
    pub(super) fn remove(&mut self, key: &ObjectKey) {
        let Some(place) = self.places().remove(key) else { return };
        self.objects.swap_remove(place);
        if let Some(moved) = self.objects.get(place) {
            let key = moved.meta().key();
            self.places().insert(key, place);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    pub(super) fn into_objects(self) -> Vec<Arc<V>> {
        self.objects
    }

    fn places(&mut self) -> &mut HashMap<ObjectKey, usize, RandomState> {
        let objects = &self.objects;
        self.places.get_or_insert_with(|| {
            objects.iter().enumerate().map(|(place, object)| (object.meta().key(), place)).collect()
        })
    }
}

/// Whether `next` comes behind `last` in the order of etcd keys, which is that of `namespace/name`.
fn follows(next: &Meta, last: &Meta) -> bool {
    if next.namespace == last.namespace {
        return next.name > last.name;
    }
    let path = |meta: &Meta| format!("{}/{}", meta.namespace, meta.name);
    path(next) > path(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use steersman_model::{DecodeError, Encoded};

    struct Thing(Meta);
    impl View for Thing {
        fn meta(&self) -> &Meta {
            &self.0
        }
        fn decode(_: Encoded<'_>) -> Result<Self, DecodeError> {
            Err(DecodeError::JsonOnly { kind: "Thing" })
        }
    }

    fn thing(namespace: &str, name: &str, version: &str) -> Arc<Thing> {
        Arc::new(Thing(Meta {
            namespace: namespace.into(),
            name: name.into(),
            resource_version: version.into(),
            ..Meta::default()
        }))
    }

    fn shown(staging: Staging<Thing>) -> Vec<String> {
        let show = |thing: Arc<Thing>| format!("{}@{}", thing.0.key(), thing.0.resource_version);
        staging.into_objects().into_iter().map(show).collect()
    }

    #[test]
    fn a_list_in_order_needs_no_index() {
        let mut staging = Staging::new();
        for (namespace, name) in [("a-b", "x"), ("a", "x"), ("a", "y"), ("b", "a")] {
            staging.put(thing(namespace, name, "1"));
        }
        assert!(staging.places.is_none(), "`a-b/` is before `a/`, as in etcd");
        assert_eq!(shown(staging), ["a-b/x@1", "a/x@1", "a/y@1", "b/a@1"]);
    }

    #[test]
    fn the_last_state_of_an_object_counts_and_what_went_is_gone() {
        let mut staging = Staging::new();
        for (name, version) in [("a", "1"), ("b", "1"), ("c", "1"), ("a", "3"), ("a", "2"), ("d", "4")] {
            staging.put(thing("n", name, version));
        }
        staging.remove(&ObjectKey::new("n", "b"));
        staging.remove(&ObjectKey::new("n", "none"));
        staging.put(thing("n", "d", "5"));
        assert_eq!(shown(staging), ["n/a@3", "n/d@5", "n/c@1"]);
    }
}

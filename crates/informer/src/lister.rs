//! Listers: reading a store by key, by namespace, by label selector.

use std::fmt;
use std::sync::{Arc, OnceLock};

use steersman_base::{Istr, ObjectKey, Selector};
use steersman_model::View;

use crate::keyed_queue::KeyRef;
use crate::store::{Index, Snapshot, Store};

/// Reads the store of an informer. Cheap to clone. Objects are shared and immutable.
pub struct Lister<V> {
    pub(crate) store: Arc<Store<V>>,
    pub(crate) by_namespace: Arc<OnceLock<Index<Istr, V>>>,
}

/// Reads one namespace of a store.
#[derive(Debug)]
pub struct NamespaceLister<'a, V> {
    lister: &'a Lister<V>,
    namespace: &'a str,
}

// === impl Lister ===

impl<V: View> Lister<V> {
    pub(crate) fn new(store: Arc<Store<V>>) -> Self {
        Self { store, by_namespace: Arc::default() }
    }

    /// Returns the object with this key.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<V>> {
        self.store.get(key)
    }

    /// Returns every object.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<V>> {
        self.snapshot().to_vec()
    }

    /// Returns a snapshot of every object, without copying a pointer to each: to count or to search.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<V> {
        self.store.snapshot()
    }

    /// Returns the objects whose labels match.
    #[must_use]
    pub fn select(&self, selector: &Selector) -> Vec<Arc<V>> {
        self.filter(|object| selector.matches(&object.meta().labels))
    }

    /// Returns the objects for which `keep` is true.
    #[must_use]
    pub fn filter(&self, keep: impl Fn(&V) -> bool) -> Vec<Arc<V>> {
        self.snapshot().iter().filter(|object| keep(object)).cloned().collect()
    }

    /// Returns a lister of one namespace.
    #[must_use]
    pub fn namespace<'a>(&'a self, namespace: &'a str) -> NamespaceLister<'a, V> {
        NamespaceLister { lister: self, namespace }
    }

    /// Returns the number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.store.len()
    }

    /// Whether there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.store.is_empty()
    }

    /// Created when a namespace is first listed, so that other stores do not pay for it.
    fn by_namespace(&self) -> &Index<Istr, V> {
        self.by_namespace.get_or_init(|| self.store.index(|object| Some(object.meta().namespace.clone())))
    }
}

impl<V> Clone for Lister<V> {
    fn clone(&self) -> Self {
        Self { store: Arc::clone(&self.store), by_namespace: Arc::clone(&self.by_namespace) }
    }
}

impl<V> fmt::Debug for Lister<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lister").finish_non_exhaustive()
    }
}

// === impl NamespaceLister ===

impl<V: View> NamespaceLister<'_, V> {
    /// Returns the object with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<V>> {
        self.lister.store.get_ref(KeyRef { namespace: self.namespace, name })
    }

    /// Returns every object of the namespace.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<V>> {
        self.lister.by_namespace().get(self.namespace)
    }

    /// Returns the objects of the namespace whose labels match.
    #[must_use]
    pub fn select(&self, selector: &Selector) -> Vec<Arc<V>> {
        self.filter(|object| selector.matches(&object.meta().labels))
    }

    /// Returns the objects of the namespace for which `keep` is true.
    #[must_use]
    pub fn filter(&self, keep: impl Fn(&V) -> bool) -> Vec<Arc<V>> {
        let mut found = self.list();
        found.retain(|object| keep(object));
        found
    }
}

//! Objects that are found by an index, or read from the server when the cache lags.

use std::hash::Hash;
use std::sync::Arc;

use steersman_informer::WireError;
use steersman_informer::{Index, Scope, SharedInformer};
use steersman_model::Kind;

use crate::Context;
use crate::reconcile::Freshness;

/// Objects of kind `V` by a key of one's own.
///
/// In a pass whose caches lag behind what was written, they are read from the server instead; what the server lists beyond
/// the key is left out, so that both ways give the same objects.
pub struct Found<K, V> {
    index: Index<K, V>,
    key_of: fn(&V) -> Option<K>,
    scope_of: fn(&K) -> Scope,
}

// === impl Found ===

impl<K: Hash + Ord + Send + Sync + 'static, V: Kind> Found<K, V> {
    /// The objects that an informer sees, by the key that `key_of` gives them. `scope_of` is what to list for a key: it
    /// holds all objects of the key at least.
    #[must_use]
    pub fn new(informer: &SharedInformer<V>, key_of: fn(&V) -> Option<K>, scope_of: fn(&K) -> Scope) -> Self {
        Self { index: informer.index(key_of), key_of, scope_of }
    }

    /// The objects of a key.
    ///
    /// # Errors
    /// See [`WireError`]; only in a pass that reads from the server.
    pub async fn get(&self, cx: &Context, key: &K) -> Result<Vec<Arc<V>>, WireError> {
        if cx.freshness == Freshness::CaughtUp {
            return Ok(self.index.get(key));
        }
        let mut objects: Vec<Arc<V>> = cx.live.list((self.scope_of)(key)).await?;
        objects.retain(|object| (self.key_of)(object).as_ref() == Some(key));
        Ok(objects)
    }
}

impl<K, V> std::fmt::Debug for Found<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Found").finish_non_exhaustive()
    }
}

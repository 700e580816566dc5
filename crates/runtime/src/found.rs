//! Objects that are found by an index, or read from the server when the cache lags.

use std::hash::Hash;
use std::sync::Arc;

use steersman_informer::WireError;
use steersman_informer::{Index, Selection, SharedInformer};
use steersman_model::Kind;

use crate::Context;
use crate::reconcile::Freshness;

/// Objects of kind `V` by a key of one's own.
///
/// In a pass whose caches lag behind the controller's writes, they are read from the server instead; objects of other
/// keys in the server's list are left out, so that both ways return the same objects.
pub struct Found<K, V> {
    index: Index<K, V>,
    key_of: fn(&V) -> Option<K>,
    selection_of: fn(&K) -> Selection,
}

// === impl Found ===

impl<K: Hash + Ord + Send + Sync + 'static, V: Kind> Found<K, V> {
    /// Indexes the objects of an informer by the key that `key_of` returns. `selection_of` returns what to list for a
    /// key, at least all objects of the key.
    #[must_use]
    pub fn new(informer: &SharedInformer<V>, key_of: fn(&V) -> Option<K>, selection_of: fn(&K) -> Selection) -> Self {
        Self { index: informer.index(key_of), key_of, selection_of }
    }

    /// Returns the objects of a key.
    ///
    /// # Errors
    /// See [`WireError`]; only in a pass that reads from the server.
    pub async fn get(&self, cx: &Context, key: &K) -> Result<Vec<Arc<V>>, WireError> {
        if cx.freshness == Freshness::CaughtUp {
            return Ok(self.index.get(key));
        }
        let mut objects: Vec<Arc<V>> = cx.live.list((self.selection_of)(key)).await?;
        objects.retain(|object| (self.key_of)(object).as_ref() == Some(key));
        Ok(objects)
    }
}

impl<K, V> std::fmt::Debug for Found<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Found").finish_non_exhaustive()
    }
}

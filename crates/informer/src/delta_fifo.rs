//! The queue between a reflector and a store: the changes of each object that the store has not applied yet.
//!
//! Guarantees:
//! 1. **Keys first in, first out.** Per key there is one list of deltas, in the order in which they came.
//! 2. **Compressed.** Added and what changes it = Added with the new state; a run of Updated, Replaced and Sync = the
//!    last of them; two Deleted = the better known. Never across uids. A uid that came and went between two pops leaves
//!    no trace, so a list has four deltas at most.
//! 3. **Replace is one batch.** Replaced for each object of the list, and Deleted ([`End::Missed`]) for each key that
//!    the store *or* the queue knows and the list does not. Everything that is or becomes pending is handed over
//!    together with it, so that the store is never between two lists.
//! 4. **Resync** = Sync for each object of the store for which nothing is pending.
//! 5. **Pop waits**, and locks the queue while it hands over: no object is in neither queue nor store when a list is
//!    compared. Deltas that a failed `process` leaves go back to the end of the queue.
//! 6. **Stale events are dropped**, by one rule (`staleness`): older than what is known, of a uid that is known to be
//!    deleted, or equal to what is known.
//! 7. **The version** of a pop is one that the store has reached once it has applied the batch: none is given while
//!    something is still queued.
//! 8. [`has_synced`](DeltaFifo::has_synced) once the first list is popped.
//!
//! [`state`] is the machine; [`DeltaFifo`] adds the lock and the waiting.

mod staleness;
pub mod state;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use steersman_base::{ObjectKey, ResourceVersion};
use steersman_model::View;
use tokio::sync::Notify;

pub use self::state::{Delta, Deltas, End, Known, ListInfo, Popped};
use crate::sink::{Verdict, WatchEvent};

/// A delta FIFO: see the module.
pub struct DeltaFifo<V> {
    state: Mutex<state::State<V>>,
    /// Notified when something becomes pending. One consumer waits.
    pending: Notify,
}

// === impl DeltaFifo ===

impl<V: View> DeltaFifo<V> {
    /// Creates an empty queue, not synced.
    #[must_use]
    pub fn new() -> Self {
        Self { state: Mutex::new(state::State::new()), pending: Notify::new() }
    }

    /// Returns the newest state of an object, pending or in the store; `None` if it was deleted or is unknown.
    pub fn newest(&self, key: &ObjectKey, store: &impl Known<V>) -> Option<Arc<V>> {
        self.state.lock().newest(key, store)
    }

    /// Queues a whole list.
    pub fn replace(&self, objects: Vec<Arc<V>>, list: ListInfo, store: &impl Known<V>) {
        self.state.lock().replace(objects, list, store);
        self.pending.notify_one();
    }

    /// Queues a watch event, unless it is stale.
    pub fn apply(&self, event: WatchEvent<V>, store: &impl Known<V>) -> Verdict {
        let verdict = self.state.lock().apply(event, store);
        self.pending.notify_one();
        verdict
    }

    /// Applies a bookmark: nothing else happened up to this version.
    pub fn advance(&self, version: ResourceVersion) {
        self.state.lock().advance(version);
        self.pending.notify_one();
    }

    /// Queues a Sync for each object of the store for which nothing is pending.
    pub fn resync(&self, store: &impl Known<V>) {
        self.state.lock().resync(store);
        self.pending.notify_one();
    }

    /// Waits until something is pending and hands over the deltas of up to `keys_max` keys, or of all keys if a list is
    /// among them. The queue is locked meanwhile, so `process` must not call it.
    ///
    /// # Errors
    /// Those of `process`; deltas that it has left in [`Popped`] are queued again.
    pub async fn pop<R, E>(
        &self,
        keys_max: usize,
        mut process: impl FnMut(&mut Popped<V>) -> Result<R, E>,
    ) -> Result<R, E> {
        loop {
            let notified = self.pending.notified();
            if let Some(outcome) = self.try_pop(keys_max, &mut process) {
                return outcome;
            }
            notified.await;
        }
    }

    /// As [`pop`](DeltaFifo::pop), but `None` if nothing is pending.
    pub fn try_pop<R, E>(
        &self,
        keys_max: usize,
        process: impl FnOnce(&mut Popped<V>) -> Result<R, E>,
    ) -> Option<Result<R, E>> {
        let mut state = self.state.lock();
        let mut popped = state.take(keys_max)?;
        let outcome = process(&mut popped);
        if outcome.is_err() {
            state.put_back(popped);
        }
        Some(outcome)
    }

    /// Returns the number of waiting keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.state.lock().len()
    }

    /// Whether no key waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the first list has been popped.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.state.lock().has_synced()
    }
}

impl<V: View> Default for DeltaFifo<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V> fmt::Debug for DeltaFifo<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeltaFifo").finish_non_exhaustive()
    }
}

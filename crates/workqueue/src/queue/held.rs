//! The only holder of a key.

use std::{fmt, sync::Arc, time::Duration};

use tokio::time::Instant;

use super::Shared;
use crate::state::{Cause, Slot, Verdict};

/// Exclusive hold of a key: the queue does not hand out the key again until this is dropped.
///
/// Each method that takes `self` is a verdict. Dropped without one (a panic, a cancelled task), the key counts as
/// failed and is retried: a key cannot get lost.
///
/// A key that was added while it was held is handed out again whatever the verdict; the verdict then only decides on
/// its failures, and on how soon.
#[must_use = "dropped without a verdict, the key counts as failed"]
pub struct Held<K> {
    shared: Arc<Shared<K>>,
    slot: Slot,
    key: K,
    failures: u32,
    /// Applied when dropped.
    verdict: Verdict,
}

impl<K> Held<K> {
    pub(super) fn new(shared: Arc<Shared<K>>, slot: Slot, key: K, failures: u32) -> Self {
        Self { shared, slot, key, failures, verdict: Verdict::Again(Cause::Failed) }
    }

    /// Returns the key.
    #[must_use]
    pub fn key(&self) -> &K {
        &self.key
    }

    /// Returns how often the key failed since it last succeeded, for comparison with a limit on retries.
    ///
    /// Unlike [`Queue::num_requeues`](super::Queue::num_requeues) this does not count [`again`](Self::again).
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Finishes the key and forgets its failures.
    pub fn done(self) {
        self.release(Verdict::Done);
    }

    /// Requeues the key with the rate limiter's delay, which grows each time. It does not count as a failure.
    pub fn again(self) {
        self.release(Verdict::Again(Cause::Asked));
    }

    /// Requeues the key after `delay` and forgets its failures. A change enqueues it sooner.
    pub fn again_after(self, delay: Duration) {
        self.release(Verdict::After(delay));
    }

    /// Counts a failure and requeues the key with the rate limiter's delay.
    pub fn retry(self) {
        self.release(Verdict::Again(Cause::Failed));
    }

    /// Gives the key up until something changes. The failure is counted, and earlier ones are forgotten.
    pub fn give_up(self) {
        self.release(Verdict::GiveUp);
    }

    /// Releases the key without a verdict; its owner adds it when it can be reconciled. Nothing is forgotten or scheduled, and
    /// that add is not held back by earlier failures.
    pub fn park(self) {
        self.release(Verdict::Park);
    }

    fn release(mut self, verdict: Verdict) {
        self.verdict = verdict; // and dropped
    }
}

impl<K> Drop for Held<K> {
    fn drop(&mut self) {
        let now = Instant::now();
        self.shared.run(|state| state.release(self.slot, self.verdict, now));
    }
}

impl<K: fmt::Debug> fmt::Debug for Held<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("key", &self.key).field("failures", &self.failures).finish_non_exhaustive()
    }
}

//! The only holder of a key.

use std::{fmt, sync::Arc, time::Duration};

use tokio::time::Instant;

use super::Shared;
use crate::state::{Cause, Slot, Verdict};

/// The only holder of a key: nobody else is handed the key until this is dropped.
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

    /// The key.
    #[must_use]
    pub fn key(&self) -> &K {
        &self.key
    }

    /// How often the key failed since it last succeeded: zero at the first attempt. What a limit on retries compares.
    ///
    /// Unlike [`Queue::num_requeues`](super::Queue::num_requeues) this does not count [`again`](Self::again).
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Nothing more to do. Forgets the failures.
    pub fn done(self) {
        self.release(Verdict::Done);
    }

    /// Not finished, not failed: look again when the rate limiter lets it, longer each time.
    pub fn again(self) {
        self.release(Verdict::Again(Cause::Asked));
    }

    /// Look again when `delay` has passed, or when something changes. Forgets the failures.
    pub fn again_after(self, delay: Duration) {
        self.release(Verdict::After(delay));
    }

    /// Failed: try again when the rate limiter lets it.
    pub fn retry(self) {
        self.release(Verdict::Again(Cause::Failed));
    }

    /// Failed for good: not tried again until something changes. Counted, and the failures are forgotten.
    pub fn give_up(self) {
        self.release(Verdict::GiveUp);
    }

    /// Could not be tried: somebody else adds the key when it can. Nothing is forgotten, nothing is scheduled, and
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

//! The thin shell around [`State`]: a lock, a clock, and the waiting workers.
//!
//! Every operation has the same three steps: lock, let the state machine do it, then (unlocked) wake the workers it
//! concerns. There is no background task. A worker that waits while keys are delayed sleeps until the earliest of them
//! is due; a queue without waiting workers needs no timer.

mod held;
mod next;
#[cfg(test)]
mod tests;
mod waiters;

use std::{
    borrow::Cow,
    fmt,
    hash::{BuildHasher, Hash},
    pin::pin,
    sync::{Arc, Weak},
    task::Waker,
    time::Duration,
};

use foldhash::fast::RandomState;
use parking_lot::{Mutex, MutexGuard};
use tokio::{sync::Notify, time::Instant};

use self::waiters::Waiters;
pub use self::{held::Held, next::Next};
use crate::{
    key::IntoKey,
    limiter::{RateLimiter, default_controller_limiter},
    metrics::{Metrics, NoMetrics, Observe, QueueStats},
    state::State,
    terms::{Gate, Priority, Shutdown},
};

/// The number of keys of one [`Queue::add_all`] that are added under one lock before others get their turn.
const ADDED_AT_ONCE: usize = 64;

/// A work queue. Cheap to clone; clones share one queue.
///
/// See the [crate] for what it guarantees.
pub struct Queue<K> {
    shared: Arc<Shared<K>>,
}

/// The options of a queue; see [`Queue::new`].
#[non_exhaustive]
pub struct QueueOptions<K> {
    /// The rate limiter of failed keys. Default: [`default_controller_limiter`].
    pub limiter: Box<dyn RateLimiter<K>>,
    /// The receiver of metrics. Default: [`NoMetrics`].
    pub metrics: Arc<dyn Metrics>,
    /// Whether the queue hands out keys from the start. Default: [`Gate::Open`].
    pub gate: Gate,
}

struct Shared<K> {
    name: Cow<'static, str>,
    hasher: RandomState,
    inner: Mutex<Inner<K>>,
    /// Notified when [`State::is_drained`] has become true.
    drained: Notify,
    metrics: Arc<dyn Metrics>,
}

struct Inner<K> {
    state: State<K>,
    waiters: Waiters,
}

// === impl Queue ===

impl<K: Clone + Eq + Hash + Send + 'static> Queue<K> {
    /// Creates a queue. The name appears in its metrics; a queue without a name has none.
    pub fn new(name: impl Into<Cow<'static, str>>, options: QueueOptions<K>) -> Self {
        let QueueOptions { limiter, metrics, gate } = options;
        let inner = Inner { state: State::new(gate, limiter), waiters: Waiters::default() };
        let shared = Arc::new(Shared {
            name: name.into(),
            hasher: RandomState::default(),
            inner: Mutex::new(inner),
            drained: Notify::new(),
            metrics,
        });
        let observed: Weak<Shared<K>> = Arc::downgrade(&shared);
        shared.metrics.attach(&shared.name, observed);
        Self { shared }
    }

    /// Adds a key, which is handed out when its turn comes.
    ///
    /// A key that waits already is not added twice; it may gain priority. A key that is held is handed out again
    /// after it is released. A key that is backing off is brought forward (guarantee 5 of the [crate]). A key that is
    /// merely delayed is handed out now instead: the delayed add is met by that and does not come on top.
    ///
    /// Never blocks for long and needs no runtime; after a shutdown it does nothing.
    pub fn add(&self, key: impl IntoKey<K>, priority: Priority) {
        let hash = self.shared.hash(key.as_key());
        let mut inner = self.shared.inner.lock();
        let spot = inner.state.find(hash, key.as_key());
        if inner.state.is_settled(spot, priority) {
            return;
        }
        inner.state.add(spot, key, priority, Instant::now());
        self.shared.unlock(inner);
    }

    /// Adds many keys, as [`add`](Self::add) does, at a fraction of the cost: for initial lists and resyncs.
    pub fn add_all(&self, keys: &[K], priority: Priority) {
        for keys in keys.chunks(ADDED_AT_ONCE) {
            self.shared.run(|state| {
                let mut now = None;
                for key in keys {
                    let spot = state.find(self.shared.hash(key), key);
                    if !state.is_settled(spot, priority) {
                        state.add(spot, key, priority, *now.get_or_insert_with(Instant::now));
                    }
                }
            });
        }
    }

    /// Adds a key when `delay` has passed.
    ///
    /// A key has one pending time, and the earliest wins: over a later `add_after`, over a retry, and an
    /// [`add`](Self::add) is earlier than all.
    pub fn add_after(&self, key: impl IntoKey<K>, delay: Duration) {
        let hash = self.shared.hash(key.as_key());
        let now = Instant::now();
        self.shared.run(|state| state.add_after(state.find(hash, key.as_key()), key, delay, now));
    }

    /// Adds a key when the rate limiter allows it, and returns the delay.
    ///
    /// Workers use [`Held::again`] or [`Held::retry`] instead.
    pub fn add_rate_limited(&self, key: impl IntoKey<K>) -> Duration {
        let hash = self.shared.hash(key.as_key());
        let now = Instant::now();
        self.shared.run(|state| state.add_rate_limited(state.find(hash, key.as_key()), key, now))
    }

    /// Forgets a key's failures, so that its next retry is a first one. A retry that is pending stays pending.
    pub fn forget(&self, key: &K) {
        self.shared.run(|state| state.forget(state.find(self.shared.hash(key), key)));
    }

    /// Returns how often a key was added rate-limited since it was last forgotten. Reconciles that did not raise its back-off are
    /// not counted (guarantee 5 of the [crate]).
    #[must_use]
    pub fn num_requeues(&self, key: &K) -> u32 {
        let inner = self.shared.inner.lock();
        inner.state.num_requeues(inner.state.find(self.shared.hash(key), key))
    }

    /// Waits for the next key; `None` when the queue is shut down and nothing is left.
    ///
    /// Safe to cancel: a [`Next`] that is dropped before it is ready has taken nothing. Workers that wait are woken
    /// one at a time, in the order they came.
    ///
    /// # Panics
    ///
    /// When keys are delayed and it is awaited outside a tokio runtime with time.
    pub fn next(&self) -> Next<'_, K> {
        Next::new(&self.shared)
    }

    /// Shuts the queue down: adds are ignored from now on, delayed keys are dropped, and waiting workers get `None` once
    /// nothing is left for them.
    ///
    /// [`Shutdown::Drain`] waits until the keys that wait have been processed and every key is released. A later
    /// [`Shutdown::Drop`] ends that wait. If the gate was never opened, nothing is drained: what waits is discarded.
    pub async fn shutdown(&self, how: Shutdown) {
        self.shared.run(|state| state.shut_down(how, Instant::now()));
        loop {
            let mut drained = pin!(self.shared.drained.notified());
            drained.as_mut().enable();
            if self.shared.inner.lock().state.is_drained() {
                return;
            }
            drained.await;
        }
    }

    /// Opens a queue that was created [closed](Gate::Closed), so that it hands out its keys.
    pub fn open(&self) {
        self.shared.run(State::open);
    }
}

impl<K> Queue<K> {
    /// Returns the name of the queue.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Returns the number of keys that wait to be handed out, without delayed and held ones.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.run(|state| state.len(Instant::now()))
    }

    /// Whether no key waits to be handed out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the queue has been shut down.
    #[must_use]
    pub fn is_shutting_down(&self) -> bool {
        self.shared.inner.lock().state.is_shutting_down()
    }

    /// Returns the current metrics of the queue.
    #[must_use]
    pub fn stats(&self) -> QueueStats {
        self.shared.run(|state| state.stats(Instant::now()))
    }
}

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K> fmt::Debug for Queue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("name", &self.name()).field("waiting", &self.len()).finish_non_exhaustive()
    }
}

// === impl QueueOptions ===

impl<K> QueueOptions<K> {
    /// Sets the rate limiter of failed keys.
    #[must_use]
    pub fn limiter(mut self, limiter: impl RateLimiter<K> + 'static) -> Self {
        self.limiter = Box::new(limiter);
        self
    }

    /// Sets the receiver of metrics.
    #[must_use]
    pub fn metrics(mut self, metrics: impl Metrics + 'static) -> Self {
        self.metrics = Arc::new(metrics);
        self
    }

    /// Sets whether the queue hands out keys from the start.
    #[must_use]
    pub fn gate(mut self, gate: Gate) -> Self {
        self.gate = gate;
        self
    }
}

impl<K: 'static> Default for QueueOptions<K> {
    fn default() -> Self {
        Self { limiter: Box::new(default_controller_limiter()), metrics: Arc::new(NoMetrics), gate: Gate::Open }
    }
}

impl<K> fmt::Debug for QueueOptions<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueOptions").field("gate", &self.gate).finish_non_exhaustive()
    }
}

// === impl Shared ===

impl<K: Hash> Shared<K> {
    /// Hashing is done outside the lock.
    fn hash(&self, key: &K) -> u64 {
        self.hasher.hash_one(key)
    }
}

impl<K> Shared<K> {
    /// Runs one operation, and wakes the workers it concerns.
    fn run<R>(&self, operation: impl FnOnce(&mut State<K>) -> R) -> R {
        let mut inner = self.inner.lock();
        let result = operation(&mut inner.state);
        self.unlock(inner);
        result
    }

    /// Unlocks after an operation, then wakes the workers it concerns: wakers run foreign code, so never under the
    /// lock.
    fn unlock(&self, mut inner: MutexGuard<'_, Inner<K>>) {
        let Inner { state, waiters } = &mut *inner;
        if state.is_shutting_down() {
            return self.unlock_ended(inner);
        }
        let waker = if waiters.is_empty() { None } else { waiters.wake_one(state.on_offer(), state.next_due()) };
        drop(inner);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// [`unlock`](Self::unlock) once the queue is shut down.
    #[cold]
    fn unlock_ended(&self, mut inner: MutexGuard<'_, Inner<K>>) {
        let Inner { state, waiters } = &mut *inner;
        let is_drained = state.is_drained();
        let wakers: Vec<Waker> = if state.is_finished() {
            waiters.wake_all().collect()
        } else {
            waiters.wake_one(state.on_offer(), None).into_iter().collect()
        };
        drop(inner);
        wakers.into_iter().for_each(Waker::wake);
        if is_drained {
            self.drained.notify_waiters();
        }
    }
}

impl<K: Send + 'static> Observe for Shared<K> {
    fn stats(&self) -> QueueStats {
        self.run(|state| state.stats(Instant::now()))
    }
}

impl<K> Drop for Shared<K> {
    fn drop(&mut self) {
        let last = self.inner.get_mut().state.stats(Instant::now());
        self.metrics.detach(&self.name, &last);
    }
}

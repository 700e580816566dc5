//! A value that tasks can wait for, as `tokio::sync::watch`: receivers see the newest value, not every one.
//!
//! The difference: receivers are woken in the order in which they started to wait. tokio's channel wakes them in random
//! order, with a seed that cannot be set, which would make simulations irreproducible.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::{RwLock, RwLockReadGuard};
use tokio::sync::Notify;

/// The sending half, which changes the value. Clones change the same one.
pub struct Sender<T>(Arc<Shared<T>>);

/// The receiving half, which waits for changes.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    /// The number of changes seen.
    seen: u64,
}

/// A borrowed value. The value cannot change while it is borrowed, so it must not be held across an `await`.
pub type Ref<'a, T> = RwLockReadGuard<'a, T>;

/// All senders are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nobody is left who could change the value")]
pub struct Closed;

struct Shared<T> {
    value: RwLock<T>,
    changes: AtomicU64,
    senders: AtomicUsize,
    receivers: AtomicUsize,
    changed: Notify,
}

/// Returns a sender, and a receiver that has seen the value.
#[must_use]
pub fn channel<T>(value: T) -> (Sender<T>, Receiver<T>) {
    let sender = Sender::new(value);
    let receiver = sender.subscribe();
    (sender, receiver)
}

// === impl Sender ===

impl<T> Sender<T> {
    /// Returns a sender without receivers.
    #[must_use]
    pub fn new(value: T) -> Self {
        Self(Arc::new(Shared {
            value: RwLock::new(value),
            changes: AtomicU64::new(0),
            senders: AtomicUsize::new(1),
            receivers: AtomicUsize::new(0),
            changed: Notify::new(),
        }))
    }

    /// Returns a receiver that has seen the current value.
    #[must_use]
    pub fn subscribe(&self) -> Receiver<T> {
        self.0.receivers.fetch_add(1, Ordering::Relaxed);
        Receiver { shared: Arc::clone(&self.0), seen: self.0.changes.load(Ordering::Acquire) }
    }

    /// Sets the value, with or without receivers, and returns the previous one.
    pub fn send_replace(&self, value: T) -> T {
        let before = std::mem::replace(&mut *self.0.value.write(), value);
        self.0.notify();
        before
    }

    /// Changes the value.
    pub fn send_modify(&self, modify: impl FnOnce(&mut T)) {
        modify(&mut self.0.value.write());
        self.0.notify();
    }

    /// Changes the value; receivers are notified only if `modify` returns true. Returns that result.
    pub fn send_if_modified(&self, modify: impl FnOnce(&mut T) -> bool) -> bool {
        let is_modified = modify(&mut self.0.value.write());
        if is_modified {
            self.0.notify();
        }
        is_modified
    }

    /// Borrows the value.
    pub fn borrow(&self) -> Ref<'_, T> {
        self.0.value.read()
    }

    /// Returns the number of receivers.
    #[must_use]
    pub fn receiver_count(&self) -> usize {
        self.0.receivers.load(Ordering::Relaxed)
    }
}

impl<T: Default> Default for Sender<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.senders.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(&self.0))
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if self.0.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.changed.notify_waiters();
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sender").field(&*self.borrow()).finish()
    }
}

// === impl Receiver ===

impl<T> Receiver<T> {
    /// Borrows the value. It counts as seen only with [`borrow_and_update`](Self::borrow_and_update).
    pub fn borrow(&self) -> Ref<'_, T> {
        self.shared.value.read()
    }

    /// Borrows the value, which counts as seen.
    pub fn borrow_and_update(&mut self) -> Ref<'_, T> {
        let value = self.shared.value.read();
        // Changes are counted under the lock or after it, so this is at most one too few: then the value is checked
        // once more.
        self.seen = self.shared.changes.load(Ordering::Acquire);
        value
    }

    /// Whether the value has changed since it was last seen.
    ///
    /// # Errors
    /// All senders are dropped.
    pub fn has_changed(&self) -> Result<bool, Closed> {
        if self.shared.senders.load(Ordering::Acquire) == 0 {
            return Err(Closed);
        }
        Ok(self.shared.changes.load(Ordering::Acquire) != self.seen)
    }

    /// Marks the current value as seen.
    pub fn mark_unchanged(&mut self) {
        self.seen = self.shared.changes.load(Ordering::Acquire);
    }

    /// Waits for a change that was not seen. When it returns, the change counts as seen.
    ///
    /// # Errors
    /// All senders are dropped.
    pub async fn changed(&mut self) -> Result<(), Closed> {
        loop {
            // First register, then check: a change in between is noticed.
            let changed = self.shared.changed.notified();
            let changes = self.shared.changes.load(Ordering::Acquire);
            if changes != self.seen {
                self.seen = changes;
                return Ok(());
            }
            if self.shared.senders.load(Ordering::Acquire) == 0 {
                return Err(Closed);
            }
            changed.await;
        }
    }

    /// Waits until `is_wanted` accepts the value, which may be now.
    ///
    /// # Errors
    /// All senders are dropped.
    pub async fn wait_for(&mut self, mut is_wanted: impl FnMut(&T) -> bool) -> Result<Ref<'_, T>, Closed> {
        loop {
            let is_there = is_wanted(&self.borrow_and_update());
            if is_there {
                return Ok(self.shared.value.read());
            }
            self.changed().await?;
        }
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        self.shared.receivers.fetch_add(1, Ordering::Relaxed);
        Self { shared: Arc::clone(&self.shared), seen: self.seen }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.shared.receivers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<T: fmt::Debug> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Receiver").field(&*self.borrow()).finish()
    }
}

// === impl Shared ===

impl<T> Shared<T> {
    fn notify(&self) {
        self.changes.fetch_add(1, Ordering::Release);
        self.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn receivers_are_woken_in_the_order_in_which_they_began_to_wait() {
        let sender = Sender::new(0);
        let woken: Arc<parking_lot::Mutex<Vec<usize>>> = Arc::default();
        let mut tasks = Vec::new();
        for number in 0..50 {
            let mut receiver = sender.subscribe();
            let woken = Arc::clone(&woken);
            tasks.push(tokio::spawn(async move {
                receiver.changed().await.unwrap();
                woken.lock().push(number);
            }));
        }
        tokio::task::yield_now().await;
        sender.send_replace(1);
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*woken.lock(), (0..50).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn a_change_is_seen_once_and_the_end_is_heard() {
        let (sender, mut receiver) = channel(1);
        sender.send_modify(|value| *value = 2);
        receiver.changed().await.unwrap();
        assert_eq!(*receiver.borrow(), 2);
        assert!(!sender.send_if_modified(|_| false));
        let again = sender.clone();
        drop(sender);
        let waiting = tokio::spawn(async move { receiver.changed().await });
        tokio::task::yield_now().await;
        drop(again);
        assert_eq!(waiting.await.unwrap(), Err(Closed));
    }

    #[tokio::test]
    async fn what_is_waited_for_may_be_there() {
        let (sender, mut receiver) = channel(1);
        assert_eq!(*receiver.wait_for(|value| *value == 1).await.unwrap(), 1);
        let waiting = tokio::spawn(async move { receiver.wait_for(|value| *value == 3).await.map(|value| *value) });
        sender.send_replace(2);
        tokio::task::yield_now().await;
        sender.send_replace(3);
        assert_eq!(waiting.await.unwrap(), Ok(3));
    }
}

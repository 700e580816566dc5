//! Owned or borrowed: how a key comes into the queue.

/// A key, owned or borrowed.
///
/// Most adds find their key already waiting. Taking `&K` as well as `K` lets those adds cost one look-up and no
/// clone; the queue clones a borrowed key only when it has to keep it.
///
/// ```
/// # use steersman_workqueue::{Priority, Queue, QueueOptions};
/// # use std::sync::Arc;
/// let queue: Queue<Arc<str>> = Queue::new("example", QueueOptions::default());
/// let key: Arc<str> = "default/web".into();
/// queue.add(&key, Priority::Live); // kept: cloned
/// queue.add(&key, Priority::Live); // already waiting: not cloned
/// queue.add(key, Priority::Live); // or give it away
/// assert_eq!(queue.len(), 1);
/// ```
pub trait IntoKey<K> {
    /// Returns the key for a look-up.
    fn as_key(&self) -> &K;
    /// Returns the key as an owned value.
    fn into_key(self) -> K;
}

impl<K> IntoKey<K> for K {
    fn as_key(&self) -> &K {
        self
    }

    fn into_key(self) -> K {
        self
    }
}

impl<K: Clone> IntoKey<K> for &K {
    fn as_key(&self) -> &K {
        self
    }

    fn into_key(self) -> K {
        self.clone()
    }
}

//! The way from sources into a controller's queue.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use steersman_base::ObjectKey;
use steersman_informer::Change;
use steersman_model::View;
use steersman_workqueue::{Priority, Queue};

use super::standby::Standby;
use crate::handler::Keys;
use crate::predicate::Predicate;
use crate::trigger::Trigger;

/// The way into a controller's queue, as a [`task`](super::task) gets it. Cheap to clone.
#[derive(Clone)]
pub struct Feed {
    queue: Queue<ObjectKey>,
    filters: Arc<[Box<dyn Predicate>]>,
    triggers: Arc<Triggers>,
    standby: Arc<Standby>,
}

/// The triggers of the keys that wait in a queue.
#[derive(Default)]
struct Triggers(Mutex<HashMap<ObjectKey, Trigger>>);

/// The number of waiting keys whose triggers are remembered; they explain decisions and are not needed to make them.
const TRIGGERS_MAX: usize = 4096;

// === impl Feed ===

impl Feed {
    pub(crate) fn new(queue: Queue<ObjectKey>, filters: Vec<Box<dyn Predicate>>, is_closed: bool) -> Self {
        let standby = Arc::new(Standby::new(is_closed));
        Self { queue, filters: filters.into(), triggers: Arc::default(), standby }
    }

    /// Enqueues the keys of events from now on, and first the recent ones. Returns whether the queue was closed before,
    /// so that the contents of the caches must be delivered.
    pub(crate) fn open(&self) -> bool {
        let was_closed = self.standby.is_closed();
        self.queue.add_all(&self.standby.open(), Priority::Live);
        was_closed
    }

    /// Enqueues keys.
    pub fn add_all(&self, keys: &[ObjectKey], priority: Priority) {
        self.queue.add_all(keys, priority);
    }

    /// Enqueues a key after a delay.
    pub fn add_after(&self, key: ObjectKey, wait: Duration) {
        self.queue.add_after(key, wait);
    }

    /// Enqueues a key at once, as [`Controller::trigger`](crate::Controller::trigger) does.
    pub fn trigger(&self, key: ObjectKey) {
        self.triggers.note(&key, || Trigger::Manual);
        self.queue.add(key, Priority::Live);
    }

    /// Returns the controller's queue.
    #[must_use]
    pub fn queue(&self) -> &Queue<ObjectKey> {
        &self.queue
    }

    /// Returns the trigger of a key that is about to be reconciled.
    pub(crate) fn triggered_by(&self, key: &ObjectKey) -> Trigger {
        self.triggers.0.lock().remove(key).unwrap_or_default()
    }

    /// Enqueues the keys of an object that was sent through a channel.
    pub(super) fn add_sent(&self, object: &impl View, keys: Keys) {
        self.enqueue(keys, Priority::Live, Some(&|| Trigger::sent(object.meta().key())));
    }

    /// Whether the controller's predicates admit a change.
    pub(super) fn admits<V: View>(&self, change: &Change<V>) -> bool {
        if self.filters.is_empty() {
            return true;
        }
        let change = change.metadata();
        self.filters.iter().all(|filter| filter.admits(&change))
    }

    /// Enqueues keys. Only those with a trigger are from an event of now: the rest is in the caches, and is enqueued
    /// from there when a standby starts to work.
    pub(super) fn enqueue(&self, keys: Keys, priority: Priority, trigger: Option<&dyn Fn() -> Trigger>) {
        if keys.is_empty() || self.standby.keeps(keys.iter().filter(|_| trigger.is_some())) {
            return;
        }
        if let Some(trigger) = trigger {
            keys.iter().for_each(|key| self.triggers.note(key, trigger));
        }
        self.queue.add_all(&keys.now, priority);
        for (key, wait) in keys.later {
            self.queue.add_after(key, wait);
        }
    }
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").field("queue", &self.queue.name()).finish_non_exhaustive()
    }
}

// === impl Triggers ===

impl Triggers {
    fn note(&self, key: &ObjectKey, trigger: impl FnOnce() -> Trigger) {
        let mut last = self.0.lock();
        if let Some(known) = last.get_mut(key) {
            *known = trigger();
        } else if last.len() < TRIGGERS_MAX {
            last.insert(key.clone(), trigger());
        }
    }
}

//! What is remembered between passes: how long failed pods on a node are left alone.
//!
//! Follows `flowcontrol.Backoff`, from 1 s to 15 min, of Kubernetes 1.37.1.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use steersman_base::{Istr, Time, Uid};

/// The back-off of failed pods, by DaemonSet and node. Entries are forgotten after twice the longest back-off.
#[derive(Debug, Default)]
pub(super) struct Backoff(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    by_key: HashMap<Key, Entry>,
    swept: Option<Time>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    set: Uid,
    /// A new template starts anew.
    generation: i64,
    node: Istr,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    wait: Duration,
    since: Time,
}

/// One DaemonSet's part of it.
pub(super) struct OfSet<'a> {
    pub(super) backoff: &'a Backoff,
    pub(super) set: Uid,
    pub(super) generation: i64,
}

const MIN: Duration = Duration::from_secs(1);
const MAX: Duration = Duration::from_secs(15 * 60);
const FORGOTTEN_AFTER: Duration = Duration::from_secs(2 * 15 * 60);
const SWEPT_EVERY: Duration = Duration::from_secs(60);

// === impl OfSet ===

impl OfSet<'_> {
    /// Returns how long a failed pod on a node is still left alone; `None` if it may be deleted.
    pub(super) fn wait(&self, node: &str, now: Time) -> Option<Duration> {
        let entries = self.backoff.0.lock();
        let entry = entries.by_key.get(&self.key(node))?;
        let passed = now.since(entry.since);
        (passed < entry.wait).then(|| entry.wait - passed)
    }

    /// Records that a failed pod on a node was deleted.
    pub(super) fn next(&self, node: &str, now: Time) {
        let mut entries = self.backoff.0.lock();
        entries.sweep(now);
        let key = self.key(node);
        let wait = entries.by_key.get(&key).map_or(MIN, |held| (held.wait * 2).min(MAX));
        entries.by_key.insert(key, Entry { wait, since: now });
    }

    fn key(&self, node: &str) -> Key {
        Key { set: self.set.clone(), generation: self.generation, node: Istr::new(node) }
    }
}

// === impl Entries ===

impl Entries {
    fn sweep(&mut self, now: Time) {
        if self.swept.is_some_and(|swept| now.since(swept) < SWEPT_EVERY) {
            return;
        }
        self.swept = Some(now);
        self.by_key.retain(|_, entry| now.since(entry.since) <= FORGOTTEN_AFTER);
    }
}

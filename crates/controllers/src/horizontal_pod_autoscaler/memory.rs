//! What the controller remembers between passes: of each autoscaler its history, and the selector of its pods.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use steersman_base::{Istr, Meta, ObjectKey, Selector, StringMap, Uid};

use super::history::History;

/// What is remembered of every autoscaler, by namespace and name.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<BTreeMap<Istr, BTreeMap<Istr, Remembered>>>);

#[derive(Debug, Default)]
struct Remembered {
    /// A new autoscaler of the same name begins anew.
    uid: Uid,
    selector: Selector,
    history: History,
}

// === impl Memory ===

impl Memory {
    /// Reads and changes the history of an autoscaler.
    pub(super) fn history<T>(&self, autoscaler: &Meta, change: impl FnOnce(&mut History) -> T) -> T {
        self.with(autoscaler, |remembered| change(&mut remembered.history))
    }

    /// Records the selector of the pods of an autoscaler.
    pub(super) fn select(&self, autoscaler: &Meta, selector: &Selector) {
        self.with(autoscaler, |remembered| remembered.selector = selector.clone());
    }

    /// Returns the names of autoscalers of a namespace that select some of these labels, at most `count`.
    pub(super) fn selecting(&self, namespace: &str, labels: &[&StringMap], count: usize) -> Vec<Istr> {
        let held = self.0.lock();
        let Some(held) = held.get(namespace) else { return Vec::new() };
        let selects = |of: &Remembered| labels.iter().any(|labels| of.selector.matches(*labels));
        held.iter().filter(|(_, of)| selects(of)).map(|(name, _)| name.clone()).take(count).collect()
    }

    /// Forgets an autoscaler that was deleted.
    pub(super) fn forget(&self, autoscaler: &ObjectKey) {
        let mut held = self.0.lock();
        if let Some(names) = held.get_mut(&autoscaler.namespace) {
            names.remove(&autoscaler.name);
            if names.is_empty() {
                held.remove(&autoscaler.namespace);
            }
        }
    }

    fn with<T>(&self, autoscaler: &Meta, change: impl FnOnce(&mut Remembered) -> T) -> T {
        let mut held = self.0.lock();
        let names = held.entry(autoscaler.namespace.clone()).or_default();
        let remembered = names.entry(autoscaler.name.clone()).or_default();
        if remembered.uid != autoscaler.uid {
            *remembered = Remembered { uid: autoscaler.uid.clone(), ..Remembered::default() };
        }
        change(remembered)
    }
}

//! What the controller remembers between passes: of each autoscaler its history, and the selector of its pods.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use steersman_base::{Istr, Meta, ObjectKey, Selector, StringMap, Uid};

use steersman_model::autoscaling::TargetReference;

use super::history::History;

/// The state that is kept of every autoscaler, by namespace.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<BTreeMap<Istr, Namespace>>);

/// The autoscalers of a namespace.
#[derive(Debug, Default)]
struct Namespace {
    autoscalers: BTreeMap<Istr, Remembered>,
    /// The names of autoscalers by one label that their selector requires: only these can select a pod with the label.
    by_label: BTreeMap<Label, BTreeSet<Istr>>,
}

/// A label with its value; `None` for selectors that require no label with a single value.
type Label = Option<(Istr, Istr)>;

#[derive(Debug, Default)]
struct Remembered {
    /// A new autoscaler of the same name begins anew.
    uid: Uid,
    /// So does one that is pointed at another object: what was recommended for the old one says nothing about the new one.
    target: TargetReference,
    selector: Selector,
    history: History,
}

// === impl Memory ===

impl Memory {
    /// Begins a pass of an autoscaler of this target.
    pub(super) fn begin(&self, autoscaler: &Meta, target: &TargetReference) {
        let mut held = self.0.lock();
        let namespace = held.entry(autoscaler.namespace.clone()).or_default();
        if namespace.of(autoscaler).target != *target {
            namespace.forget(&autoscaler.name);
            namespace.of(autoscaler).target = target.clone();
        }
    }

    /// Reads and changes the history of an autoscaler.
    pub(super) fn history<T>(&self, autoscaler: &Meta, change: impl FnOnce(&mut History) -> T) -> T {
        let mut held = self.0.lock();
        let namespace = held.entry(autoscaler.namespace.clone()).or_default();
        change(&mut namespace.of(autoscaler).history)
    }

    /// Records the selector of the pods of an autoscaler.
    pub(super) fn select(&self, autoscaler: &Meta, selector: &Selector) {
        self.0.lock().entry(autoscaler.namespace.clone()).or_default().select(autoscaler, selector);
    }

    /// Returns the names of autoscalers of a namespace that select some of these labels, at most `count`.
    pub(super) fn selecting(&self, namespace: &str, labels: &[&StringMap], count: usize) -> Vec<Istr> {
        let held = self.0.lock();
        let Some(held) = held.get(namespace) else { return Vec::new() };
        let names: BTreeSet<&Istr> = labels.iter().flat_map(|labels| held.selecting(labels)).collect();
        names.into_iter().take(count).cloned().collect()
    }

    /// Forgets an autoscaler that was deleted.
    pub(super) fn forget(&self, autoscaler: &ObjectKey) {
        let mut held = self.0.lock();
        let Some(namespace) = held.get_mut(&autoscaler.namespace) else { return };
        namespace.forget(&autoscaler.name);
        if namespace.autoscalers.is_empty() {
            held.remove(&autoscaler.namespace);
        }
    }
}

// === impl Namespace ===

impl Namespace {
    fn of(&mut self, autoscaler: &Meta) -> &mut Remembered {
        if self.autoscalers.get(&autoscaler.name).is_some_and(|held| held.uid != autoscaler.uid) {
            self.forget(&autoscaler.name);
        }
        let new = || Remembered { uid: autoscaler.uid.clone(), ..Remembered::default() };
        self.autoscalers.entry(autoscaler.name.clone()).or_insert_with(new)
    }

    fn select(&mut self, autoscaler: &Meta, selector: &Selector) {
        let remembered = self.of(autoscaler);
        if remembered.selector == *selector {
            return;
        }
        let before = std::mem::replace(&mut remembered.selector, selector.clone());
        self.remove(&label_of(&before), &autoscaler.name);
        self.by_label.entry(label_of(selector)).or_default().insert(autoscaler.name.clone());
    }

    /// Returns the names of the autoscalers that select a pod with these labels.
    fn selecting<'a>(&'a self, labels: &'a StringMap) -> impl Iterator<Item = &'a Istr> {
        let required = labels.iter().map(|(key, value)| Some((key.clone(), value.clone())));
        let names = required.chain([None]).filter_map(|label| self.by_label.get(&label)).flatten();
        names.filter(|name| self.autoscalers.get(*name).is_some_and(|held| held.selector.matches(labels)))
    }

    fn forget(&mut self, name: &Istr) {
        if let Some(held) = self.autoscalers.remove(name) {
            self.remove(&label_of(&held.selector), name);
        }
    }

    /// Removes a name from the index.
    fn remove(&mut self, label: &Label, name: &Istr) {
        if let Some(names) = self.by_label.get_mut(label) {
            names.remove(name);
            if names.is_empty() {
                self.by_label.remove(label);
            }
        }
    }
}

/// Returns a label that every pod has which a selector selects.
fn label_of(selector: &Selector) -> Label {
    selector.exact_matches().next().map(|(key, value)| (key.clone(), value.clone()))
}

//! What the controller remembers between passes: which namespaces wait for their last pod.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use steersman_base::Istr;
use steersman_informer::Change;
use steersman_model::HasMeta;

/// The namespaces that wait for their last pod, and the number of pods of each namespace.
#[derive(Debug, Default)]
pub(super) struct LastPods(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    waiting: BTreeSet<Istr>,
    counts: BTreeMap<Istr, usize>,
}

// === impl LastPods ===

impl LastPods {
    /// Records that a pass waits for the pods of a namespace, if there are any: from now on, the deletion of the last
    /// one is reported.
    pub(super) fn await_in(&self, namespace: &Istr) {
        self.0.lock().waiting.insert(namespace.clone());
    }

    /// Records that the namespace waits for no pods any more.
    pub(super) fn forget(&self, namespace: &Istr) {
        self.0.lock().waiting.remove(namespace);
    }

    /// Applies a change of a pod; returns the namespace, if that was its last pod and it waits for it.
    pub(super) fn note(&self, change: &Change<dyn HasMeta>) -> Option<Istr> {
        let State { waiting, counts } = &mut *self.0.lock();
        match change {
            Change::Added { new, .. } => {
                *counts.entry(new.meta().namespace.clone()).or_default() += 1;
                None
            }
            Change::Updated { .. } => None,
            Change::Deleted { last, .. } => {
                let namespace = &last.meta().namespace;
                let count = counts.get_mut(namespace)?;
                *count -= 1;
                if *count > 0 {
                    return None;
                }
                counts.remove(namespace);
                waiting.take(namespace)
            }
        }
    }
}

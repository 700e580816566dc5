//! What the controller remembers between passes: which namespaces wait for the last of their pods.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use steersman_base::Istr;
use steersman_informer::Change;
use steersman_model::HasMeta;

/// Which namespaces wait for the last of their pods, and how many pods each namespace has.
#[derive(Debug, Default)]
pub(super) struct LastPods(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    waiting: BTreeSet<Istr>,
    counts: BTreeMap<Istr, usize>,
}

// === impl LastPods ===

impl LastPods {
    /// A pass begins that will wait for the pods of a namespace, if there are any: from now on, their end is told.
    pub(super) fn await_in(&self, namespace: &Istr) {
        self.0.lock().waiting.insert(namespace.clone());
    }

    /// Nobody waits for pods of this namespace any more.
    pub(super) fn forget(&self, namespace: &Istr) {
        self.0.lock().waiting.remove(namespace);
    }

    /// Takes a change of a pod in; the namespace, if that was its last one and somebody waits for it.
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

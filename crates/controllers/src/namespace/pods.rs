//! Pure: how long pods may take to end, and in which namespaces there are any.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use steersman_base::{Istr, Meta};
use steersman_informer::Change;
use steersman_model::{HasMeta, view};

view! {
    /// What tells how long a pod may take to end.
    pub(super) struct EndingPod for namespaced("", "v1", "pods", "Pod") {
        /// Its metadata.
        metadata: Meta = 1,
        /// What it should be.
        spec: EndingPodSpec = 2,
        /// What it is.
        status: EndingPodStatus = 3,
    }
}

view! {
    /// How long it is given.
    pub(super) struct EndingPodSpec {
        /// Seconds between asking and killing.
        termination_grace_period_seconds: Option<i64> = 4,
    }
}

view! {
    /// How far it is.
    pub(super) struct EndingPodStatus {
        /// `Succeeded` and `Failed` have ended.
        phase: Istr = 1,
    }
}

/// Which namespaces wait for the last of their pods, and how many pods each namespace has.
#[derive(Debug, Default)]
pub(super) struct LastPods(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    waiting: BTreeSet<Istr>,
    counts: BTreeMap<Istr, usize>,
}

/// For how many seconds the namespace may wait for its pods: the longest grace period of those that have not ended. Once
/// the namespace has been going for longer than that, there is nothing to wait for: zero.
pub(super) fn seconds_to_end(pods: &[Arc<EndingPod>], since_deletion: Duration) -> u64 {
    let running = pods.iter().filter(|pod| !matches!(&*pod.status.phase, "Succeeded" | "Failed"));
    let grace = running.filter_map(|pod| pod.spec.termination_grace_period_seconds).max().unwrap_or(0);
    let grace = u64::try_from(grace).unwrap_or(0);
    if since_deletion >= Duration::from_secs(grace) { 0 } else { grace }
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

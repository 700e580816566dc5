//! What the controller remembers between passes: when it first saw taints, and which pods are to be evicted.

use std::collections::HashMap;

use parking_lot::Mutex;
use steersman_base::{Istr, Meta, MicroTime, ObjectKey, Uid};
use steersman_model::core::Taint;

/// What is remembered of nodes with `NoExecute` taints, and of pods that are to be evicted.
#[derive(Default)]
pub(super) struct Memory {
    taints: Mutex<HashMap<Istr, Vec<Seen>>>,
    pods: Mutex<HashMap<ObjectKey, Planned>>,
}

struct Seen {
    taint: Taint,
    at: MicroTime,
}

struct Planned {
    uid: Uid,
    seen: MicroTime,
    is_announced: bool,
}

// === impl Memory ===

impl Memory {
    /// Returns when each of the taints of a node was first seen.
    pub(super) fn taints_seen(&self, node: &Istr, taints: &[&Taint], now: MicroTime) -> Vec<MicroTime> {
        let mut nodes = self.taints.lock();
        let known = nodes.entry(node.clone()).or_default();
        known.retain(|seen| taints.contains(&&seen.taint));
        let mut times = Vec::with_capacity(taints.len());
        for taint in taints {
            match known.iter().find(|seen| seen.taint == **taint) {
                Some(seen) => times.push(seen.at),
                None => {
                    known.push(Seen { taint: (*taint).clone(), at: now });
                    times.push(now);
                }
            }
        }
        times
    }

    /// Forgets the taints of a node.
    pub(super) fn forget_node(&self, node: &Istr) {
        self.taints.lock().remove(node);
    }

    /// Whether this pod is to be evicted.
    pub(super) fn is_planned(&self, pod: &ObjectKey) -> bool {
        self.pods.lock().contains_key(pod)
    }

    /// Returns when a pod was first seen on a node with taints.
    pub(super) fn pod_seen(&self, pod: &Meta, now: MicroTime) -> MicroTime {
        let pods = self.pods.lock();
        pods.get(&pod.key()).filter(|planned| planned.uid == pod.uid).map_or(now, |planned| planned.seen)
    }

    /// Remembers that a pod is to be evicted.
    pub(super) fn plan(&self, pod: &Meta, now: MicroTime) {
        let mut pods = self.pods.lock();
        let planned = pods.entry(pod.key()).or_insert_with(|| Planned::new(pod, now));
        if planned.uid != pod.uid {
            *planned = Planned::new(pod, now);
        }
    }

    /// Whether the eviction of a pod is announced for the first time.
    pub(super) fn announces(&self, pod: &ObjectKey) -> bool {
        let mut pods = self.pods.lock();
        pods.get_mut(pod).is_some_and(|planned| !std::mem::replace(&mut planned.is_announced, true))
    }

    /// Forgets a pod, and returns whether it was to be evicted.
    pub(super) fn forget(&self, pod: &ObjectKey) -> bool {
        self.pods.lock().remove(pod).is_some()
    }
}

// === impl Planned ===

impl Planned {
    fn new(pod: &Meta, now: MicroTime) -> Self {
        Self { uid: pod.uid.clone(), seen: now, is_announced: false }
    }
}

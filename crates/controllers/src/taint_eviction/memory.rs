//! What the controller remembers between passes: when it first saw taints, and which pods are to be evicted.

use std::collections::HashMap;

use parking_lot::Mutex;
use steersman_base::{Istr, MicroTime};
use steersman_model::core::Taint;

use crate::eviction::PlannedPods;

/// What is remembered of nodes with `NoExecute` taints, and of pods that are to be evicted.
#[derive(Default)]
pub(super) struct Memory {
    taints: Mutex<HashMap<Istr, Vec<Seen>>>,
    pub(super) pods: PlannedPods,
}

struct Seen {
    taint: Taint,
    at: MicroTime,
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
}

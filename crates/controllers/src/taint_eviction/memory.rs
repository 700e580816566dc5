//! What the controller remembers between passes: when it first saw taints, and which pods are to be evicted.

use std::collections::HashMap;

use parking_lot::Mutex;
use steersman_base::{Istr, MicroTime};
use steersman_model::core::Taint;

use super::plan::{Known, other_of_pair, since};
use crate::eviction::PlannedPods;

/// The state that is kept of nodes with `NoExecute` taints, and of pods that are to be evicted.
#[derive(Default)]
pub(super) struct Memory {
    nodes: Mutex<HashMap<Istr, Tainted>>,
    pub(super) pods: PlannedPods,
}

/// A node with `NoExecute` taints.
#[derive(Default)]
struct Tainted {
    taints: Vec<Seen>,
    /// Since when it has had one of the two taints of nodes that are not ready, without a gap.
    away: Option<MicroTime>,
}

struct Seen {
    taint: Taint,
    at: MicroTime,
}

// === impl Memory ===

impl Memory {
    /// Returns the taints of a node, and since when each of them is known.
    pub(super) fn taints_seen<'a>(&self, node: &Istr, taints: &[&'a Taint], now: MicroTime) -> Vec<Known<'a>> {
        let mut nodes = self.nodes.lock();
        let tainted = nodes.entry(node.clone()).or_default();
        tainted.taints.retain(|seen| taints.contains(&&seen.taint));
        let mut known = Vec::with_capacity(taints.len());
        for taint in taints {
            let seen = tainted.taints.iter().find(|seen| seen.taint == **taint).map(|seen| seen.at);
            let seen = seen.unwrap_or_else(|| {
                tainted.taints.push(Seen { taint: (*taint).clone(), at: now });
                now
            });
            known.push(Known { taint, seen, away: None });
        }
        let of_pair = known.iter().filter(|known| other_of_pair(known.taint).is_some());
        let first = of_pair.map(|known| since(known.taint.time_added, known.seen)).min();
        tainted.away = first.map(|first| tainted.away.map_or(first, |away| away.min(first)));
        for known in known.iter_mut().filter(|known| other_of_pair(known.taint).is_some()) {
            known.away = tainted.away;
        }
        known
    }

    /// Forgets the taints of a node.
    pub(super) fn forget_node(&self, node: &Istr) {
        self.nodes.lock().remove(node);
    }
}

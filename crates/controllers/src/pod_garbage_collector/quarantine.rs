//! Pure: for how long nodes have been missing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use steersman_base::{Istr, Time};

/// The time for which a node may be missing in the cache before the server is asked: a new node may be observed after
/// its pods.
pub const QUARANTINE: Duration = Duration::from_secs(40);

/// Nodes with pods that are not in the cache, and since when. Bounded by the number of nodes with pods.
#[derive(Debug, Default)]
pub(super) struct Quarantine(BTreeMap<Istr, Time>);

// === impl Quarantine ===

impl Quarantine {
    /// Updates the missing nodes; returns those that have been missing long enough. Their time starts again, so that
    /// the server is asked again later if the answer was not conclusive.
    pub(super) fn pass(&mut self, missing: &BTreeSet<Istr>, now: Time) -> Vec<Istr> {
        self.0.retain(|node, _| missing.contains(node));
        for node in missing {
            self.0.entry(node.clone()).or_insert(now);
        }
        let due = self.0.iter().filter(|(_, since)| now.since(**since) >= QUARANTINE);
        let due: Vec<Istr> = due.map(|(node, _)| node.clone()).collect();
        for node in &due {
            self.0.insert(node.clone(), now);
        }
        due
    }
}

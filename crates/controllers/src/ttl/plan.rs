//! Pure: how long kubelets may cache Secrets and ConfigMaps, by the number of nodes.

use serde_json::{Value, json};
use steersman_base::Meta;
use steersman_base::names::annotations::NODE_TTL;

/// A range of cluster sizes, and the time for it. Ranges overlap, so that a cluster at a boundary does not alternate.
struct Range {
    nodes_min: usize,
    nodes_max: usize,
    seconds: u32,
}

/// Upstream's ranges.
const RANGES: [Range; 5] = [
    Range { nodes_min: 0, nodes_max: 100, seconds: 0 },
    Range { nodes_min: 90, nodes_max: 500, seconds: 15 },
    Range { nodes_min: 450, nodes_max: 1000, seconds: 30 },
    Range { nodes_min: 900, nodes_max: 2000, seconds: 60 },
    Range { nodes_min: 1800, nodes_max: usize::MAX, seconds: 300 },
];

/// The range that a cluster is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Step(usize);

// === impl Step ===

impl Step {
    /// Returns the range of a cluster that was in this range, and has this many nodes now.
    pub(super) fn of(self, nodes: usize) -> Self {
        let mut at = self.0;
        while nodes > RANGES[at].nodes_max {
            at += 1;
        }
        while nodes < RANGES[at].nodes_min {
            at -= 1;
        }
        Self(at)
    }

    /// Returns the time of this range.
    pub(super) fn seconds(self) -> u32 {
        RANGES[self.0].seconds
    }
}

/// Whether a node says this time. Text that is no number is replaced.
pub(super) fn says(node: &Meta, seconds: u32) -> bool {
    node.annotations.get(NODE_TTL).is_some_and(|text| text.parse() == Ok(i64::from(seconds)))
}

/// Returns the patch that makes a node say this time.
pub(super) fn patch(node: &Meta, seconds: u32) -> Value {
    json!({ "metadata": { "uid": node.uid, "annotations": { NODE_TTL: seconds.to_string() } } })
}

//! Pure: which DaemonSets a change of a node or of a revision concerns. `claim` does the same for pods.

use std::sync::Arc;

use steersman_base::{Istr, ObjectKey, Uid};
use steersman_informer::{Change, Index, Lister};
use steersman_model::apps::{ControllerRevisionView, DaemonSetView};
use steersman_model::core::{NodeView, PodView};
use steersman_model::{Kind, View};

use super::placement::{Placement, Verdict};
use super::pods::node_of;
use crate::toleration::Comparison;

/// The DaemonSets and their pods by node, for the handler of node events.
pub(super) struct Nodes {
    pub(super) sets: Lister<DaemonSetView>,
    pub(super) pods: Index<NodeKey, PodView>,
    pub(super) comparison: Comparison,
}

/// The key of a DaemonSet's pod in the index by node.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct NodeKey {
    pub(super) node: Istr,
    pub(super) owner: Uid,
}

/// Returns the index key of a pod: none if it is not of a DaemonSet.
pub(super) fn node_key(pod: &PodView) -> Option<NodeKey> {
    let owner = pod.meta().controller().filter(|owner| owner.kind == *DaemonSetView::RESOURCE.kind)?;
    Some(NodeKey { node: node_of(pod)?.clone(), owner: owner.uid.clone() })
}

// === impl Nodes ===

impl Nodes {
    /// Returns the DaemonSets that a change of a node concerns.
    pub(super) fn sets_of(&self, change: &Change<NodeView>) -> Vec<ObjectKey> {
        if !changes_placement(change) {
            return Vec::new();
        }
        let node = change.object();
        let came_or_went = !matches!(change, Change::Updated { .. });
        let concerns = |set: &Arc<DaemonSetView>| {
            let key = NodeKey { node: node.meta().name.clone(), owner: set.meta().uid.clone() };
            let verdict = Placement::of(&set.spec.template, self.comparison).on(node);
            is_concerned(set, verdict, self.pods.count(&key) > 0, came_or_went)
        };
        self.sets.list().iter().filter(|set| concerns(set)).map(|set| set.meta().key()).collect()
    }
}

/// Whether a change of a node may change where pods run: its labels or taints are others, or it came or went. A heartbeat
/// concerns nobody.
pub(super) fn changes_placement(change: &Change<NodeView>) -> bool {
    match change {
        Change::Updated { old, new } => old.meta().labels != new.meta().labels || old.spec.taints != new.spec.taints,
        Change::Added { .. } | Change::Deleted { .. } => true,
    }
}

/// Whether a node concerns a DaemonSet: a pod is missing or misplaced there, or the status counts one too many. The status also
/// counts nodes, so that one that came or went concerns every set that has a pod there: a node may be back before its pod is gone.
pub(super) fn is_concerned(set: &DaemonSetView, verdict: Verdict, has_pod: bool, came_or_went: bool) -> bool {
    if came_or_went {
        return verdict == Verdict::Run || has_pod;
    }
    if !has_pod {
        return verdict == Verdict::Run;
    }
    verdict == Verdict::Leave || set.status.number_misscheduled > 0
}

/// Whether a revision was just created by its owner, which knows.
pub(super) fn is_made_by_its_owner(change: &Change<ControllerRevisionView>) -> bool {
    matches!(change, Change::Added { new, .. } if new.meta().controller().is_some())
}

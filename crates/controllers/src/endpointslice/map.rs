//! Pure: what a change of a node concerns.

use steersman_base::{Condition, ConditionStatus, Istr, condition, names};
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::NodeView;

/// Whether a change of a node may change the distribution of CPUs over zones.
pub(super) fn changes_zones(change: &Change<NodeView>) -> bool {
    match change {
        Change::Updated { old, new } => is_ready(old) != is_ready(new) || zone(old) != zone(new),
        Change::Added { .. } | Change::Deleted { .. } => true,
    }
}

/// Whether the node is ready.
pub(super) fn is_ready(node: &NodeView) -> bool {
    let ready: Option<&Condition> = condition::find(&node.status.conditions, "Ready");
    ready.is_some_and(|ready| ready.status == ConditionStatus::True)
}

/// Returns the zone of the node, if it has a zone label.
pub(super) fn zone(node: &NodeView) -> Option<&Istr> {
    node.meta().labels.get(names::labels::TOPOLOGY_ZONE).filter(|zone| !zone.is_empty())
}

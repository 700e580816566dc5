//! Pure: which keys a change concerns, and the zone of a node.

use std::sync::Arc;

use steersman_base::{ConditionStatus, Istr, Meta, ObjectKey, condition};
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::{NodeView, PodView};

use super::{plan, taints};

/// The labels of zones and regions: the first that is there counts.
const ZONE: [&str; 2] = ["failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"];
const REGION: [&str; 2] = ["failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"];
/// A node with this label does not count in its zone.
const EXCLUDED: &str = "node.kubernetes.io/exclude-disruption";

/// Whether taints or labels of a node have to be corrected.
pub(super) fn needs_a_pass(change: &Change<NodeView>) -> bool {
    let node = change.object();
    let is_there = !matches!(change, Change::Deleted { .. });
    is_there && (taints::by_condition(node, None).is_some() || !plan::labels(node.meta()).is_empty())
}

/// Returns the pod that was bound to a node that is not ready.
pub(super) fn bound_to_unready(
    change: &Change<PodView>,
    node: impl Fn(&ObjectKey) -> Option<Arc<NodeView>>,
) -> Vec<ObjectKey> {
    let pod = change.object();
    let was_bound = change.before().is_some_and(|old| old.spec.node_name == pod.spec.node_name);
    if matches!(change, Change::Deleted { .. }) || was_bound || pod.spec.node_name.is_empty() {
        return Vec::new();
    }
    let node = node(&key(&pod.spec.node_name));
    if node.is_some_and(|node| is_unready(&node)) { vec![change.key()] } else { Vec::new() }
}

/// Whether a node reports, or was found, not to be ready.
pub(super) fn is_unready(node: &NodeView) -> bool {
    condition::find(&node.status.conditions, "Ready").is_some_and(|ready| ready.status != ConditionStatus::True)
}

/// Returns the key of a node.
pub(super) fn key(name: &Istr) -> ObjectKey {
    ObjectKey { namespace: Istr::default(), name: name.clone() }
}

/// Returns the zone of a node, as upstream names it in metrics; empty if the node has none.
pub(super) fn zone(node: &Meta) -> Istr {
    let first = |keys: [&str; 2]| keys.iter().find_map(|key| node.labels.get(key)).map_or("", Istr::as_str);
    let region = first(REGION);
    let zone = first(ZONE);
    if region.is_empty() && zone.is_empty() {
        return Istr::default();
    }
    Istr::interned(&format!("{region}:\0:{zone}"))
}

/// Whether a node does not count in its zone.
pub(super) fn is_excluded(node: &Meta) -> bool {
    node.labels.contains_key(EXCLUDED)
}

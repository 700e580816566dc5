//! Pure: which pods a change concerns.

use std::sync::Arc;

use steersman_base::{Istr, ObjectKey};
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::{NodeView, PodView, Taint};

/// Returns the `NoExecute` taints of a node.
pub(super) fn executing(node: &NodeView) -> impl Iterator<Item = &Taint> {
    node.spec.taints.iter().filter(|taint| taint.effect == "NoExecute")
}

/// Whether the pods of a node have to be checked: its `NoExecute` taints are others.
pub(super) fn changes_taints(change: &Change<NodeView>) -> bool {
    match change {
        Change::Added { new, .. } => executing(new).next().is_some(),
        Change::Updated { old, new } => !executing(old).eq(executing(new)),
        Change::Deleted { last, .. } => executing(last).next().is_some(),
    }
}

/// Whether a node has no `NoExecute` taints, or is gone.
pub(super) fn has_no_taints(change: &Change<NodeView>) -> bool {
    matches!(change, Change::Deleted { .. }) || executing(change.object()).next().is_none()
}

/// Returns the pod, if it has to be checked: it was bound to a node with `NoExecute` taints, its tolerations are others, or
/// it is gone and was to be evicted.
pub(super) fn pod_to_check(
    change: &Change<PodView>,
    node: impl Fn(&ObjectKey) -> Option<Arc<NodeView>>,
    is_planned: impl Fn(&ObjectKey) -> bool,
) -> Vec<ObjectKey> {
    let pod = change.object();
    let is_same = change.before().is_some_and(|old| {
        old.spec.node_name == pod.spec.node_name && old.spec.shared.tolerations == pod.spec.shared.tolerations
    });
    if is_same && !change.is_resync() {
        return Vec::new();
    }
    let key = change.key();
    let is_there = !matches!(change, Change::Deleted { .. });
    let on_tainted = || {
        let node = node(&node_key(&pod.spec.node_name));
        node.is_some_and(|node| executing(&node).next().is_some())
    };
    if (is_there && on_tainted()) || is_planned(&key) { vec![key] } else { Vec::new() }
}

/// Returns the keys of pods.
pub(super) fn keys(pods: &[Arc<PodView>]) -> Vec<ObjectKey> {
    pods.iter().map(|pod| pod.meta().key()).collect()
}

/// Returns the key of a node.
pub(super) fn node_key(name: &Istr) -> ObjectKey {
    ObjectKey { namespace: Istr::default(), name: name.clone() }
}

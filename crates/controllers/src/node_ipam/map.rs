//! Pure: which nodes a change concerns, and their ranges.

use std::sync::Arc;

use ipnet::IpNet;
use steersman_base::{Istr, ObjectKey};
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::NodeView;

/// Returns the node, if it has no range yet, or one that cannot be read.
pub(super) fn without_range(change: &Change<NodeView>) -> Vec<ObjectKey> {
    let node = change.object();
    let is_there = !matches!(change, Change::Deleted { .. }) && !node.meta().is_terminating();
    let needs_a_pass = node.spec.pod_cidrs.is_empty() || ranges(node).is_err();
    if is_there && needs_a_pass { vec![change.key()] } else { Vec::new() }
}

/// Returns the nodes without a range.
pub(super) fn waiting(nodes: &[Arc<NodeView>]) -> Vec<ObjectKey> {
    let without = nodes.iter().filter(|node| node.spec.pod_cidrs.is_empty());
    without.map(|node| node.meta().key()).collect()
}

/// Returns the ranges of a node.
///
/// # Errors
/// One of them is not a range.
pub(super) fn ranges(node: &NodeView) -> Result<Vec<IpNet>, Istr> {
    let parse = |text: &Istr| text.parse::<IpNet>().map(|net| net.trunc()).map_err(|_| text.clone());
    node.spec.pod_cidrs.iter().map(parse).collect()
}

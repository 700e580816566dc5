//! Pure: the pods of a DaemonSet by node.

use std::collections::BTreeMap;
use std::sync::Arc;

use steersman_base::Istr;
use steersman_base::names::{annotations, labels};
use steersman_model::View;
use steersman_model::apps::DaemonSetView;
use steersman_model::core::PodView;

use crate::pod;

/// The pods of a DaemonSet by the node that they run on or are made for. On each node the oldest comes first, and those
/// that are not bound yet come last.
pub(super) type PodsByNode = BTreeMap<Istr, Vec<Arc<PodView>>>;

/// The revision that pods should have.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) hash: Istr,
    /// The generation of the template that the DaemonSet has in an annotation, from before revisions.
    pub(super) generation: Option<i64>,
}

/// Sorts pods by node. A pod that has ended and is terminating, or has no node and is made for none, does not count.
pub(super) fn by_node(pods: &[Arc<PodView>]) -> PodsByNode {
    let mut nodes = PodsByNode::new();
    for pod in pods {
        if pod::has_ended(pod) && pod.meta().is_terminating() {
            continue;
        }
        if let Some(node) = node_of(pod) {
            nodes.entry(node.clone()).or_default().push(Arc::clone(pod));
        }
    }
    nodes.values_mut().for_each(|pods| {
        pods.sort_by(|left, right| {
            let order = |pod: &PodView| (pod.spec.node_name.is_empty(), pod.meta().creation_timestamp);
            order(left).cmp(&order(right)).then_with(|| left.meta().name.cmp(&right.meta().name))
        });
    });
    nodes
}

/// Returns the node that a pod runs on or, until it is bound, is made for.
pub(super) fn node_of(pod: &PodView) -> Option<&Istr> {
    if !pod.spec.node_name.is_empty() {
        return Some(&pod.spec.node_name);
    }
    let fields = pod.spec.node_field_terms.iter().flat_map(|term| term.match_fields.iter());
    let mut named = fields.filter(|field| field.key == "metadata.name" && field.operator == "In");
    match &*named.next()?.values {
        [node] => Some(node),
        _ => None,
    }
}

// === impl Wanted ===

impl Wanted {
    pub(super) fn new(set: &DaemonSetView, hash: Istr) -> Self {
        Self { hash, generation: generation_of(set) }
    }

    /// Whether a pod is of the newest template.
    pub(super) fn is_of(&self, pod: &PodView) -> bool {
        let label = |key: &str| pod.meta().labels.get(key);
        let has_hash = !self.hash.is_empty() && label(labels::CONTROLLER_REVISION_HASH) == Some(&self.hash);
        let has_generation = self.generation.is_some_and(|generation| {
            label(labels::POD_TEMPLATE_GENERATION).is_some_and(|held| *held == generation.to_string().as_str())
        });
        has_hash || has_generation
    }
}

/// Returns the generation of the template that the DaemonSet has in an annotation, from before revisions.
fn generation_of(set: &DaemonSetView) -> Option<i64> {
    set.meta().annotations.get(annotations::DAEMONSET_TEMPLATE_GENERATION)?.parse().ok()
}

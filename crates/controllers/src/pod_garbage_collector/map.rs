//! Pure: index functions.

use steersman_base::Istr;
use steersman_model::View;
use steersman_model::core::PodView;

/// Index function: terminating pods.
pub(super) fn terminating(pod: &PodView) -> Option<()> {
    pod.meta().is_terminating().then_some(())
}

/// Index function: the node of a scheduled pod.
pub(super) fn node(pod: &PodView) -> Option<Istr> {
    (!pod.spec.node_name.is_empty()).then(|| pod.spec.node_name.clone())
}

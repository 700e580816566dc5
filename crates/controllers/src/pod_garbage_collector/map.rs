//! Pure: index functions.

use steersman_model::View;
use steersman_model::core::PodView;

/// Index function: terminating pods.
pub(super) fn terminating(pod: &PodView) -> Option<()> {
    pod.meta().is_terminating().then_some(())
}

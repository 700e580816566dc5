//! Pure: which claims a change concerns.

use steersman_base::{Istr, ObjectKey, names};
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::{PersistentVolumeClaimView, PodView};

use super::Options;
use super::plan;
use crate::pod_claims::{claims_of, is_shut_down, is_terminated};
use crate::protection::{self, Step};

/// Returns the claim, if there is something to do with it.
///
/// A condition that is there may be wrong: a pod may have gone while no manager ran, and a write that met another one of the
/// claim is done again with the event of that.
pub(super) fn claim(change: &Change<PersistentVolumeClaimView>, options: Options) -> Option<ObjectKey> {
    let (Change::Added { new: claim, .. } | Change::Updated { new: claim, .. }) = change else { return None };
    let step = protection::step(claim.meta(), names::finalizers::PVC_PROTECTION);
    (plan::has_condition(claim, options) || step != Step::Nothing).then(|| claim.meta().key())
}

/// Index function: the namespace of a claim that is written if no pod uses it.
pub(super) fn unsettled(claim: &PersistentVolumeClaimView, options: Options) -> Option<Istr> {
    let unused = plan::plan(claim, [], options);
    unused.relies_on_absence().then(|| claim.meta().namespace.clone())
}

/// Returns the claims of a pod, if the change may decide whether they are in use.
pub(super) fn claims_of_pod(change: &Change<PodView>, options: Options) -> Vec<ObjectKey> {
    let concerns = match change {
        Change::Added { new: pod, .. } => options.tracks_unused || !holds_claims(pod),
        Change::Updated { old, new } => matters(old) != matters(new),
        Change::Deleted { .. } => true,
    };
    if concerns { claims_of(change.object()) } else { Vec::new() }
}

/// Whether a pod is one that keeps its claims, and so cannot release any.
fn holds_claims(pod: &PodView) -> bool {
    !is_terminated(pod) && !pod.spec.node_name.is_empty()
}

/// The state of a pod that decides whether it uses its claims.
fn matters(pod: &PodView) -> (bool, bool, bool) {
    (is_terminated(pod), is_shut_down(pod), pod.spec.node_name.is_empty())
}

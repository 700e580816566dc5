//! Pure: which pods and claims a change concerns.

use std::sync::Arc;

use steersman_base::{Istr, ObjectKey};
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::PodView;
use steersman_model::resource::ResourceClaimView;

use crate::resource_claims::{claims_of_pod as named_claims_of, is_done};

/// Returns the pod, if there is something to do for it.
pub(super) fn pod(change: &Change<PodView>, needs_work: impl Fn(&PodView) -> bool) -> Option<ObjectKey> {
    let (Change::Added { new: pod, .. } | Change::Updated { new: pod, .. }) = change else { return None };
    needs_work(pod).then(|| pod.meta().key())
}

/// Returns those of the pods for which there is something to do.
pub(super) fn waiting(pods: &[Arc<PodView>], needs_work: impl Fn(&PodView) -> bool) -> Vec<ObjectKey> {
    pods.iter().filter(|pod| needs_work(pod)).map(|pod| pod.meta().key()).collect()
}

/// Returns the claim itself, unless it is gone.
pub(super) fn claim(change: &Change<ResourceClaimView>) -> Option<ObjectKey> {
    (!matches!(change, Change::Deleted { .. })).then(|| change.key())
}

/// Whether a pod with claims was deleted.
pub(super) fn is_deleted_user(change: &Change<PodView>) -> bool {
    matches!(change, Change::Deleted { last, .. } if uses_claims(last))
}

/// Returns the claims of a pod that does not need them any more.
pub(super) fn claims_of_pod(change: &Change<PodView>) -> Vec<ObjectKey> {
    let pod = change.object();
    let is_over = matches!(change, Change::Deleted { .. }) || is_done(pod);
    if !is_over || !uses_claims(pod) {
        return Vec::new();
    }
    let mut claims = named_claims_of(pod);
    let extended = pod.status.extended_resource_claim_name();
    if !extended.is_empty() {
        claims.push(ObjectKey { namespace: pod.meta().namespace.clone(), name: Istr::new(extended) });
    }
    claims
}

fn uses_claims(pod: &PodView) -> bool {
    !pod.spec.resource_claims.is_empty() || !pod.status.extended_resource_claim_name().is_empty()
}

//! Pure: the next step for a claim.

use serde_json::{Value, json};
use steersman_base::{ObjectKey, Quantity};
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::{PersistentVolumeClaimView, PersistentVolumeView};
use steersman_runtime::handler::Keys;

use crate::provisioner::map;

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Give the volume this capacity.
    Grow(Quantity),
    /// Say that the claim has this capacity.
    Report(Quantity),
}

/// Returns the claim, if it asks for more than it has.
pub(super) fn to_resize(change: &Change<PersistentVolumeClaimView>) -> Keys {
    let is_gone = matches!(change, Change::Deleted { .. });
    (!is_gone && is_small(change.object())).then(|| change.key()).into_iter().collect()
}

/// Returns the claim of a volume that the provisioner made.
pub(super) fn claim_of(change: &Change<PersistentVolumeView>) -> Keys {
    let is_gone = matches!(change, Change::Deleted { .. });
    map::claim_of(change.object()).filter(|_| !is_gone).into_iter().collect()
}

/// Whether a bound claim asks for more than it has.
pub(super) fn is_small(claim: &PersistentVolumeClaimView) -> bool {
    claim.status.phase == "Bound" && !claim.meta().is_terminating() && wanted(claim) > held(claim)
}

/// Returns the volume of a claim.
pub(super) fn volume_of(claim: &PersistentVolumeClaimView) -> ObjectKey {
    ObjectKey::cluster(&claim.spec.volume_name)
}

/// Returns the next step for a claim that is too small.
pub(super) fn step(claim: &PersistentVolumeClaimView, volume: &PersistentVolumeView) -> Option<Step> {
    let is_its = volume.spec.claim_ref.as_ref().is_some_and(|bound| bound.uid == claim.meta().uid);
    if !is_small(claim) || !is_its || !map::is_ours(volume) {
        return None;
    }
    let wanted = wanted(claim);
    let size = volume.spec.capacity.get("storage").copied().unwrap_or_default();
    Some(if size < wanted { Step::Grow(wanted) } else { Step::Report(size) })
}

/// Returns the patch of a volume that grows.
pub(super) fn grown(volume: &PersistentVolumeView, size: Quantity) -> Value {
    let meta = volume.meta();
    json!({
        "metadata": { "uid": meta.uid, "resourceVersion": meta.resource_version },
        "spec": { "capacity": { "storage": size.to_string() } },
    })
}

/// Returns the patch of the status of a claim that has grown.
pub(super) fn reported(claim: &PersistentVolumeClaimView, size: Quantity) -> Value {
    let meta = claim.meta();
    json!({
        "metadata": { "uid": meta.uid, "resourceVersion": meta.resource_version },
        "status": { "capacity": { "storage": size.to_string() } },
    })
}

fn wanted(claim: &PersistentVolumeClaimView) -> Quantity {
    claim.spec.resources.requests.get("storage").copied().unwrap_or_default()
}

fn held(claim: &PersistentVolumeClaimView) -> Quantity {
    claim.status.capacity.get("storage").copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use steersman_model::Encoded;

    use super::*;

    fn view<V: View>(object: &Value) -> V {
        V::decode(Encoded::Json(object.to_string().as_bytes())).expect("it is one")
    }

    #[test]
    fn the_volume_grows_before_the_claim_says_so() {
        let check = |phase: &str, request: &str, capacity: &str, size: &str, by: &str, want: Option<&str>| {
            let claim: PersistentVolumeClaimView = view(&json!({
                "metadata": { "name": "data", "namespace": "shop", "uid": "c" },
                "spec": { "volumeName": "disk", "resources": { "requests": { "storage": request } } },
                "status": { "phase": phase, "capacity": { "storage": capacity } },
            }));
            let volume: PersistentVolumeView = view(&json!({
                "metadata": { "name": "disk", "annotations": { "pv.kubernetes.io/provisioned-by": by } },
                "spec": { "capacity": { "storage": size }, "claimRef": { "name": "data", "uid": "c" } },
            }));
            let got = step(&claim, &volume).map(|step| match step {
                Step::Grow(size) => format!("grow {size}"),
                Step::Report(size) => format!("report {size}"),
            });
            assert_eq!(got.as_deref(), want, "{phase} {request} {capacity} {size} {by}");
        };
        let ours = crate::provisioner::NAME;
        check("Bound", "2Gi", "1Gi", "1Gi", ours, Some("grow 2Gi"));
        check("Bound", "2Gi", "1Gi", "2Gi", ours, Some("report 2Gi"));
        check("Bound", "2Gi", "2Gi", "2Gi", ours, None);
        check("Bound", "1Gi", "2Gi", "2Gi", ours, None);
        check("Pending", "2Gi", "1Gi", "1Gi", ours, None);
        check("Bound", "2Gi", "1Gi", "1Gi", "example.com/disk", None);
    }
}

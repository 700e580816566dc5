//! Pure: the claim of an ephemeral volume.

use serde_json::{Value, json};
use steersman_base::{Istr, Meta, OwnerRef};
use steersman_model::core::pod::{ClaimTemplate, Volume, VolumeSource};
use steersman_model::core::{PersistentVolumeClaimView, PodView};
use steersman_model::{Kind, View};

use crate::pod_claims::ephemeral_name;

/// An ephemeral volume, and the name of its claim.
pub(super) struct Needed<'a> {
    pub(super) volume: &'a Istr,
    pub(super) claim: Istr,
    template: &'a ClaimTemplate,
}

/// Returns the ephemeral volumes of a pod.
pub(super) fn needed(pod: &PodView) -> impl Iterator<Item = Needed<'_>> {
    pod.spec.volumes.iter().filter_map(|volume: &Volume| match &volume.source {
        VolumeSource::Ephemeral(template) => {
            Some(Needed { volume: &volume.name, claim: ephemeral_name(pod.meta(), volume), template })
        }
        _ => None,
    })
}

// === impl Needed ===

impl Needed<'_> {
    /// Returns the claim to create. It goes with the pod.
    pub(super) fn body(&self, pod: &Meta) -> Value {
        let resource = &PersistentVolumeClaimView::RESOURCE;
        let mut metadata = json!(self.template.metadata);
        metadata["name"] = json!(self.claim);
        metadata["namespace"] = json!(pod.namespace);
        metadata["ownerReferences"] = json!([OwnerRef::controller_of("v1", "Pod", pod)]);
        json!({
            "apiVersion": resource.api_version(),
            "kind": resource.kind,
            "metadata": metadata,
            "spec": self.template.spec,
        })
    }

    /// Returns the message about a claim of this name that was not made for the pod.
    pub(super) fn not_ours(&self, pod: &PodView) -> String {
        let Meta { namespace, name, .. } = pod.meta();
        let claim = &self.claim;
        format!("PVC {namespace}/{claim} was not created for pod {namespace}/{name} (pod is not owner)")
    }
}

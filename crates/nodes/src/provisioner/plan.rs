//! Pure: the next step for a claim.

use steersman_model::View;
use steersman_model::core::PersistentVolumeClaimView;

use super::ProvisionerOptions;
use super::object::volume_name;
use super::view::{ClassView, VolumeView};

/// The annotation by which a binder asks a provisioner for a volume.
const ASKED_BY: &str = "volume.kubernetes.io/storage-provisioner";
/// The annotation by which a scheduler says where the pod of a claim will be.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// The state of a claim.
pub(super) struct Observed<'a> {
    /// The claim; absent if it is gone.
    pub(super) claim: Option<&'a PersistentVolumeClaimView>,
    /// Its class, if it is one of the provisioner's.
    pub(super) class: Option<&'a ClassView>,
    /// Volumes that were made for a claim of this name.
    pub(super) volumes: &'a [std::sync::Arc<VolumeView>],
    /// Whether a pod that uses it has a node.
    pub(super) is_used: bool,
}

/// A step.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step<'a> {
    /// Say that a volume has lost its claim.
    Release(&'a VolumeView),
    /// Delete a volume.
    Delete(&'a VolumeView),
    /// Create the volume of the claim.
    Provision(&'a ClassView),
    /// Say that the claim waits for a pod.
    Await,
    /// Say that the volume is bound.
    BindVolume(&'a VolumeView),
    /// Name the volume in the claim.
    BindClaim(&'a VolumeView),
    /// Say that the claim is bound.
    ReportBound(&'a VolumeView),
}

/// Returns the steps, in order.
pub(super) fn plan<'a>(observed: &Observed<'a>, options: ProvisionerOptions) -> Vec<Step<'a>> {
    let mut steps = Vec::new();
    let uid = observed.claim.map(|claim| claim.meta().uid.to_string());
    let is_its = |volume: &VolumeView| {
        let claim = volume.spec.claim_ref.as_ref();
        uid.as_deref().is_some_and(|uid| claim.is_some_and(|claim| claim.uid == uid))
    };
    for volume in observed.volumes.iter().filter(|volume| !is_its(volume)) {
        steps.extend(reclaim(volume, options));
    }
    let Some(claim) = observed.claim.filter(|claim| !claim.meta().is_terminating()) else { return steps };
    let name = volume_name(&claim.meta().uid);
    let own = observed.volumes.iter().find(|volume| volume.metadata.name == name.as_str() && is_its(volume));
    let is_unbound = claim.spec.volume_name.is_empty();
    match own {
        Some(volume) if options.binds && (is_unbound || claim.spec.volume_name == name.as_str()) => {
            if volume.status.phase != "Bound" {
                steps.push(Step::BindVolume(volume));
            }
            if is_unbound {
                steps.push(Step::BindClaim(volume));
            }
            if claim.status.phase != "Bound" {
                steps.push(Step::ReportBound(volume));
            }
        }
        None if is_unbound => steps.extend(observed.class.and_then(|class| provision(claim, class, observed, options))),
        _ => {}
    }
    steps
}

/// Returns the steps for a volume whose claim is gone. A binder releases volumes itself.
fn reclaim(volume: &VolumeView, options: ProvisionerOptions) -> Vec<Step<'_>> {
    let is_released = volume.status.phase == "Released";
    let mut steps = Vec::new();
    if options.binds && !is_released {
        steps.push(Step::Release(volume));
    }
    let is_deleted = volume.spec.persistent_volume_reclaim_policy == "Delete" && !volume.metadata.is_terminating();
    if is_deleted && (options.binds || is_released) {
        steps.push(Step::Delete(volume));
    }
    steps
}

/// Whether a claim without a volume gets one now.
fn provision<'a>(
    claim: &PersistentVolumeClaimView,
    class: &'a ClassView,
    observed: &Observed<'_>,
    options: ProvisionerOptions,
) -> Option<Step<'a>> {
    let annotations = &claim.meta().annotations;
    let waits = class.volume_binding_mode == "WaitForFirstConsumer";
    let is_due = !waits || observed.is_used || annotations.contains_key(SELECTED_NODE);
    if !options.binds {
        let is_asked = annotations.get(ASKED_BY).is_some_and(|by| by == super::NAME);
        return (is_asked && is_due).then_some(Step::Provision(class));
    }
    Some(if is_due { Step::Provision(class) } else { Step::Await })
}

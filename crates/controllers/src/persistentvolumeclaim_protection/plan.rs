//! Pure: what to do with a claim, given the pods that may use it.

use serde_json::{Value, json};
use steersman_base::{ConditionStatus, Time, condition, names};
use steersman_model::View;
use steersman_model::core::{PersistentVolumeClaimView, PodView};

use super::Options;
use crate::pod_claims::{is_shut_down, is_terminated, uses};
use crate::protection::{self, Step};

/// The condition that says since when no pod uses a claim.
const UNUSED: &str = "Unused";

/// The actions on a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// Set the condition `Unused` to this.
    pub(super) unused: Option<bool>,
    /// Add the finalizer, which the claim lacks.
    pub(super) protect: bool,
    /// Remove the finalizer: the claim is terminating, and nothing uses it.
    pub(super) release: bool,
}

/// The use of a claim by pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Usage {
    /// Whether a scheduled pod has it: the claim is kept.
    is_mounted: bool,
    /// Whether a pod that has not ended names it.
    is_referenced: bool,
}

/// Decides what to do with a claim; `pods` are those with a volume of its name.
pub(super) fn plan<'a>(
    claim: &PersistentVolumeClaimView,
    pods: impl IntoIterator<Item = &'a PodView>,
    options: Options,
) -> Plan {
    let usage = usage(claim, pods);
    match protection::step(claim.meta(), names::finalizers::PVC_PROTECTION) {
        Step::Release => Plan { release: !usage.is_mounted, ..Plan::default() },
        step => Plan { unused: unused(claim, usage, options), protect: step == Step::Add, release: false },
    }
}

fn usage<'a>(claim: &PersistentVolumeClaimView, pods: impl IntoIterator<Item = &'a PodView>) -> Usage {
    let mut usage = Usage::default();
    for pod in pods {
        // A kubelet sees a pod once it is scheduled, and does not start one whose claim is terminating.
        let is_scheduled = !pod.spec.node_name.is_empty();
        usage.is_mounted |= is_scheduled && uses(pod, claim.meta(), !is_shut_down(pod));
        usage.is_referenced |= !is_terminated(pod) && uses(pod, claim.meta(), true);
    }
    usage
}

/// Whether a claim has the condition `Unused`, or gets it. Claims that are not bound belong to the binder.
pub(super) fn has_condition(claim: &PersistentVolumeClaimView, options: Options) -> bool {
    options.tracks_unused && !claim.meta().is_terminating() && claim.status.phase == "Bound"
}

/// Returns the value that the condition `Unused` lacks.
fn unused(claim: &PersistentVolumeClaimView, usage: Usage, options: Options) -> Option<bool> {
    if !has_condition(claim, options) {
        return None;
    }
    let held = condition::find(&claim.status.conditions, UNUSED).map(|held| held.status);
    match (usage.is_referenced, held) {
        (true, None | Some(ConditionStatus::True)) => Some(false),
        (false, None | Some(ConditionStatus::False | ConditionStatus::Unknown)) => Some(true),
        (true, Some(_)) | (false, Some(ConditionStatus::True)) => None,
    }
}

/// Sets the condition `Unused` of a claim as the server has it; returns whether it changed.
pub(super) fn set_unused(claim: &mut Value, is_unused: bool, now: Time) -> bool {
    if claim["metadata"]["deletionTimestamp"].is_string() || claim["status"]["phase"] != "Bound" {
        return false;
    }
    let (status, reason, message) = if is_unused {
        ("True", "NoPodsUsingPVC", "No pods are currently referencing this PVC")
    } else {
        ("False", "PodUsingPVC", "A pod is currently referencing this PVC")
    };
    let condition = json!({
        "type": UNUSED, "status": status, "lastTransitionTime": now, "reason": reason, "message": message,
    });
    let mut conditions = claim["status"]["conditions"].as_array().cloned().unwrap_or_default();
    match conditions.iter_mut().find(|held| held["type"] == UNUSED) {
        Some(held) if held["status"] == status => return false,
        Some(held) => *held = condition,
        None => conditions.push(condition),
    }
    claim["status"]["conditions"] = conditions.into();
    true
}

// === impl Plan ===

impl Plan {
    /// Whether it rests on pods that are not there, which a cache cannot prove.
    pub(super) fn relies_on_absence(self) -> bool {
        self.release || self.unused == Some(true)
    }
}

//! Pure: the claims that a pod or a pod group needs.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use steersman_base::meta::Owners;
use steersman_base::names::annotations::POD_RESOURCE_CLAIM;
use steersman_base::{Istr, Meta, OwnerRef, Resource};
use steersman_model::core::PodView;
use steersman_model::core::pod::{ClaimStatus, ResourceClaim};
use steersman_model::resource::{ConsumerReference, ResourceClaimView};
use steersman_model::scheduling::PodGroupView;
use steersman_model::template::raw_body;
use steersman_model::{Kind, NewPodMeta, PodName, Template, View};

use crate::resource_claims::{GroupClaims, Named, consumer, is_done, is_for_pod, is_reserved_for, named};

const PODS: &Resource = &PodView::RESOURCE;
const GROUPS: &Resource = &PodGroupView::RESOURCE;
const CLAIMS: &Resource = &ResourceClaimView::RESOURCE;

/// A pod or a pod group with claims.
#[derive(Clone, Copy)]
pub(super) struct Holder<'a> {
    pub(super) resource: &'static Resource,
    pub(super) meta: &'a Meta,
    pub(super) claims: &'a [ResourceClaim],
    statuses: &'a [ClaimStatus],
}

/// The group of a pod.
#[derive(Clone, Debug)]
pub(super) enum Group {
    /// The pod is not in a group.
    None,
    /// The pod is in this group.
    Found(Arc<PodGroupView>),
    /// The cache has no group of the name.
    Missing(Istr),
    /// The pod is in a group, and the gate for groups is off.
    Disabled(Istr),
}

/// Why a claim cannot be made. The texts are upstream's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Problem {
    #[error(
        "checking for claim before creating it: {kind} \"{holder}\", spec.resourceClaim {entry:?}: none of the supported fields are set"
    )]
    Unsupported { kind: &'static str, holder: String, entry: Istr },
    #[error("resource claim template {0:?}: resourceclaimtemplate.resource.k8s.io {0:?} not found")]
    NoTemplate(Istr),
    #[error("claim {0} is a PodGroup claim but the DRAWorkloadResourceClaims feature is disabled")]
    GroupClaimsOff(Istr),
}

/// The longest prefix of a generated name: a hyphen and five characters follow.
const PREFIX_MAX: usize = 57;

/// Whether there is something to do for a pod: a claim is to be made, or to be reserved. A pod that never runs (again)
/// needs nothing.
pub(super) fn needs_work(
    pod: &PodView,
    claim_of: impl Fn(&Istr) -> Option<Arc<ResourceClaimView>>,
    group: impl Fn() -> Group,
    groups: GroupClaims,
) -> bool {
    if pod.spec.resource_claims.is_empty() || pod.meta().is_terminating() || is_done(pod) {
        return false;
    }
    pod.spec.resource_claims.iter().any(|entry| match named(entry, pod.status.resource_claim_statuses()) {
        Named::NotMade(_) | Named::Unsupported => true,
        Named::NotNeeded => false,
        Named::Given(name) => claim_of(name).is_some_and(|claim| lacks_reservation(&claim, pod, groups)),
        Named::Made(name) => match claim_of(name) {
            // The claim of a group is made for the group.
            None => !matches!(group(), Group::Found(group) if is_of_group(&group, entry)),
            Some(claim) if !is_for_pod(claim.meta(), pod, groups) => true,
            Some(claim) => lacks_reservation(&claim, pod, groups),
        },
    })
}

/// Whether a claim of a scheduled pod is allocated, and not reserved for it: the pod was not scheduled by a scheduler that
/// does so.
pub(super) fn lacks_reservation(claim: &ResourceClaimView, pod: &PodView, groups: GroupClaims) -> bool {
    !pod.spec.node_name.is_empty() && claim.status.allocation.is_some() && !is_reserved_for(claim, pod, groups)
}

/// Whether an entry of a pod is one of its group.
pub(super) fn is_of_group(group: &PodGroupView, entry: &ResourceClaim) -> bool {
    group.spec.resource_claims.contains(entry)
}

/// Returns the object that a claim of a pod is reserved for: the pod, or its group if it has the same entry.
pub(super) fn bound_to(pod: &PodView, group: Option<&PodGroupView>, entry: &ResourceClaim) -> ConsumerReference {
    match group.filter(|group| is_of_group(group, entry)) {
        Some(group) => consumer(GROUPS, group.meta()),
        None => consumer(PODS, pod.meta()),
    }
}

/// Returns the claim that was made for an entry, of those that the owner controls.
pub(super) fn made_for<'a>(
    entry: &ResourceClaim,
    owned: &'a [Arc<ResourceClaimView>],
) -> Option<&'a Arc<ResourceClaimView>> {
    let is_made =
        |claim: &&Arc<ResourceClaimView>| claim.meta().annotations.get(POD_RESOURCE_CLAIM) == Some(&entry.name);
    // The order of a cache is no order: the first by name, so that all passes find the same one.
    owned.iter().filter(is_made).min_by(|a, b| a.meta().name.cmp(&b.meta().name))
}

/// Returns the prefix of a generated claim's name: both names and hyphens, or as much of them as there is room for.
pub(super) fn name_prefix(holder: &str, entry: &str) -> String {
    let whole = format!("{holder}-{entry}-");
    let length = whole.len();
    if length <= PREFIX_MAX {
        return whole;
    }
    let part = |name: &str| -> String { name.chars().take(name.len() * PREFIX_MAX / length).collect() };
    format!("{}-{}", part(holder), part(entry))
}

/// Whether the spec of a claim asks for devices for administration.
pub(super) fn is_for_administration(spec: &str) -> bool {
    let spec: Value = serde_json::from_str(spec).unwrap_or_default();
    let requests = spec["devices"]["requests"].as_array();
    requests.is_some_and(|requests| requests.iter().any(|request| request["exactly"]["adminAccess"] == true))
}

// === impl Holder ===

impl<'a> Holder<'a> {
    /// Returns what is the same for pods and groups of a pod.
    pub(super) fn pod(pod: &'a PodView) -> Self {
        let statuses = pod.status.resource_claim_statuses();
        Self { resource: PODS, meta: pod.meta(), claims: &pod.spec.resource_claims, statuses }
    }

    /// Returns what is the same for pods and groups of a group.
    pub(super) fn group(group: &'a PodGroupView) -> Self {
        let statuses = &group.status.resource_claim_statuses;
        Self { resource: GROUPS, meta: group.meta(), claims: &group.spec.resource_claims, statuses }
    }

    /// Returns the claim of an entry.
    pub(super) fn named(&self, entry: &'a ResourceClaim) -> Named<'a> {
        named(entry, self.statuses)
    }

    /// Returns the problem of an entry that has neither a claim nor a template.
    pub(super) fn unsupported(&self, entry: &ResourceClaim) -> Problem {
        let kind = if self.resource == PODS { "pod" } else { "PodGroup" };
        Problem::Unsupported { kind, holder: self.meta.key().to_string(), entry: entry.name.clone() }
    }

    /// Returns the kind of the entries, as in messages.
    pub(super) fn entry_kind(&self) -> &'static str {
        if self.resource == PODS { "PodResourceClaim" } else { "PodGroupResourceClaim" }
    }

    /// Returns the body that creates the claim of an entry. It goes with the holder.
    pub(super) fn body(&self, entry: &Istr, template: &Template, name: PodName<'_>) -> Vec<u8> {
        let given = template.annotations().iter().filter(|(key, _)| **key != POD_RESOURCE_CLAIM);
        let given = given.map(|(key, value)| (key.clone(), value.clone()));
        // Unlike other controllers, upstream's does not block the deletion of the owner.
        let owner = OwnerRef {
            block_owner_deletion: None,
            ..OwnerRef::controller_of(&self.resource.api_version(), &self.resource.kind, self.meta)
        };
        let metadata = NewPodMeta {
            name,
            namespace: &self.meta.namespace,
            labels: template.labels().clone(),
            annotations: given.chain([(Istr::new(POD_RESOURCE_CLAIM), entry.clone())]).collect(),
            finalizers: Box::default(),
            owners: Owners::new(vec![owner]),
        };
        let spec = if template.spec().is_empty() { "{}" } else { template.spec().as_str() };
        raw_body(&CLAIMS.api_version(), &CLAIMS.kind, &metadata, spec)
    }

    /// Returns what to apply to the status: the claims that were made now, and those of before. The uid keeps it from a new
    /// object of the same name.
    pub(super) fn statuses(&self, made: &BTreeMap<Istr, Istr>) -> Value {
        let before =
            self.statuses.iter().filter_map(|status| Some((&status.name, status.resource_claim_name.as_ref()?)));
        let all: BTreeMap<_, _> = before.chain(made).collect();
        let all: Vec<_> = all.iter().map(|(name, claim)| json!({ "name": name, "resourceClaimName": claim })).collect();
        json!({
            "apiVersion": self.resource.api_version(),
            "kind": self.resource.kind,
            "metadata": { "name": self.meta.name, "namespace": self.meta.namespace, "uid": self.meta.uid },
            "status": { "resourceClaimStatuses": all },
        })
    }
}

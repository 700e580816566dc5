//! Pure: the claims of devices that pods and pod groups use.
//!
//! Follows `k8s.io/dynamic-resource-allocation/resourceclaim` 0.37.1.

use steersman_base::{Istr, Meta, ObjectKey, OwnerRef, Resource};
use steersman_model::core::PodView;
use steersman_model::core::pod::{ClaimStatus, ResourceClaim};
use steersman_model::resource::{ConsumerReference, ResourceClaimView};
use steersman_model::scheduling::PodGroupView;
use steersman_model::{Kind, View};

use crate::pod;

const PODS: &Resource = &PodView::RESOURCE;
const GROUPS: &Resource = &PodGroupView::RESOURCE;

/// The claim of an entry of `spec.resourceClaims`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named<'a> {
    /// A claim that a user creates.
    Given(&'a Istr),
    /// A claim that was made from a template: whether it still belongs to the owner is to be checked.
    Made(&'a Istr),
    /// A claim that is not made yet, from this template.
    NotMade(&'a Istr),
    /// No claim is needed.
    NotNeeded,
    /// Neither a claim nor a template: the API has got a field that is not known here.
    Unsupported,
}

/// Whether claims may belong to pod groups: the gate `DRAWorkloadResourceClaims`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupClaims {
    On,
    Off,
}

/// Returns the claim of an entry.
pub(crate) fn named<'a>(claim: &'a ResourceClaim, statuses: &'a [ClaimStatus]) -> Named<'a> {
    match (&claim.resource_claim_name, &claim.resource_claim_template_name) {
        (Some(name), _) => Named::Given(name),
        (None, None) => Named::Unsupported,
        (None, Some(template)) => match statuses.iter().find(|status| status.name == claim.name) {
            None => Named::NotMade(template),
            Some(status) => status.resource_claim_name.as_ref().map_or(Named::NotNeeded, Named::Made),
        },
    }
}

/// Returns the name of the claim of an entry, if it is known.
pub(crate) fn claim_name<'a>(claim: &'a ResourceClaim, statuses: &'a [ClaimStatus]) -> Option<&'a Istr> {
    match named(claim, statuses) {
        Named::Given(name) | Named::Made(name) => Some(name),
        Named::NotMade(_) | Named::NotNeeded | Named::Unsupported => None,
    }
}

/// Index function: the claims of a pod that are known, without that of its extended resources.
pub(crate) fn claims_of_pod(pod: &PodView) -> Vec<ObjectKey> {
    keys(pod.meta(), names(&pod.spec.resource_claims, pod.status.resource_claim_statuses()))
}

/// Index function: the claims of a pod group that are known.
pub(crate) fn claims_of_group(group: &PodGroupView) -> Vec<ObjectKey> {
    keys(group.meta(), names(&group.spec.resource_claims, &group.status.resource_claim_statuses))
}

/// Index function: the templates of a pod's claims.
pub(crate) fn templates_of_pod(pod: &PodView) -> Vec<ObjectKey> {
    keys(pod.meta(), templates(&pod.spec.resource_claims))
}

/// Index function: the templates of a pod group's claims.
pub(crate) fn templates_of_group(group: &PodGroupView) -> Vec<ObjectKey> {
    keys(group.meta(), templates(&group.spec.resource_claims))
}

/// Index function: the group of a pod.
pub(crate) fn group_of(pod: &PodView) -> Option<ObjectKey> {
    let name = &pod.spec.pod_group_name;
    (!name.is_empty()).then(|| ObjectKey { namespace: pod.meta().namespace.clone(), name: name.clone() })
}

fn names<'a>(claims: &'a [ResourceClaim], statuses: &'a [ClaimStatus]) -> impl Iterator<Item = &'a Istr> {
    claims.iter().filter_map(|claim| claim_name(claim, statuses))
}

fn templates(claims: &[ResourceClaim]) -> impl Iterator<Item = &Istr> {
    claims.iter().filter_map(|claim| claim.resource_claim_template_name.as_ref())
}

/// An index must not have an object twice under one key.
fn keys<'a>(owner: &Meta, names: impl Iterator<Item = &'a Istr>) -> Vec<ObjectKey> {
    let mut keys: Vec<_> =
        names.map(|name| ObjectKey { namespace: owner.namespace.clone(), name: name.clone() }).collect();
    keys.sort();
    keys.dedup();
    keys
}

/// Whether it is certain that no container of the pod runs or ever will.
pub(crate) fn is_done(pod: &PodView) -> bool {
    pod::has_ended(pod) || pod.meta().is_terminating() && pod.spec.node_name.is_empty()
}

/// Whether a claim was made for the pod, or for its group.
pub(crate) fn is_for_pod(claim: &Meta, pod: &PodView, groups: GroupClaims) -> bool {
    claim.namespace == pod.meta().namespace
        && (claim.is_controlled_by(pod.meta())
            || groups == GroupClaims::On && claim.controller().is_some_and(|owner| is_group_of(owner, pod)))
}

/// Returns the group that a claim was made for.
pub(crate) fn owning_group(claim: &Meta) -> Option<ObjectKey> {
    let owner = claim.controller().filter(|owner| owner.kind == *GROUPS.kind && owner.group() == GROUPS.group)?;
    Some(ObjectKey { namespace: claim.namespace.clone(), name: owner.name.clone() })
}

/// Whether an owner is the group of the pod. The pod does not know its uid, and the version of the API may be another.
fn is_group_of(owner: &OwnerRef, pod: &PodView) -> bool {
    !pod.spec.pod_group_name.is_empty()
        && owner.name == pod.spec.pod_group_name
        && owner.kind == *GROUPS.kind
        && owner.group() == GROUPS.group
}

/// Whether a claim is reserved for the pod, or for its group.
pub(crate) fn is_reserved_for(claim: &ResourceClaimView, pod: &PodView, groups: GroupClaims) -> bool {
    let group = &pod.spec.pod_group_name;
    claim.status.reserved_for.iter().any(|consumer| {
        consumer.uid == pod.meta().uid
            || groups == GroupClaims::On && !group.is_empty() && is_group(consumer) && consumer.name == *group
    })
}

/// Whether a consumer is a pod.
pub(crate) fn is_pod(consumer: &ConsumerReference) -> bool {
    is_of(consumer, PODS)
}

/// Whether a consumer is a pod group.
pub(crate) fn is_group(consumer: &ConsumerReference) -> bool {
    is_of(consumer, GROUPS)
}

fn is_of(consumer: &ConsumerReference, resource: &Resource) -> bool {
    consumer.api_group == *resource.group && consumer.resource == *resource.plural
}

/// Returns the entry of a pod or a pod group in `reservedFor`.
pub(crate) fn consumer(resource: &Resource, object: &Meta) -> ConsumerReference {
    ConsumerReference {
        api_group: Istr::interned(&resource.group),
        resource: Istr::interned(&resource.plural),
        name: object.name.clone(),
        uid: object.uid.clone(),
    }
}

//! Pure: what is left of a claim when its users are gone.

use serde_json::{Map, Value, json};
use steersman_base::names::finalizers::RESOURCE_CLAIM;
use steersman_base::{Istr, Meta, ObjectKey, OwnerRef};
use steersman_model::View;
use steersman_model::core::PodView;
use steersman_model::resource::{ConsumerReference, ResourceClaimView};

use crate::resource_claims::is_done;

/// Whether a claim is still reserved for a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It needs the claim, or is of a kind that others look after.
    Keep,
    /// It is gone, or never runs again.
    Remove,
    /// The cache has another object of its name, or none: the server knows.
    Ask,
}

/// The actions on a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// The reservations that stay, if some do not.
    pub(super) reserved_for: Option<Vec<ConsumerReference>>,
    /// Remove the allocation.
    pub(super) deallocate: bool,
    /// Remove the finalizer that an allocated claim has.
    pub(super) unprotect: bool,
}

/// Returns whether a pod keeps its reservation, by the pod of its name in the cache. A pod that is done stays so.
pub(super) fn pod_verdict(consumer: &ConsumerReference, cached: Option<&PodView>) -> Verdict {
    match cached {
        Some(pod) if pod.meta().uid == consumer.uid && is_done(pod) => Verdict::Remove,
        cached => verdict(consumer, cached.map(View::meta)),
    }
}

/// Returns whether an object keeps its reservation, by the object of its name in the cache. An object of another uid may be
/// an older one: the cache may lag behind the scheduler.
pub(super) fn verdict(consumer: &ConsumerReference, cached: Option<&Meta>) -> Verdict {
    if cached.is_some_and(|object| object.uid == consumer.uid) { Verdict::Keep } else { Verdict::Ask }
}

/// Decides what to do with a claim of which these reservations stay. The finalizer says that the allocation is removed by
/// this controller; that of a claim that is not terminating is removed only with the allocation, since a scheduler adds
/// it before it allocates.
pub(super) fn plan(claim: &ResourceClaimView, remaining: Vec<ConsumerReference>) -> Plan {
    let is_unused = remaining.is_empty();
    let is_protected = claim.meta().has_finalizer(RESOURCE_CLAIM);
    let is_allocated = claim.status.allocation.is_some();
    if remaining.len() < claim.status.reserved_for.len() {
        let unprotect = is_unused && is_protected;
        return Plan { reserved_for: Some(remaining), deallocate: unprotect && is_allocated, unprotect };
    }
    let unprotect = is_unused && is_protected && claim.meta().is_terminating();
    Plan { reserved_for: None, deallocate: unprotect && is_allocated, unprotect }
}

/// Returns the patch that removes the finalizer from an object as it was written last.
pub(super) fn without_finalizer(claim: &Meta) -> Value {
    let others: Vec<_> = claim.finalizers().iter().filter(|held| **held != *RESOURCE_CLAIM).collect();
    let mut metadata = preconditions(claim);
    metadata.insert("finalizers".into(), if others.is_empty() { Value::Null } else { json!(others) });
    json!({ "metadata": metadata })
}

/// Returns the patch that sets the reservations of a claim.
pub(super) fn reserved(claim: &Meta, consumers: &[ConsumerReference]) -> Value {
    json!({ "metadata": preconditions(claim), "status": { "reservedFor": list(consumers) } })
}

/// A claim that was changed in the meantime is looked at again.
fn preconditions(claim: &Meta) -> Map<String, Value> {
    [("uid".into(), json!(claim.uid)), ("resourceVersion".into(), json!(claim.resource_version))].into_iter().collect()
}

fn list(consumers: &[ConsumerReference]) -> Value {
    if consumers.is_empty() { Value::Null } else { json!(consumers) }
}

/// Returns the pod that a claim was made for.
pub(super) fn owning_pod(claim: &Meta) -> Option<(ObjectKey, &OwnerRef)> {
    let owner = claim.controller().filter(|owner| owner.kind == "Pod" && owner.api_version == "v1")?;
    Some((ObjectKey { namespace: claim.namespace.clone(), name: Istr::clone(&owner.name) }, owner))
}

// === impl Plan ===

impl Plan {
    /// Returns the patch of the claim's status, if there is one.
    pub(super) fn status(&self, claim: &Meta) -> Option<Value> {
        let mut status = Map::new();
        if let Some(remaining) = &self.reserved_for {
            status.insert("reservedFor".into(), list(remaining));
        }
        if self.deallocate {
            status.insert("allocation".into(), Value::Null);
        }
        (!status.is_empty()).then(|| json!({ "metadata": preconditions(claim), "status": status }))
    }
}

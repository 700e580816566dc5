//! Pure: which devices a claim gets, and what pods wait for.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use steersman_base::{Istr, ObjectKey};
use steersman_informer::Change;
use steersman_model::core::pod::{ClaimStatus, ResourceClaim};
use steersman_model::resource::ResourceClaimView;

use super::{CLASS, DRIVER, object};
use crate::view::SimPodView;

/// A request of a claim: its name, and the number of devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) name: String,
    pub(super) count: usize,
}

/// Returns the requests of a claim; `None` if it asks for something else than a number of our devices.
pub(super) fn requests(spec: &Value) -> Option<Vec<Request>> {
    let is_none = |value: &Value| value.as_array().is_none_or(Vec::is_empty);
    let devices = &spec["devices"];
    if !is_none(&devices["constraints"]) {
        return None;
    }
    let requests = devices["requests"].as_array()?.iter().map(|request| {
        let exactly = &request["exactly"];
        let is_plain = exactly["deviceClassName"] == CLASS
            && is_none(&exactly["selectors"])
            && exactly["adminAccess"] != true
            && exactly["capacity"].is_null()
            && exactly["allocationMode"].as_str().is_none_or(|mode| mode == "ExactCount");
        let count = usize::try_from(exactly["count"].as_i64().unwrap_or(1)).ok()?;
        is_plain.then(|| Request { name: request["name"].as_str().unwrap_or_default().to_owned(), count })
    });
    requests.collect::<Option<Vec<_>>>().filter(|requests| !requests.is_empty())
}

/// Returns the devices of a claim: the first that are free; `None` if there are not enough.
pub(super) fn pick(requests: &[Request], count: usize, used: &BTreeSet<Istr>) -> Option<Vec<(String, Istr)>> {
    let mut free = (0..count).map(object::device).filter(|device| !used.contains(device));
    let mut picked = Vec::new();
    for request in requests {
        for _ in 0..request.count {
            picked.push((request.name.clone(), free.next()?));
        }
    }
    Some(picked)
}

/// Returns the devices of ours that claims have.
pub(super) fn used<'a>(claims: impl IntoIterator<Item = &'a ResourceClaimView>) -> BTreeSet<Istr> {
    let allocations = claims.into_iter().filter_map(|claim| claim.status.allocation.as_ref());
    let devices = allocations.flat_map(|allocation| &allocation.devices.results);
    devices.filter(|device| device.driver == *DRIVER).map(|device| device.device.clone()).collect()
}

/// Returns the results of an allocation.
pub(super) fn results(picked: &[(String, Istr)]) -> Vec<Value> {
    let result = |(request, device): &(String, Istr)| json!({ "request": request, "driver": DRIVER, "pool": object::POOL, "device": device });
    picked.iter().map(result).collect()
}

/// Whether a change of a claim makes devices free.
pub(super) fn frees(change: &Change<ResourceClaimView>) -> bool {
    match change {
        Change::Added { .. } => false,
        Change::Updated { old, new } => old.status.allocation.is_some() && new.status.allocation.is_none(),
        Change::Deleted { last, .. } => last.status.allocation.is_some(),
    }
}

/// Index function: the claims of a pod that is to be scheduled.
pub(crate) fn claims_of(pod: &SimPodView) -> Vec<ObjectKey> {
    if !pod.spec.node_name.is_empty() || pod.is_over() || pod.metadata.is_terminating() {
        return Vec::new();
    }
    let names = pod.spec.resource_claims.iter().filter_map(|claim| name(claim, &pod.status.resource_claim_statuses));
    let mut keys: Vec<_> =
        names.map(|name| ObjectKey { namespace: pod.metadata.namespace.clone(), name: name.clone() }).collect();
    keys.sort();
    keys.dedup();
    keys
}

/// Whether the status of a pod names other claims than before.
pub(crate) fn has_new_claims(change: &Change<SimPodView>) -> bool {
    matches!(change, Change::Updated { old, new } if old.status.resource_claim_statuses != new.status.resource_claim_statuses)
}

/// Returns why a pod cannot be scheduled yet, in upstream's words; `None` if all its claims are allocated.
pub(crate) fn lacking(pod: &SimPodView, is_allocated: impl Fn(&ObjectKey) -> bool) -> Option<String> {
    let statuses = &pod.status.resource_claim_statuses;
    let is_made = |claim: &ResourceClaim| claim.resource_claim_name.is_some() || status(claim, statuses).is_some();
    if !pod.spec.resource_claims.iter().all(is_made) {
        let meta = &pod.metadata;
        return Some(format!("pod \"{}/{}\": ResourceClaim not created yet", meta.namespace, meta.name));
    }
    (!claims_of(pod).iter().all(is_allocated)).then(|| "cannot allocate all claims".to_owned())
}

/// Returns the name of the claim of an entry, if it is known.
fn name<'a>(claim: &'a ResourceClaim, statuses: &'a [ClaimStatus]) -> Option<&'a Istr> {
    let made = || status(claim, statuses)?.resource_claim_name.as_ref();
    claim.resource_claim_name.as_ref().or_else(made)
}

fn status<'a>(claim: &ResourceClaim, statuses: &'a [ClaimStatus]) -> Option<&'a ClaimStatus> {
    statuses.iter().find(|status| status.name == claim.name)
}

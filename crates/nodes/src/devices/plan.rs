//! Pure: which devices a claim gets, and what pods wait for.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use steersman_base::{Istr, ObjectKey};
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::pod::{ClaimStatus, ResourceClaim};
use steersman_model::resource::ResourceClaimView;

use super::{CLASS, DRIVER, object};
use crate::view::SimPodView;

/// A request of a claim: its name, the number of devices, and the taints that these may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) name: String,
    pub(super) count: usize,
    pub(super) tolerations: Vec<Value>,
}

/// A taint of devices of ours, by a rule: of all, unless it names some.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TaintRule {
    pool: Option<Istr>,
    device: Option<Istr>,
    taint: Value,
}

/// A device for a request, by its number.
pub(super) type Picked = (usize, Istr);

/// Whether a claim has no devices, and may get some.
pub(super) fn is_waiting(claim: &ResourceClaimView) -> bool {
    claim.status.allocation.is_none() && !claim.meta().is_terminating()
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
        let tolerations = exactly["tolerations"].as_array().cloned().unwrap_or_default();
        let name = request["name"].as_str().unwrap_or_default().to_owned();
        is_plain.then_some(Request { name, count, tolerations })
    });
    requests.collect::<Option<Vec<_>>>().filter(|requests| !requests.is_empty())
}

/// Returns the rules that keep devices of ours from being given to claims.
pub(super) fn taint_rules(list: &Value) -> Vec<TaintRule> {
    let rule = |rule: &Value| {
        let selector = rule["spec"]["deviceSelector"].as_object()?;
        let wanted = |name: &str| selector.get(name).and_then(Value::as_str).map(Istr::from);
        let taint = rule["spec"]["taint"].clone();
        let keeps = matches!(text(&taint, "effect"), "NoSchedule" | "NoExecute");
        let is_ours = wanted("driver").is_none_or(|driver| driver == *DRIVER);
        (keeps && is_ours).then(|| TaintRule { pool: wanted("pool"), device: wanted("device"), taint })
    };
    list["items"].as_array().into_iter().flatten().filter_map(rule).collect()
}

/// Whether a toleration matches a taint, as `ToleratesTaint` of upstream's `dynamic-resource-allocation` has it.
fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let is = |field: &str| text(toleration, field) == text(taint, field);
    let is_any_or = |field: &str| text(toleration, field).is_empty() || is(field);
    let has_value = match text(toleration, "operator") {
        "Exists" => true,
        "" | "Equal" => is("value"),
        _ => false,
    };
    is_any_or("effect") && is_any_or("key") && has_value
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// Returns the devices of a claim: the first that are free, and whose taints the request tolerates; `None` if there are not
/// enough.
pub(super) fn pick(
    requests: &[Request],
    count: usize,
    used: &BTreeSet<Istr>,
    rules: &[TaintRule],
) -> Option<Vec<Picked>> {
    let mut free: Vec<Istr> = (0..count).map(object::device).filter(|device| !used.contains(device)).collect();
    let mut picked = Vec::new();
    for (number, request) in requests.iter().enumerate() {
        for _ in 0..request.count {
            let fits = |device: &Istr| rules.iter().all(|rule| rule.allows(device, &request.tolerations));
            let at = free.iter().position(fits)?;
            picked.push((number, free.remove(at)));
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

/// Returns the results of an allocation, each with the tolerations of its request.
pub(super) fn results(requests: &[Request], picked: &[Picked]) -> Vec<Value> {
    let result = |(number, device): &Picked| {
        let Request { name, tolerations, .. } = &requests[*number];
        let mut result = json!({ "request": name, "driver": DRIVER, "pool": object::POOL, "device": device });
        if !tolerations.is_empty() {
            result["tolerations"] = json!(tolerations);
        }
        result
    };
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

// === impl TaintRule ===

impl TaintRule {
    /// Whether a device may be given to a request with these tolerations.
    fn allows(&self, device: &Istr, tolerations: &[Value]) -> bool {
        let is_meant = self.pool.as_ref().is_none_or(|pool| *pool == *object::POOL)
            && self.device.as_ref().is_none_or(|meant| meant == device);
        !is_meant || tolerations.iter().any(|toleration| tolerates(toleration, &self.taint))
    }
}

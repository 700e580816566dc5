//! Pure: what is to be done with a range.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use steersman_base::names::finalizers::SERVICE_CIDR;
use steersman_base::{Condition, ConditionStatus, Time, condition};
use steersman_model::networking::{IpAddressView, ServiceCidrView};
use steersman_model::{Kind, View};

use super::ranges;

/// The time that the API servers have to learn that a range is terminating: until then, they may allocate addresses
/// from it.
pub(super) const DELETION_GRACE_PERIOD: Duration = Duration::from_secs(10);

const READY: &str = "Ready";
const TERMINATING: &str = "Terminating";
const IS_READY: &str = "Kubernetes Service CIDR is ready";
const IS_BLOCKED: &str =
    "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR";

/// The action on a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// It is in use: it needs the finalizer, and a condition, if these are given.
    Serve { protect: bool, condition: Option<Condition> },
    /// It is terminating, and addresses depend on it. The condition that says so, if it has another one.
    Block(Option<Condition>),
    /// It is terminating; nothing depends on it, but an API server may still allocate an address from it for this long.
    Wait(Duration),
    /// It is terminating, and can lose the finalizer.
    Release,
    /// It is terminating, and others keep it.
    Nothing,
}

/// Returns what is to be done with a range. `all` are all ranges, and `addresses` all allocated addresses.
pub(super) fn plan(
    range: &ServiceCidrView,
    all: &[Arc<ServiceCidrView>],
    addresses: &[Arc<IpAddressView>],
    now: Time,
) -> Plan {
    let meta = range.meta();
    let Some(since) = meta.deletion_timestamp() else {
        let ready = Condition::new(READY, ConditionStatus::True).because("", IS_READY);
        return Plan::Serve { protect: !meta.has_finalizer(SERVICE_CIDR), condition: unless_held(range, ready) };
    };
    if is_needed(range, all, addresses) {
        let blocked = Condition::new(READY, ConditionStatus::False).because(TERMINATING, IS_BLOCKED);
        return Plan::Block(unless_held(range, blocked));
    }
    let passed = now.since(since);
    match DELETION_GRACE_PERIOD.checked_sub(passed).filter(|left| !left.is_zero()) {
        Some(left) => Plan::Wait(left),
        None if meta.has_finalizer(SERVICE_CIDR) => Plan::Release,
        None => Plan::Nothing,
    }
}

/// Whether addresses would be without a range if this one were deleted. Ranges that are terminating themselves do not count:
/// of two that cover each other, both would go.
fn is_needed(range: &ServiceCidrView, all: &[Arc<ServiceCidrView>], addresses: &[Arc<IpAddressView>]) -> bool {
    let name = &range.meta().name;
    let stays = |other: &&Arc<ServiceCidrView>| other.meta().name != *name && !other.meta().is_terminating();
    let others: Vec<_> = all.iter().filter(stays).collect();
    if ranges::of(range).all(|own| others.iter().any(|other| ranges::any_contains(other, own))) {
        return false;
    }
    let mut addresses = addresses.iter().filter_map(|address| ranges::allocated(address));
    addresses.any(|address| {
        ranges::any_holds(range, address) && !others.iter().any(|other| ranges::any_holds(other, address))
    })
}

/// Returns the condition, if the range has another one of its type, or none.
fn unless_held(range: &ServiceCidrView, wanted: Condition) -> Option<Condition> {
    let held = condition::find(&range.status.conditions, &wanted.type_);
    let is_held = held.is_some_and(|held| {
        held.status == wanted.status && held.reason == wanted.reason && held.message == wanted.message
    });
    (!is_held).then_some(wanted)
}

/// Returns the status that this controller applies. The uid is the condition that it is still the same range.
pub(super) fn applied(range: &ServiceCidrView, condition: &Condition, now: Time) -> Value {
    let resource = &ServiceCidrView::RESOURCE;
    let meta = range.meta();
    let condition = Condition { last_transition_time: Some(now), ..condition.clone() };
    json!({
        "apiVersion": resource.api_version(),
        "kind": resource.kind,
        "metadata": { "name": meta.name, "uid": meta.uid },
        "status": { "conditions": [condition] },
    })
}

/// Returns the strategic merge patch that adds the finalizer, or removes it. Finalizers of others stay.
pub(super) fn finalizer_patch(range: &ServiceCidrView, is_kept: bool) -> Value {
    let field = if is_kept { "finalizers" } else { "$deleteFromPrimitiveList/finalizers" };
    json!({ "metadata": { "uid": range.meta().uid, field: [SERVICE_CIDR] } })
}

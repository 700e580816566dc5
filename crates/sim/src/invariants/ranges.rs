//! Ranges of Service addresses.

use std::net::Ipv4Addr;

use serde_json::Value;
use steersman_base::condition;

use super::{Case, Findings, Rest, SERVICE_CIDR, Verdict};
use crate::world::{Object, World};

const RANGES: &str = "servicecidrs.networking.k8s.io";
const ADDRESSES: &str = "ipaddresses.networking.k8s.io";
const FINALIZER: &str = "networking.k8s.io/service-cidr-finalizer";

/// Whether one of the ranges of an object holds an address. All are of IPv4 here.
fn holds(range: &Value, address: Ipv4Addr) -> bool {
    let ranges = range["spec"]["cidrs"].as_array();
    ranges.into_iter().flatten().filter_map(Value::as_str).any(|range| is_within(range, address).unwrap_or(false))
}

fn is_within(range: &str, address: Ipv4Addr) -> Option<bool> {
    let (network, bits) = range.split_once('/')?;
    let network: Ipv4Addr = network.parse().ok()?;
    let free = 32_u32.checked_sub(bits.parse().ok()?)?;
    let prefix = |address: Ipv4Addr| u64::from(u32::from(address)) >> free;
    Some(prefix(network) == prefix(address))
}

/// Returns an allocated address that is in this range, and in no other one for which `counts` holds.
fn orphan<'a>(
    world: &'a World,
    range: &Object,
    raw: &Value,
    counts: impl Fn(&Object) -> bool,
) -> Option<&'a std::sync::Arc<Object>> {
    let others = || world.all(RANGES).filter(|other| other.uid != range.uid && counts(other));
    let is_orphan = |address: Ipv4Addr| {
        let holding = |other: &Object| world.raw(RANGES, &other.key).is_some_and(|other| holds(other, address));
        holds(raw, address) && !others().any(|other| holding(other))
    };
    world.all(ADDRESSES).find(|address| address.key.name.parse().is_ok_and(is_orphan))
}

/// "canDeleteCIDR checks that the ServiceCIDR can be safely deleted and not leave orphan IPAddresses" (upstream's
/// `servicecidrs_controller.go`)
///
/// Asked when the controller takes its finalizer off a range: each address in it is in another range that is there. Judged against
/// the store alone: the controller asks the server first, which gives no addresses of a range that is terminating.
pub(super) fn no_range_goes_while_addresses_depend_on_it(case: &Case<'_>) -> Verdict {
    let Some(before) = case.step.before.as_ref().filter(|_| case.is(RANGES) && case.by(&[SERVICE_CIDR])) else {
        return Verdict::NotMine;
    };
    let is_kept = case.step.after.as_ref().is_some_and(|after| after.has_finalizer(FINALIZER));
    let Some(raw) = case.change.before.as_deref().filter(|_| !is_kept && before.has_finalizer(FINALIZER)) else {
        return Verdict::NotMine;
    };
    let orphan = orphan(case.world, before, raw, |_| true);
    Verdict::at_store(orphan.is_none(), || match orphan {
        Some(address) => format!("{before} is let go, and {address} is in no other range"),
        None => String::new(),
    })
}

/// What a range is like follows `servicecidrs_controller.go` of Kubernetes 1.37.
///
/// At rest: a range that stays has the finalizer, and is ready; one that is terminating is needed by an address, and is not.
pub(super) fn ranges_are_ready_or_needed(rest: &Rest<'_>, found: &mut Findings) {
    if !rest.options.runs(SERVICE_CIDR) {
        return;
    }
    for range in rest.world.all(RANGES) {
        let Some(raw) = rest.world.raw(RANGES, &range.key) else { continue };
        let is_ready = condition::is_true(&crate::world::conditions(raw), "Ready");
        let is_right = if range.is_terminating() {
            !is_ready && orphan(rest.world, range, raw, |other| !other.is_terminating()).is_some()
        } else {
            is_ready && range.has_finalizer(FINALIZER)
        };
        found.expect(is_right, || {
            let is = if range.is_terminating() { "terminating" } else { "there to stay" };
            format!("{range} is {is}, its condition Ready is {is_ready}, its finalizers are {:?}", range.finalizers)
        });
    }
}

//! Pure: hints, which clients should use which endpoint.
//!
//! * `trafficDistribution: PreferSameZone` (and its older name `PreferClose`): clients in the endpoint's zone.
//! * `PreferSameNode`: clients on the endpoint's node; clients in its zone, where no endpoint is on the node.
//! * The annotation of the topology mode: see [`zones`](super::zones). It takes precedence over the field.
//! * Otherwise hints are removed.
//!
//! Follows `trafficdist/trafficdist.go` of k8s.io/endpointslice 0.37.1. Hints of endpoints that are not ready are
//! removed whenever their slice is written.

use std::sync::Arc;

use steersman_base::Istr;
use steersman_model::EndpointSliceView;
use steersman_model::core::ServiceView;
use steersman_model::discovery::{Endpoint, EndpointHints, Named};

use super::packing::{Draft, Packed};

/// The closeness that clients should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Near {
    Zone,
    Node,
}

/// Returns what the service's `trafficDistribution` requests; `None` if absent or unknown.
pub(super) fn near(service: &ServiceView) -> Option<Near> {
    match &**service.spec.traffic_distribution.as_ref()? {
        "PreferClose" | "PreferSameZone" => Some(Near::Zone),
        "PreferSameNode" => Some(Near::Node),
        _ => None,
    }
}

/// Sets hints on each ready endpoint for the clients nearby.
pub(super) fn prefer(packed: &mut Packed, near: Near) {
    let outdated = |slice: &EndpointSliceView| {
        let wrong = |endpoint: &Endpoint| is_ready(endpoint) && endpoint.hints != for_those_near(endpoint, near);
        slice.endpoints.iter().any(wrong)
    };
    rewrite(packed, outdated);
    for endpoint in packed.drafts.iter_mut().flat_map(|draft| &mut draft.endpoints) {
        endpoint.hints = if is_ready(endpoint) { for_those_near(endpoint, near) } else { None };
    }
}

/// Removes all hints.
pub(super) fn remove(packed: &mut Packed) {
    rewrite(packed, |slice| slice.endpoints.iter().any(|endpoint| endpoint.hints.is_some()));
    for endpoint in packed.drafts.iter_mut().flat_map(|draft| &mut draft.endpoints) {
        endpoint.hints = None;
    }
}

/// Adds the slices of which this is true to those to be written.
pub(super) fn rewrite(packed: &mut Packed, mut outdated: impl FnMut(&EndpointSliceView) -> bool) {
    let (write, keep): (Vec<Arc<_>>, Vec<_>) = packed.unchanged.drain(..).partition(|slice| outdated(slice));
    packed.unchanged = keep;
    packed.drafts.extend(write.into_iter().map(Draft::of));
}

/// Whether new requests go to the endpoint.
pub(super) fn is_ready(endpoint: &Endpoint) -> bool {
    endpoint.conditions.ready == Some(true)
}

/// Returns the hint for one zone.
pub(super) fn for_zone(zone: &Istr) -> EndpointHints {
    EndpointHints { for_zones: [Named { name: zone.clone() }].into(), for_nodes: Box::default() }
}

fn for_those_near(endpoint: &Endpoint, near: Near) -> Option<EndpointHints> {
    let one = |name: &Option<Istr>| -> Box<[Named]> { name.iter().map(|name| Named { name: name.clone() }).collect() };
    let hints = EndpointHints {
        for_zones: one(&endpoint.zone),
        for_nodes: if near == Near::Node { one(&endpoint.node_name) } else { Box::default() },
    };
    (hints != EndpointHints::default()).then_some(hints)
}

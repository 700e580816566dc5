//! Pure: a pod as an endpoint, and the common parts of a service's slices.

use std::sync::Arc;

use steersman_base::meta::{Owners, RareMeta};
use steersman_base::{Istr, Meta, OwnerRef, StringMap, Time, names};
use steersman_model::core::{PodView, ServiceView};
use steersman_model::discovery::{Endpoint, EndpointConditions, EndpointPort};
use steersman_model::{EndpointSliceView, View};

use super::MANAGER;
use super::packing::Draft;
use crate::pod;
use crate::service_pods::address::{self, Family};
use crate::service_pods::{self, ports};

/// Returns the pod as an endpoint of a service; `None` if it has no address of the family.
pub(super) fn endpoint(pod: &PodView, zone: Option<&Istr>, service: &ServiceView, family: Family) -> Option<Endpoint> {
    let mut addresses: Vec<Istr> = address::of_pod(pod, family).collect();
    if addresses.is_empty() {
        return None;
    }
    addresses.sort();
    let serving = pod::is_ready(pod);
    let terminating = pod.meta().is_terminating();
    // Consumers that only read `ready` must not use a terminating endpoint, so it is never ready.
    let ready = service.spec.publish_not_ready_addresses || (serving && !terminating);
    Some(Endpoint {
        addresses: addresses.into(),
        conditions: EndpointConditions { ready: Some(ready), serving: Some(serving), terminating: Some(terminating) },
        hostname: service_pods::hostname(pod, service).cloned(),
        target_ref: Some(Box::new(service_pods::target_ref(pod))),
        deprecated_topology: StringMap::default(),
        node_name: Some(pod.spec.node_name.clone()).filter(|name| !name.is_empty()),
        zone: zone.cloned(),
        hints: None,
    })
}

/// Returns the ports of a pod that the service targets. One that the pod does not have is left out.
pub(super) fn endpoint_ports(service: &ServiceView, pod: &PodView) -> Vec<EndpointPort> {
    let found = service.spec.ports.iter().filter_map(|port| {
        Some(EndpointPort {
            name: Some(port.name.clone()),
            protocol: Some(Istr::interned(ports::protocol(&port.protocol))),
            port: Some(ports::find(pod, port)?),
            app_protocol: port.app_protocol.clone(),
        })
    });
    found.collect()
}

/// Returns the address families of the service's slices.
///
/// A server that predates dual-stack leaves them out. Then the address determines the family; a service without an
/// address gets both, so that no endpoints are lost until the server is upgraded.
pub(super) fn families(service: &ServiceView) -> Vec<Family> {
    let mut families: Vec<_> = address::declared(service).collect();
    if families.is_empty() {
        families = if service_pods::is_headless(service) {
            vec![Family::V4, Family::V6]
        } else {
            vec![Family::of_text(&service.spec.cluster_ip)]
        };
    }
    families.sort();
    families.dedup();
    families
}

/// Returns the labels of a service's slices: those of the service, and those that name the service and the manager.
pub(super) fn labels(service: &ServiceView) -> StringMap {
    let headless = service_pods::is_headless(service).then(Istr::default);
    let labels = service_pods::with(&service.meta().labels, names::labels::HEADLESS_SERVICE, headless);
    let labels = service_pods::with(&labels, names::labels::SERVICE_NAME, Some(service.meta().name.clone()));
    service_pods::with(&labels, names::labels::ENDPOINTSLICE_MANAGED_BY, Some(Istr::interned(MANAGER.0)))
}

/// Whether the slice belongs to this service, and not to a previous one of the same name.
pub(super) fn is_owned(slice: &EndpointSliceView, service: &ServiceView) -> bool {
    let is_service =
        |owner: &OwnerRef| owner.uid == service.meta().uid && owner.kind == "Service" && owner.api_version == "v1";
    slice.meta().owner_references.iter().any(is_service)
}

/// Returns the slice to write for a draft.
pub(super) fn slice(
    draft: Draft,
    service: &ServiceView,
    family: Family,
    labels: &StringMap,
    time: Option<Time>,
) -> EndpointSliceView {
    let metadata = match &draft.base {
        Some(base) => Meta {
            labels: labels.clone(),
            annotations: service_pods::triggered_at(&base.meta().annotations, time),
            ..base.meta().clone()
        },
        None => Meta {
            namespace: service.meta().namespace.clone(),
            labels: labels.clone(),
            annotations: service_pods::triggered_at(&StringMap::default(), time),
            owner_references: Owners::new(vec![OwnerRef::controller_of("v1", "Service", service.meta())]),
            rare: Some(Box::new(RareMeta {
                generate_name: Istr::new(&pod::name_prefix(&service.meta().name)),
                ..RareMeta::default()
            })),
            ..Meta::default()
        },
    };
    let address_type = Istr::interned(family.as_str());
    EndpointSliceView { metadata, address_type, endpoints: draft.endpoints.into(), ports: draft.ports.into() }
}

/// Whether a slice is the placeholder for no endpoints.
pub(super) fn is_placeholder(slice: &Arc<EndpointSliceView>, service: &ServiceView, labels: &StringMap) -> bool {
    slice.endpoints.is_empty() && slice.ports.is_empty() && slice.meta().labels == *labels && is_owned(slice, service)
}

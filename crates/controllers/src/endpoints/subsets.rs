//! Pure: the subsets of an Endpoints object, in canonical form and truncated.
//!
//! Addresses with the same ports are in one subset. Upstream orders subsets and ports by a Go hash; here they are
//! ordered by ports and addresses, and both sides compare without order.
//!
//! Follows `pkg/api/v1/endpoints/util.go` of Kubernetes 1.37.1.

use std::collections::BTreeMap;
use std::sync::Arc;

use steersman_base::{Istr, Uid};
use steersman_model::core::{EndpointAddress, EndpointPort, EndpointSubset, PodView, ServicePort, ServiceView};

use crate::pod;
use crate::service_pods::address::{self, Family};
use crate::service_pods::{self, ports};

/// The maximum number of addresses of an Endpoints object: upstream's figure. With more, every change of a pod would
/// send megabytes to every node.
pub const ADDRESSES_MAX: usize = 1000;

/// An address by IP and pod: equal addresses of different pods differ, those without a pod do not.
type AddressKey = (Istr, Uid);
/// A port, for comparison and sorting. `None` stands for an address without ports.
type PortKey = Option<(Istr, i32, Istr, Option<Istr>)>;
/// Whether each address is ready, by its index.
type Readiness = BTreeMap<usize, bool>;

/// Returns the subsets of the pods of a service: canonical, and not truncated yet. `pods` are those the service
/// selects.
pub(super) fn subsets(service: &ServiceView, pods: &[Arc<PodView>]) -> Vec<EndpointSubset> {
    let mut repacking = Repacking::default();
    let publish_all = service.spec.publish_not_ready_addresses;
    for pod in pods.iter().filter(|pod| service_pods::is_published(pod, publish_all)) {
        let Some(address) = address_of(service, pod) else { continue };
        let ready = publish_all || pod::is_ready(pod);
        if service.spec.ports.is_empty() && service_pods::is_headless_on_purpose(service) {
            repacking.add(&address, ready, [None]);
        }
        let found = service.spec.ports.iter().filter_map(|port| port_key(port, ports::find(pod, port)?));
        repacking.add(&address, ready, found.map(Some));
    }
    repacking.pack()
}

/// Returns the subsets in canonical form, without the resourceVersions of pods.
pub(crate) fn repack(subsets: &[EndpointSubset]) -> Vec<EndpointSubset> {
    let mut repacking = Repacking::default();
    for subset in subsets {
        let keys: Vec<PortKey> = match &*subset.ports {
            [] => vec![None],
            ports => ports.iter().map(key_of).collect(),
        };
        for (addresses, ready) in [(&subset.addresses, true), (&subset.not_ready_addresses, false)] {
            for address in addresses {
                repacking.add(address, ready, keys.iter().cloned());
            }
        }
    }
    repacking.pack()
}

/// Truncates the subsets to [`ADDRESSES_MAX`] addresses: not ready ones are dropped first, and each subset in
/// proportion. Returns whether addresses were dropped.
pub(super) fn truncate(subsets: &mut Vec<EndpointSubset>) -> bool {
    let ready: usize = subsets.iter().map(|subset| subset.addresses.len()).sum();
    let not_ready: usize = subsets.iter().map(|subset| subset.not_ready_addresses.len()).sum();
    if ready + not_ready <= ADDRESSES_MAX {
        return false;
    }
    let cuts_ready = ready > ADDRESSES_MAX;
    let (room, total) = if cuts_ready { (ADDRESSES_MAX, ready) } else { (ADDRESSES_MAX - ready, not_ready) };
    let mut left = room;
    for subset in subsets.iter_mut() {
        if cuts_ready {
            subset.not_ready_addresses = Box::default();
        }
        let addresses = if cuts_ready { &mut subset.addresses } else { &mut subset.not_ready_addresses };
        // Rounded up, so that the last subset may get less than its share.
        let share = (addresses.len() * room).div_ceil(total).min(left);
        left -= share.min(addresses.len());
        *addresses = addresses.iter().take(share).cloned().collect();
    }
    // The server refuses a subset without addresses.
    subsets.retain(|subset| !subset.addresses.is_empty() || !subset.not_ready_addresses.is_empty());
    true
}

/// Returns the address of a pod in the service's primary family, if it has one.
fn address_of(service: &ServiceView, pod: &PodView) -> Option<EndpointAddress> {
    let cluster_ip = &service.spec.cluster_ip;
    // The server sets the families; for an older server, the address of the service or of the pod determines them.
    let family = address::declared(service).next().unwrap_or_else(|| {
        let address = if service_pods::is_headless(service) { &pod.status.pod_ip } else { cluster_ip };
        Family::of_text(address)
    });
    let ip = address::of_pod(pod, family).next()?;
    Some(EndpointAddress {
        ip,
        target_ref: Some(Box::new(service_pods::target_ref(pod))),
        hostname: service_pods::hostname(pod, service).cloned().unwrap_or_default(),
        node_name: Some(pod.spec.node_name.clone()).filter(|name| !name.is_empty()),
    })
}

fn port_key(port: &ServicePort, number: i32) -> Option<(Istr, i32, Istr, Option<Istr>)> {
    let protocol = Istr::interned(ports::protocol(&port.protocol));
    (number > 0).then(|| (port.name.clone(), number, protocol, port.app_protocol.clone()))
}

fn key_of(port: &EndpointPort) -> PortKey {
    let protocol = Istr::interned(ports::protocol(&port.protocol));
    Some((port.name.clone(), port.port, protocol, port.app_protocol.clone()))
}

/// The addresses by their ports.
#[derive(Default)]
struct Repacking {
    places: BTreeMap<AddressKey, usize>,
    addresses: Vec<EndpointAddress>,
    by_port: BTreeMap<PortKey, Readiness>,
}

// === impl Repacking ===

impl Repacking {
    /// Adds an address with these ports.
    fn add(&mut self, address: &EndpointAddress, ready: bool, ports: impl IntoIterator<Item = PortKey>) {
        let uid = address.target_ref.as_ref().map(|target| target.uid.clone()).unwrap_or_default();
        let place = *self.places.entry((address.ip.clone(), uid)).or_insert_with(|| {
            let mut address = address.clone();
            if let Some(target) = &mut address.target_ref {
                target.resource_version = Istr::default();
            }
            self.addresses.push(address);
            self.addresses.len() - 1
        });
        for port in ports {
            // An address that is not ready for one of its pods is not ready.
            let is_ready = self.by_port.entry(port).or_default().entry(place).or_insert(ready);
            *is_ready = *is_ready && ready;
        }
    }

    /// Merges ports with the same addresses into one subset.
    fn pack(self) -> Vec<EndpointSubset> {
        // In the order of their keys: by address, then by uid.
        let sorted: Vec<usize> = self.places.into_values().collect();
        let mut ranks = vec![0; sorted.len()];
        for (rank, place) in sorted.iter().enumerate() {
            ranks[*place] = rank;
        }
        let mut groups: BTreeMap<Vec<(usize, bool)>, Vec<EndpointPort>> = BTreeMap::new();
        for (port, readiness) in self.by_port {
            let mut who: Vec<_> = readiness.into_iter().map(|(place, ready)| (ranks[place], ready)).collect();
            who.sort_unstable();
            let ports = groups.entry(who).or_default();
            ports.extend(port.map(|(name, port, protocol, app_protocol)| EndpointPort {
                name,
                port,
                protocol,
                app_protocol,
            }));
        }
        let those = |who: &[(usize, bool)], wanted: bool| {
            let chosen = who.iter().filter(|(_, ready)| *ready == wanted);
            chosen.map(|(rank, _)| self.addresses[sorted[*rank]].clone()).collect()
        };
        let mut subsets: Vec<_> = groups
            .into_iter()
            .map(|(who, ports)| EndpointSubset {
                addresses: those(&who, true),
                not_ready_addresses: those(&who, false),
                ports: ports.into(),
            })
            .collect();
        // A stable sort: subsets with equal ports stay in the order of their addresses.
        subsets.sort_by_cached_key(|subset| subset.ports.iter().map(key_of).collect::<Vec<_>>());
        subsets
    }
}

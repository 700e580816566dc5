//! Host ports that pods use. Follows `NodePorts` of `pkg/scheduler/framework/plugins` of Kubernetes 1.37.1.

use std::collections::BTreeMap;

use steersman_base::Istr;

use crate::view::{Container, ContainerPort, SimPodSpec};

/// A host port of a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HostPort {
    port: i32,
    protocol: Istr,
    /// The address on which it is used.
    address: Istr,
}

/// Used ports, each with its number of users: pods that were bound by others may share one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken(BTreeMap<HostPort, usize>);

/// All addresses.
const ANY: &str = "0.0.0.0";

/// Returns the host ports of a pod: those of its containers and sidecars.
pub(crate) fn ports(spec: &SimPodSpec) -> Box<[HostPort]> {
    let sidecars = spec.init_containers.iter().filter(|container| container.is_sidecar());
    let of = |container: &Container| container.ports.iter().filter_map(HostPort::of).collect::<Vec<_>>();
    spec.containers.iter().chain(sidecars).flat_map(of).collect()
}

// === impl HostPort ===

impl HostPort {
    fn of(port: &ContainerPort) -> Option<Self> {
        let or = |text: &Istr, usual: &str| if text.is_empty() { Istr::interned(usual) } else { text.clone() };
        let protocol = or(&port.protocol, "TCP");
        let address = or(&port.host_ip, ANY);
        (port.host_port > 0).then_some(Self { port: port.host_port, protocol, address })
    }

    /// Whether two ports conflict.
    fn conflicts(&self, other: &Self) -> bool {
        let overlap = self.address == other.address || self.address == ANY || other.address == ANY;
        self.port == other.port && self.protocol == other.protocol && overlap
    }
}

// === impl Taken ===

impl Taken {
    /// Whether all of them are free.
    pub(crate) fn leaves(&self, wanted: &[HostPort]) -> bool {
        wanted.iter().all(|wanted| {
            let same_port = HostPort { address: Istr::default(), protocol: Istr::default(), ..wanted.clone() };
            let taken = self.0.range(same_port..).map(|(taken, _)| taken);
            !taken.take_while(|taken| taken.port == wanted.port).any(|taken| taken.conflicts(wanted))
        })
    }

    pub(crate) fn add(&mut self, ports: &[HostPort]) {
        for port in ports {
            *self.0.entry(port.clone()).or_default() += 1;
        }
    }

    pub(crate) fn subtract(&mut self, ports: &[HostPort]) {
        for port in ports {
            if let Some(count) = self.0.get_mut(port) {
                *count -= 1;
                if *count == 0 {
                    self.0.remove(port);
                }
            }
        }
    }
}

//! Pure: the pod port of a service port.

use steersman_base::IntOrString;
use steersman_model::core::pod::Container;
use steersman_model::core::{PodView, ServicePort};

/// The default protocol.
pub(crate) const DEFAULT_PROTOCOL: &str = "TCP";

/// Returns the number of the pod port that the service port targets: the given number, or that of the named port of a
/// container or sidecar.
pub(crate) fn find(pod: &PodView, port: &ServicePort) -> Option<i32> {
    let name = match &port.target_port {
        IntOrString::Int(number) => return Some(*number),
        IntOrString::String(name) => name,
    };
    let beside = |container: &&Container| container.restart_policy == "Always";
    let containers = pod.spec.containers.iter().chain(pod.spec.init_containers.iter().filter(beside));
    let mut ports = containers.flat_map(|container| &container.ports);
    let found = ports.find(|held| held.name == *name && protocol(&held.protocol) == protocol(&port.protocol))?;
    Some(found.container_port)
}

/// Returns the protocol, or the default if absent.
pub(crate) fn protocol(name: &str) -> &str {
    if name.is_empty() { DEFAULT_PROTOCOL } else { name }
}

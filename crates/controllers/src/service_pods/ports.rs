//! Pure: which port of a pod a service's port means.

use steersman_base::IntOrString;
use steersman_model::core::pod::Container;
use steersman_model::core::{PodView, ServicePort};

/// The protocol of a port that names none.
pub(crate) const DEFAULT_PROTOCOL: &str = "TCP";

/// The number of the pod's port that the service's port leads to: the number it says, or that of the container port it
/// names, if a container, or one that runs beside them, has it.
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

/// The protocol, or what its absence means.
pub(crate) fn protocol(name: &str) -> &str {
    if name.is_empty() { DEFAULT_PROTOCOL } else { name }
}

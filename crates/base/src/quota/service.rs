//! The usage of Services.

use serde::Deserialize;

use super::{Amounts, one, whole};
use crate::null::as_default;
use crate::{Istr, Quantity};

/// The part of a Service that quotas read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Service {
    /// The spec.
    #[serde(deserialize_with = "as_default")]
    pub spec: ServiceSpec,
}

/// The spec of a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceSpec {
    /// `NodePort`, `LoadBalancer`, …
    #[serde(rename = "type", deserialize_with = "as_default")]
    pub type_: Istr,
    /// Whether a load balancer gets node ports; absent is yes.
    pub allocate_load_balancer_node_ports: Option<bool>,
    /// The ports.
    #[serde(deserialize_with = "as_default")]
    pub ports: Vec<ServicePort>,
}

/// A port of a Service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServicePort {
    /// The number on every node; zero until there is one.
    #[serde(deserialize_with = "as_default")]
    pub node_port: i32,
}

/// The names that Services count for.
pub(super) const NAMES: [&str; 4] = ["count/services", "services", "services.nodeports", "services.loadbalancers"];

// === impl Service ===

impl Service {
    /// Returns what the Service uses. Node ports count before they are allocated.
    #[must_use]
    pub fn usage(&self) -> Amounts {
        let ports = &self.spec.ports;
        let with_number = || ports.iter().filter(|port| port.node_port != 0).count();
        let (node_ports, balancers) = match &*self.spec.type_ {
            "NodePort" => (whole(ports.len()), Quantity::ZERO),
            "LoadBalancer" if self.spec.allocate_load_balancer_node_ports == Some(false) => {
                (whole(with_number()), one())
            }
            "LoadBalancer" => (whole(ports.len()), one()),
            _ => (Quantity::ZERO, Quantity::ZERO),
        };
        NAMES.into_iter().map(Istr::from).zip([one(), one(), node_ports, balancers]).collect()
    }
}

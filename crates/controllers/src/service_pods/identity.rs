//! Pure: what makes endpoints, and sets of ports, the same.

use std::collections::BTreeMap;

use steersman_base::Istr;
use steersman_model::discovery::{Endpoint, EndpointPort};

use super::ports::DEFAULT_PROTOCOL;

/// The identity of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity {
    name: Istr,
    addresses: Box<[Istr]>,
    hostname: Istr,
    namespace: Istr,
}

/// The identity of a set of ports, without order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PortSet(Vec<(Istr, Istr, Option<i32>, Option<Istr>)>);

/// The wanted endpoints with one set of ports.
pub(crate) type Wanted = BTreeMap<Identity, Endpoint>;

// === impl Identity ===

impl Identity {
    pub(crate) fn of(endpoint: &Endpoint) -> Self {
        let target = endpoint.target_ref.as_ref();
        let mut addresses = endpoint.addresses.clone();
        addresses.sort();
        Self {
            name: target.map(|target| target.name.clone()).unwrap_or_default(),
            addresses,
            hostname: endpoint.hostname.clone().unwrap_or_default(),
            namespace: target.map(|target| target.namespace.clone()).unwrap_or_default(),
        }
    }
}

// === impl PortSet ===

impl PortSet {
    pub(crate) fn of(ports: &[EndpointPort]) -> Self {
        let mut set: Vec<_> = ports
            .iter()
            .map(|port| {
                let protocol = port.protocol.clone().unwrap_or_else(|| Istr::interned(DEFAULT_PROTOCOL));
                (port.name.clone().unwrap_or_default(), protocol, port.port, port.app_protocol.clone())
            })
            .collect();
        set.sort();
        Self(set)
    }
}

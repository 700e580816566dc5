//! Endpoints: whole, because they are compared and then PUT.

use steersman_base::{Istr, Meta};

use super::ObjectReference;
use crate::view;
use crate::wire::Unique;

view! {
    /// The endpoints of a service, in the old form.
    pub struct EndpointsView: Serialize for namespaced("", "v1", "endpoints", "Endpoints") {
        /// The metadata.
        metadata: Meta = 1,
        /// Addresses, by the ports they have.
        subsets: Box<[EndpointSubset]> = 2,
    }
}

view! {
    /// Addresses that have the same ports.
    #[derive(Eq, Hash)]
    pub struct EndpointSubset: Serialize {
        /// Those that are ready.
        addresses: Box<[EndpointAddress]> = 1,
        /// Those that are not.
        not_ready_addresses: Box<[EndpointAddress]> = 2,
        /// Their ports.
        ports: Box<[EndpointPort]> = 3,
    }
}

view! {
    /// An address behind a service.
    #[derive(Eq, Hash)]
    pub struct EndpointAddress: Serialize {
        /// The address.
        ip: Istr as Unique = 1,
        /// Whose it is.
        target_ref: Option<Box<ObjectReference>> = 2,
        /// Its host name.
        hostname: Istr as Unique = 3,
        /// The node it is on.
        node_name: Option<Istr> = 4,
    }
}

view! {
    /// A port of an address.
    #[derive(Eq, Hash)]
    pub struct EndpointPort: Serialize {
        /// Its name: that of the service's port.
        name: Istr = 1,
        /// The number.
        port: i32 = 2,
        /// `TCP`, `UDP` or `SCTP`.
        protocol: Istr = 3,
        /// The application protocol.
        app_protocol: Option<Istr> = 4,
    }
}

//! The group `discovery.k8s.io`.

use steersman_base::{Istr, Meta, StringMap};

use crate::core::ObjectReference;
use crate::view;
use crate::wire::Unique;

view! {
    /// Endpoints of a service, whole, because they are compared and then PUT.
    pub struct EndpointSliceView: Serialize
        for namespaced("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
    {
        /// The metadata.
        metadata: Meta = 1,
        /// `IPv4`, `IPv6` or `FQDN`.
        address_type: Istr = 4,
        /// The endpoints.
        endpoints: Box<[Endpoint]> = 2,
        /// The ports that all of them have.
        ports: Box<[EndpointPort]> = 3,
    }
}

view! {
    /// An endpoint.
    #[derive(Eq, Hash)]
    pub struct Endpoint: Serialize {
        /// Its addresses, all of the slice's type. Consumers use the first.
        addresses: Box<[Istr]> as Vec<Unique> = 1,
        /// Whether it takes requests.
        conditions: EndpointConditions = 2,
        /// Its host name.
        hostname: Option<Istr> as Option<Unique> = 3,
        /// Whose it is.
        target_ref: Option<Box<ObjectReference>> = 4,
        /// The topology, in a deprecated form.
        deprecated_topology: StringMap = 5,
        /// The node it is on.
        node_name: Option<Istr> = 6,
        /// The zone it is in.
        zone: Option<Istr> = 7,
        /// The hints for clients.
        hints: Option<EndpointHints> = 8,
    }
}

view! {
    /// Whether an endpoint takes requests.
    #[derive(Eq, Hash)]
    pub struct EndpointConditions: Serialize {
        /// Whether new requests may go to it; absent is yes.
        ready: Option<bool> = 1,
        /// Whether it responds to requests; absent means as `ready`.
        serving: Option<bool> = 2,
        /// Whether it is terminating; absent means no.
        terminating: Option<bool> = 3,
    }
}

view! {
    /// The hints of an endpoint.
    #[derive(Eq, Hash)]
    pub struct EndpointHints: Serialize {
        /// Those in these zones.
        for_zones: Box<[Named]> = 1,
        /// Those on these nodes.
        for_nodes: Box<[Named]> = 2,
    }
}

view! {
    /// The name of a zone or node.
    #[derive(Eq, Hash)]
    pub struct Named: Serialize {
        /// The name.
        name: Istr = 1,
    }
}

view! {
    /// A port of all endpoints of a slice.
    #[derive(Eq, Hash)]
    pub struct EndpointPort: Serialize {
        /// Its name: that of the service's port.
        name: Option<Istr> = 1,
        /// `TCP`, `UDP` or `SCTP`; absent is `TCP`.
        protocol: Option<Istr> = 2,
        /// The number; absent is all of them.
        port: Option<i32> = 3,
        /// The application protocol.
        app_protocol: Option<Istr> = 4,
    }
}

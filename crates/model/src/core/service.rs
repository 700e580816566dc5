//! Services.

use steersman_base::{IntOrString, Istr, Meta, StringMap};

use crate::view;

view! {
    /// The part of a service that controllers read. No controller of ours writes one.
    pub struct ServiceView for namespaced("", "v1", "services", "Service") {
        /// The metadata.
        metadata: Meta = 1,
        /// The spec.
        spec: ServiceSpec = 2,
    }
}

view! {
    /// The spec of a service.
    pub struct ServiceSpec {
        /// Its ports.
        ports: Box<[ServicePort]> = 1,
        /// The selector of its pods: those with all these labels. If it is empty, its endpoints are managed by others.
        selector: StringMap = 2,
        /// Its address; `None` for a headless service.
        cluster_ip "clusterIP": Istr = 3,
        /// `ClusterIP`, `NodePort`, `LoadBalancer` or `ExternalName`.
        type_ "type": Istr = 4,
        /// Whether pods that are not ready stand behind it, too.
        publish_not_ready_addresses: bool = 13,
        /// `IPv4`, `IPv6` or both.
        ip_families: Box<[Istr]> = 19,
        /// Whether a load balancer gets node ports; absent is yes.
        allocate_load_balancer_node_ports: Option<bool> = 20,
        /// The preferred endpoints.
        traffic_distribution: Option<Istr> = 23,
    }
}

view! {
    /// A port of a service.
    pub struct ServicePort {
        /// Its name within the service.
        name: Istr = 1,
        /// `TCP`, `UDP` or `SCTP`.
        protocol: Istr = 2,
        /// The number.
        port: i32 = 3,
        /// The number or name of the pods' port.
        target_port: IntOrString = 4,
        /// The number on every node.
        node_port: i32 = 5,
        /// The application protocol.
        app_protocol: Option<Istr> = 6,
    }
}

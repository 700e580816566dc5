//! Nodes.

use steersman_base::{Condition, Istr, Meta, Time};

use crate::conditions::NodeCondition;
use crate::view;
use crate::wire::Quantities;

view! {
    /// The fields of a node that controllers read. It is never written from here: taints, labels and status are
    /// patched.
    pub struct NodeView for cluster("", "v1", "nodes", "Node") {
        /// The metadata.
        metadata: Meta = 1,
        /// The spec.
        spec: NodeSpec = 2,
        /// The status.
        status: NodeStatus = 3,
    }
}

view! {
    /// The spec of a node.
    pub struct NodeSpec {
        /// The first of its pods' address ranges.
        pod_cidr "podCIDR": Istr = 1,
        /// Whether pods are kept from it.
        unschedulable: bool = 4,
        /// The taints.
        taints: Box<[Taint]> = 5,
        /// Its pods' address ranges.
        pod_cidrs "podCIDRs": Box<[Istr]> = 7,
    }
}

view! {
    /// A taint of a node.
    #[derive(Eq, Hash)]
    pub struct Taint: Serialize {
        /// Its key.
        key: Istr = 1,
        /// Its value.
        value: Istr = 2,
        /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
        effect: Istr = 3,
        /// Since when, for `NoExecute`.
        time_added: Option<Time> = 4,
    }
}

view! {
    /// The status of a node.
    pub struct NodeStatus {
        /// The resources that are available for pods.
        allocatable: Quantities = 2,
        /// The conditions.
        conditions: Box<[Condition]> as Vec<NodeCondition> = 4,
        /// Volumes that it uses.
        volumes_in_use: Box<[Istr]> = 9,
        /// Volumes that are attached to it.
        volumes_attached: Box<[AttachedVolume]> = 10,
    }
}

view! {
    /// A volume that is attached to a node.
    pub struct AttachedVolume: Serialize {
        /// Its name.
        name: Istr = 1,
        /// The path on the node.
        device_path: Istr = 2,
    }
}

//! The group `networking.k8s.io`.

use steersman_base::{Condition, Istr, Meta};

use crate::conditions::MetaCondition;
use crate::view;

view! {
    /// The fields of a range of Service addresses that controllers read.
    pub struct ServiceCidrView for cluster("networking.k8s.io", "v1", "servicecidrs", "ServiceCIDR") {
        /// The metadata.
        metadata: Meta = 1,
        /// The ranges.
        spec: ServiceCidrSpec = 2,
        /// Whether addresses are allocated from them.
        status: ServiceCidrStatus = 3,
    }
}

view! {
    /// The spec of a range of Service addresses.
    pub struct ServiceCidrSpec {
        /// The ranges, at most one of each address family.
        cidrs: Box<[Istr]> = 1,
    }
}

view! {
    /// The status of a range of Service addresses.
    pub struct ServiceCidrStatus {
        /// The conditions.
        conditions: Box<[Condition]> as Vec<MetaCondition> = 1,
    }
}

view! {
    /// The part of an allocated address that controllers read: its name is the address.
    pub struct IpAddressView for cluster("networking.k8s.io", "v1", "ipaddresses", "IPAddress") {
        /// The metadata.
        metadata: Meta = 1,
    }
}

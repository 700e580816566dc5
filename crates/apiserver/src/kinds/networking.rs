//! The group `networking.k8s.io`: Ingresses, NetworkPolicies and addresses of Services.

mod ingress;
mod ingress_class;
pub(crate) mod ip_address;
mod network_policy;
pub(crate) mod service_cidr;

use crate::kinds::Kinds;

/// The kinds of the group `networking.k8s.io`.
pub(super) const KINDS: Kinds = &[
    ("IPAddress", &ip_address::RULES),
    ("Ingress", &ingress::RULES),
    ("IngressClass", &ingress_class::RULES),
    ("NetworkPolicy", &network_policy::RULES),
    ("ServiceCIDR", &service_cidr::RULES),
];

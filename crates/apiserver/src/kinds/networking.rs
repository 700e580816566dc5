//! EndpointSlices, NetworkPolicies, Ingresses and their classes.

mod endpoint_slice;
mod ingress;
mod network_policy;

use std::net::IpAddr;

use super::Rules;
use super::check::{self, Errors};
use crate::field::{FieldError, Path};

/// The rules of a kind of the groups `networking.k8s.io` and `discovery.k8s.io`.
pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    Some(match kind {
        "EndpointSlice" => &endpoint_slice::ENDPOINT_SLICE,
        "NetworkPolicy" => &network_policy::NETWORK_POLICY,
        "Ingress" => &ingress::INGRESS,
        "IngressClass" => &ingress::INGRESS_CLASS,
        _ => return None,
    })
}

/// An address that somebody else can reach: `ValidateEndpointIP` of `pkg/apis/core/validation/validation.go`.
pub(super) fn endpoint_ip(value: &str, path: &Path, errors: &mut Errors) {
    let Some(ip) = check::ip(value) else {
        errors.push(FieldError::invalid(path, value, "must be a valid IP address"));
        return;
    };
    let mut invalid = |detail: &str| errors.push(FieldError::invalid(path, value, detail));
    if ip.is_unspecified() {
        invalid(&format!("may not be unspecified ({value})"));
    }
    if ip.is_loopback() {
        invalid("may not be in the loopback range (127.0.0.0/8, ::1/128)");
    }
    let (link_local, multicast) = match ip {
        IpAddr::V4(ip) => (ip.is_link_local(), ip.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(ip) => (ip.segments()[0] & 0xffc0 == 0xfe80, ip.segments()[0] & 0xff0f == 0xff02),
    };
    if link_local {
        invalid("may not be in the link-local range (169.254.0.0/16, fe80::/10)");
    }
    if multicast {
        invalid("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
    }
}

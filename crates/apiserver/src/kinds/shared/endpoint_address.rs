//! Addresses behind a Service, in Endpoints and EndpointSlices, and of load balancers in front of it.

use serde_json::Value;
use std::net::IpAddr;
use steersman_base::validation::dns1123_subdomain;

use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::check::{self, problems};
use crate::kinds::shared::json::{each, items, text};
use crate::table::{TableRow, cell};
use std::collections::BTreeSet;

/// The cell text with the addresses of a load balancer, sorted.
pub(crate) fn load_balancer(row: &TableRow<'_>) -> String {
    let addresses: BTreeSet<&str> = row
        .list_at("/status/loadBalancer/ingress")
        .iter()
        .filter_map(|ingress| {
            [cell::text(ingress, "ip"), cell::text(ingress, "hostname")].into_iter().find(|text| !text.is_empty())
        })
        .collect();
    addresses.into_iter().collect::<Vec<_>>().join(",")
}

/// Checks an address that must be reachable from other machines: `ValidateEndpointIP` of `pkg/apis/core/validation/validation.go`.
pub(crate) fn endpoint_ip(value: &str, path: &Path, errors: &mut Errors) {
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

/// Checks the addresses of a load balancer in a status: `ValidateLoadBalancerStatus` of
/// `pkg/apis/core/validation/validation.go`.
pub(crate) fn load_balancer_status(status: &Value, old: &Value, path: &Path, errors: &mut Errors) {
    let known: Vec<_> = items(&old["loadBalancer"]["ingress"]).iter().map(|it| text(&it["ip"])).collect();
    each(&status["loadBalancer"]["ingress"], path, |it, path| {
        let ip = text(&it["ip"]);
        let name = text(&it["hostname"]);
        if !ip.is_empty() {
            check::legacy_ip(ip, &known, &path.child("ip"), errors);
        }
        if !name.is_empty() {
            problems(name, dns1123_subdomain(name), &path.child("hostname"), errors);
            if check::ip(name).is_some() {
                let detail = "must be a DNS name, not an IP address";
                errors.push(FieldError::invalid(&path.child("hostname"), name, detail));
            }
        }
    });
}

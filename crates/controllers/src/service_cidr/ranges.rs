//! Pure: which ranges contain which addresses and other ranges.

use core::net::IpAddr;

use ipnet::IpNet;
use steersman_base::names::labels::IPADDRESS_MANAGED_BY;
use steersman_model::networking::{IpAddressView, ServiceCidrView};

/// The manager of the addresses that the API server allocates to Services, in their label.
pub(super) const ALLOCATOR: &str = "ipallocator.k8s.io";

/// Returns the ranges of an object. What is no range is skipped: the API server accepts none.
pub(super) fn of(object: &ServiceCidrView) -> impl Iterator<Item = IpNet> + Clone {
    object.spec.cidrs.iter().filter_map(|range| range.parse::<IpNet>().ok())
}

/// Returns the address of an object, if the API server has allocated it to a Service.
pub(super) fn allocated(object: &IpAddressView) -> Option<IpAddr> {
    let meta = &object.metadata;
    let manager = meta.labels.get(IPADDRESS_MANAGED_BY)?;
    if *manager != ALLOCATOR {
        return None;
    }
    meta.name.parse().ok()
}

/// Whether addresses such as this one are allocated from a range: that of the network itself is not, nor is that of all hosts
/// in IPv4.
pub(super) fn holds(range: IpNet, address: IpAddr) -> bool {
    let is_reserved = address == range.network() || (address.is_ipv4() && address == range.broadcast());
    !is_reserved && range.contains(&address)
}

/// Whether addresses such as this one are allocated from one of the ranges of an object.
pub(super) fn any_holds(object: &ServiceCidrView, address: IpAddr) -> bool {
    of(object).any(|range| holds(range, address))
}

/// Whether one of the ranges of an object contains this range.
pub(super) fn any_contains(object: &ServiceCidrView, range: IpNet) -> bool {
    of(object).any(|outer| outer.contains(&range))
}

/// Whether two objects have an address in common.
pub(super) fn overlap(left: &ServiceCidrView, right: &ServiceCidrView) -> bool {
    of(left).any(|one| of(right).any(|other| one.contains(&other) || other.contains(&one)))
}

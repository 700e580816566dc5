//! Pure: a pod's addresses, by family.

use core::net::{IpAddr, Ipv4Addr};
use std::fmt;

use steersman_base::Istr;
use steersman_model::core::{PodView, ServiceView};

/// An address family: upstream's `addressType` and `ipFamily`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Family {
    V4,
    V6,
}

// === impl Family ===

impl Family {
    /// Returns the name in the API.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    /// Returns the family of this name. Slices of host names are not managed here.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        [Self::V4, Self::V6].into_iter().find(|family| family.as_str() == name)
    }

    fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// Returns the family of an address in text; an invalid address counts as IPv4, as upstream.
    pub(crate) fn of_text(text: &str) -> Self {
        parse(text).map_or(Self::V4, Self::of)
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Returns the families that the service declares.
pub(crate) fn declared(service: &ServiceView) -> impl Iterator<Item = Family> {
    service.spec.ip_families.iter().filter_map(|family| Family::parse(family))
}

/// Returns the pod's addresses of a family, in the pod's order, in canonical form.
pub(crate) fn of_pod(pod: &PodView, family: Family) -> impl Iterator<Item = Istr> {
    pod.status.pod_ips().filter_map(move |text| {
        let address = parse(text).filter(|address| Family::of(*address) == family)?;
        let canonical = address.to_string();
        Some(if *text == *canonical { text.clone() } else { Istr::new(&canonical) })
    })
}

/// Returns an invalid address of the pod, if there is one.
pub(crate) fn invalid(pod: &PodView) -> Option<&Istr> {
    pod.status.pod_ips().find(|text| parse(text).is_none())
}

/// Parses an address as Go's `ParseIPSloppy`: leading zeros are allowed, and an IPv4-mapped IPv6 address is an IPv4
/// one.
pub(crate) fn parse(text: &str) -> Option<IpAddr> {
    match text.parse::<IpAddr>() {
        Ok(address) => Some(address.to_canonical()),
        Err(_) => parse_sloppy(text).map(IpAddr::V4),
    }
}

fn parse_sloppy(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next().filter(|part| part.bytes().all(|byte| byte.is_ascii_digit()))?;
        *octet = part.parse().ok()?;
    }
    parts.next().is_none().then(|| octets.into())
}

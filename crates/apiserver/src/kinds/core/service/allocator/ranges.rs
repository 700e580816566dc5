//! The ranges of ServiceCIDRs, and numbers that are given in turn.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;

/// The shortest prefix of an IPv6 range that addresses are given from.
const IPV6_PREFIX_MIN: u8 = 64;

/// The ranges that addresses are given from, in the order in which they have come.
#[derive(Debug, Default)]
pub(super) struct Ranges(Vec<Range>);

/// A range of addresses, and the ServiceCIDRs that have it, each with whether it is ready.
#[derive(Debug)]
struct Range {
    network: IpNet,
    pool: Pool,
    objects: BTreeMap<String, bool>,
}

/// A range of numbers that are given in turn, those from `first` on before the others.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    low: u128,
    first: u128,
    high: u128,
    next: u128,
}

// === impl Ranges ===

impl Ranges {
    /// Notes the ranges of a ServiceCIDR, and whether addresses may come from them; none if it is gone.
    pub(super) fn set(&mut self, name: &str, networks: &[IpNet], is_ready: bool) {
        for range in &mut self.0 {
            range.objects.remove(name);
        }
        for network in networks.iter().filter(|network| match network {
            IpNet::V4(_) => true,
            IpNet::V6(network) => network.prefix_len() >= IPV6_PREFIX_MIN,
        }) {
            let held = self.0.iter_mut().find(|range| range.network == *network);
            if let Some(range) = held {
                range.objects.insert(name.to_owned(), is_ready);
                continue;
            }
            let objects = BTreeMap::from([(name.to_owned(), is_ready)]);
            self.0.push(Range { network: *network, pool: Pool::of_network(network), objects });
        }
        self.0.retain(|range| !range.objects.is_empty());
    }

    /// Returns the number of ranges.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether one of them gives this address.
    pub(super) fn give(&self, ip: IpAddr) -> bool {
        self.0.iter().any(|range| range.is_ready() && range.holds(ip))
    }

    /// Returns the next address of a family that is not taken, as a number.
    pub(super) fn take(&mut self, family: &str, is_taken: impl Fn(u128) -> bool) -> Option<u128> {
        let fits = |range: &&mut Range| range.is_ready() && family_of(&range.network) == family;
        self.0.iter_mut().filter(fits).find_map(|range| range.pool.take(&is_taken))
    }
}

// === impl Range ===

impl Range {
    /// One ready ServiceCIDR is enough.
    fn is_ready(&self) -> bool {
        self.objects.values().any(|is_ready| *is_ready)
    }

    /// Whether it gives such addresses: not that of the network itself, nor, in IPv4, that of all hosts.
    fn holds(&self, ip: IpAddr) -> bool {
        let is_reserved = ip == self.network.network() || (ip.is_ipv4() && ip == self.network.broadcast());
        self.network.contains(&ip) && !is_reserved
    }
}

// === impl Pool ===

impl Pool {
    /// The part up to `first` is a `divisor`-th of the range, at least 16 and at most `offset_max`.
    pub(super) fn new(low: u128, high: u128, divisor: u128, offset_max: u128) -> Self {
        let size = high - low + 1;
        let offset = if size <= 16 { 0 } else { (size / divisor).clamp(16, offset_max) };
        Self { low, first: low + offset, high, next: low + offset }
    }

    fn of_network(network: &IpNet) -> Self {
        let number = |ip: IpAddr| match ip {
            IpAddr::V4(ip) => u128::from(u32::from(ip)),
            IpAddr::V6(ip) => u128::from(ip),
        };
        // Neither the network's own address nor, in IPv4, that for all hosts.
        let low = number(network.network()) + 1;
        let high = number(network.broadcast());
        Self::new(low.min(high), high.saturating_sub(1).max(low.min(high)), 16, 256)
    }

    /// The next number that is not held: those from `first` on in turn, then those below.
    pub(super) fn take(&mut self, is_held: impl Fn(u128) -> bool) -> Option<u128> {
        let upper = (self.next..=self.high).chain(self.first..self.next);
        let found = upper.chain(self.low..self.first).find(|number| !is_held(*number))?;
        self.next = if found >= self.high || found < self.first { self.first } else { found + 1 };
        Some(found)
    }
}

/// Returns the family of a network.
pub(super) fn family_of(network: &IpNet) -> &'static str {
    match network {
        IpNet::V4(_) => "IPv4",
        IpNet::V6(_) => "IPv6",
    }
}

/// Returns the address of a family that has this number.
pub(super) fn to_ip(number: u128, family: &str) -> IpAddr {
    match family {
        "IPv6" => IpAddr::V6(number.into()),
        _ => IpAddr::V4(u32::try_from(number).unwrap_or_default().into()),
    }
}

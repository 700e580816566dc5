//! Pure: the ranges of nodes within a range of the cluster, and which of them are in use.
//!
//! Follows `ipam/cidrset/cidr_set.go` of Kubernetes 1.37.1.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// The ranges of one size within a range.
#[derive(Clone, Debug)]
pub(super) struct CidrSet {
    cluster: IpNet,
    mask: u8,
    /// A bit per range; those beyond the end are free.
    used: Vec<u64>,
    allocated: u64,
    /// The range that is tried first.
    next: u64,
}

/// A range, and how many were tried before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Allocated {
    pub(super) range: IpNet,
    pub(super) tries: u64,
}

/// An error of a set of ranges, with upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CidrError {
    #[error("CIDR allocation failed; there are no remaining CIDRs left to allocate in the accepted range")]
    NoneLeft,
    #[error("New CIDR set failed; the node CIDR size is too big")]
    TooBig,
    #[error(
        "the mask size {mask} of nodes must be between {prefix}, that of the cluster CIDR {cluster}, and {max}, that of \
         an address"
    )]
    TooSmall { cluster: IpNet, mask: i64, prefix: u8, max: u8 },
    #[error("cidr {range} is out the range of cluster cidr {cluster}")]
    OutOfRange { range: IpNet, cluster: IpNet },
}

/// Ranges of IPv6 are bounded in number: upstream's bound.
const IPV6_BITS_MAX: u8 = 16;
/// The ranges of a word of the bitmap.
const BITS: u64 = 64;

// === impl CidrSet ===

impl CidrSet {
    /// Creates a set of free ranges with prefixes of this length.
    ///
    /// # Errors
    /// Such ranges are larger than the whole, or there would be too many.
    pub(super) fn new(cluster: IpNet, mask: i64) -> Result<Self, CidrError> {
        let cluster = cluster.trunc();
        let prefix = cluster.prefix_len();
        let max = cluster.max_prefix_len();
        let fits = u8::try_from(mask).ok().filter(|mask| (prefix..=max).contains(mask));
        let mask = fits.ok_or(CidrError::TooSmall { cluster, mask, prefix, max })?;
        if matches!(cluster, IpNet::V6(_)) && mask - prefix > IPV6_BITS_MAX {
            return Err(CidrError::TooBig);
        }
        Ok(Self { cluster, mask, used: Vec::new(), allocated: 0, next: 0 })
    }

    /// Returns the range that this is a set of.
    pub(super) fn cluster(&self) -> IpNet {
        self.cluster
    }

    /// Returns the number of ranges.
    pub(super) fn max(&self) -> u64 {
        1 << (self.mask - self.cluster.prefix_len())
    }

    /// Returns the number of ranges in use.
    pub(super) fn allocated(&self) -> u64 {
        self.allocated
    }

    /// Takes the next free range. A range that was released is used again after all others.
    ///
    /// # Errors
    /// None is left.
    pub(super) fn allocate(&mut self) -> Result<Allocated, CidrError> {
        if self.allocated == self.max() {
            return Err(CidrError::NoneLeft);
        }
        let mut index = self.next;
        let mut tries = 0;
        while self.is_used(index) {
            index = (index + 1) % self.max();
            tries += 1;
        }
        self.next = (index + 1) % self.max();
        self.set(index, true);
        Ok(Allocated { range: self.range(index), tries })
    }

    /// Marks everything that a range covers as used, and returns how many ranges were free.
    ///
    /// # Errors
    /// The range is elsewhere.
    pub(super) fn occupy(&mut self, range: IpNet) -> Result<u64, CidrError> {
        self.mark(range, true)
    }

    /// Marks everything that a range covers as free, and returns how many ranges were used.
    ///
    /// # Errors
    /// The range is elsewhere.
    pub(super) fn release(&mut self, range: IpNet) -> Result<u64, CidrError> {
        self.mark(range, false)
    }

    /// Returns the first and the last range that have addresses in common with a range.
    ///
    /// # Errors
    /// The range is elsewhere.
    pub(super) fn indices(&self, range: IpNet) -> Result<(u64, u64), CidrError> {
        if !overlap(self.cluster, range) {
            return Err(CidrError::OutOfRange { range, cluster: self.cluster });
        }
        if range.prefix_len() <= self.cluster.prefix_len() {
            return Ok((0, self.max() - 1));
        }
        Ok((self.index(range.network()), self.index(range.broadcast())))
    }

    /// Whether two ranges cover a range of this set in common, though perhaps no address.
    pub(super) fn meet(&self, left: IpNet, right: IpNet) -> bool {
        match (self.indices(left), self.indices(right)) {
            (Ok((first, last)), Ok((other_first, other_last))) => first <= other_last && other_first <= last,
            _ => false,
        }
    }

    /// Returns the range of this number.
    pub(super) fn range(&self, index: u64) -> IpNet {
        let offset = u128::from(index).checked_shl(u32::from(self.cluster.max_prefix_len() - self.mask));
        let address = number(self.cluster.network()) | offset.unwrap_or(0);
        match self.cluster {
            IpNet::V4(_) => {
                // The offset is within the range.
                let address = Ipv4Addr::from_bits(u32::try_from(address).unwrap_or(u32::MAX));
                IpNet::V4(Ipv4Net::new_assert(address, self.mask))
            }
            IpNet::V6(_) => IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::from_bits(address), self.mask)),
        }
    }

    /// Returns the number of the range of an address within the whole.
    fn index(&self, address: IpAddr) -> u64 {
        let offset = number(address) ^ number(self.cluster.network());
        let index = offset.checked_shr(u32::from(self.cluster.max_prefix_len() - self.mask)).unwrap_or(0);
        // There are at most 2³² ranges of IPv4, and 2¹⁶ of IPv6.
        u64::try_from(index).unwrap_or(u64::MAX)
    }

    fn mark(&mut self, range: IpNet, used: bool) -> Result<u64, CidrError> {
        let (first, last) = self.indices(range)?;
        let changed = (first..=last).filter(|index| self.is_used(*index) != used).collect::<Vec<_>>();
        changed.iter().for_each(|index| self.set(*index, used));
        Ok(changed.len() as u64)
    }

    fn is_used(&self, index: u64) -> bool {
        let word = usize::try_from(index / BITS).ok().and_then(|at| self.used.get(at));
        word.is_some_and(|word| word & (1 << (index % BITS)) != 0)
    }

    fn set(&mut self, index: u64, used: bool) {
        let Ok(at) = usize::try_from(index / BITS) else { return };
        if at >= self.used.len() {
            self.used.resize(at + 1, 0);
        }
        let bit = 1 << (index % BITS);
        if used {
            self.used[at] |= bit;
            self.allocated += 1;
        } else {
            self.used[at] &= !bit;
            self.allocated -= 1;
        }
    }
}

/// Whether two ranges have addresses in common: one of them contains the other.
fn overlap(left: IpNet, right: IpNet) -> bool {
    left.contains(&right) || right.contains(&left)
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    }
}

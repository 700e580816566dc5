//! Pure: which node has which ranges.

use std::collections::BTreeMap;

use ipnet::IpNet;
use steersman_base::{Istr, Meta, Uid};

use super::cidr_set::{Allocated, CidrError, CidrSet};
use super::plan::Ranges;

/// The ranges of all nodes. Bounded by the number of nodes, and a bit per range.
#[derive(Debug)]
pub(super) struct Allocator {
    sets: Vec<CidrSet>,
    services: Vec<IpNet>,
    held: BTreeMap<Istr, Held>,
}

/// The ranges of a node: reserved for it, or its own.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Held {
    uid: Uid,
    ranges: Vec<IpNet>,
}

/// The effect of a change on a set, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// A range was allocated, after this many tries.
    Allocated { set: usize, tries: u64 },
    /// Ranges that were in use already are known.
    Occupied { set: usize, count: u64 },
    /// Ranges are free again.
    Released { set: usize, count: u64 },
}

/// An error of an allocation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum AllocatorError {
    #[error("failed to allocate cidr from cluster cidr at idx:{index}: {error}")]
    NoneLeft { index: usize, error: CidrError },
    #[error("failed to mark cidr[{range}] at idx [{index}] as occupied for node: {node}: {error}")]
    NotOurs { node: Istr, index: usize, range: IpNet, error: CidrError },
    #[error(
        "node:{node} has an allocated cidr: {range} at index:{index} that does not exist in cluster cidrs configuration"
    )]
    TooMany { node: Istr, index: usize, range: IpNet },
}

// === impl Allocator ===

impl Allocator {
    /// Creates an allocator whose ranges are free, except those of services.
    ///
    /// # Errors
    /// The ranges of nodes do not fit into those of the cluster.
    pub(super) fn new(ranges: &Ranges) -> Result<Self, CidrError> {
        let sets = ranges.cluster.iter().map(|(range, mask)| CidrSet::new(*range, *mask));
        let sets = sets.collect::<Result<Vec<_>, _>>()?;
        let mut allocator = Self { sets, services: ranges.services.clone(), held: BTreeMap::new() };
        allocator.spare_services();
        Ok(allocator)
    }

    /// Returns the sets of ranges, one of each range of the cluster.
    pub(super) fn sets(&self) -> &[CidrSet] {
        &self.sets
    }

    /// Returns the ranges that are reserved for a node; if there are none, free ones become so. All of them, or none.
    ///
    /// # Errors
    /// None is left of a family.
    pub(super) fn reserve(&mut self, node: &Meta) -> Result<(Vec<IpNet>, Vec<Effect>), AllocatorError> {
        if let Some(held) = self.held.get(&node.name).filter(|held| held.uid == node.uid) {
            return Ok((held.ranges.clone(), Vec::new()));
        }
        let mut taken = Vec::new();
        let mut failure = None;
        for (index, set) in self.sets.iter_mut().enumerate() {
            match set.allocate() {
                Ok(allocated) => taken.push(allocated),
                Err(error) => {
                    failure = Some(AllocatorError::NoneLeft { index, error });
                    break;
                }
            }
        }
        let ranges: Vec<IpNet> = taken.iter().map(|taken: &Allocated| taken.range).collect();
        if let Some(error) = failure {
            self.release_unheld(&ranges);
            return Err(error);
        }
        let effects = taken.iter().enumerate().map(|(set, taken)| Effect::Allocated { set, tries: taken.tries });
        let mut effects: Vec<Effect> = effects.collect();
        effects.extend(self.hold(node, ranges.clone()));
        Ok((ranges, effects))
    }

    /// Takes the ranges of a node as used by it. Others that were reserved for it become free.
    ///
    /// # Errors
    /// A range is not one of the cluster's. Those that are, are used.
    pub(super) fn occupy(&mut self, node: &Meta, ranges: &[IpNet]) -> Result<Vec<Effect>, AllocatorError> {
        if self.held.get(&node.name).is_some_and(|held| held.uid == node.uid && held.ranges == ranges) {
            return Ok(Vec::new());
        }
        let mut effects = Vec::new();
        let mut outcome = Ok(());
        for (set, range) in ranges.iter().enumerate() {
            let Some(of_family) = self.sets.get_mut(set) else {
                outcome = Err(AllocatorError::TooMany { node: node.name.clone(), index: set, range: *range });
                break;
            };
            match of_family.occupy(*range) {
                Ok(count) => effects.push(Effect::Occupied { set, count }),
                Err(error) => {
                    let node = node.name.clone();
                    outcome = Err(AllocatorError::NotOurs { node, index: set, range: *range, error });
                }
            }
        }
        effects.extend(self.hold(node, ranges.to_vec()));
        outcome.map(|()| effects)
    }

    /// The node is gone: its ranges are free, unless another node has them, too.
    pub(super) fn release(&mut self, node: &Meta) -> Vec<Effect> {
        match self.held.get(&node.name) {
            Some(held) if held.uid == node.uid => {}
            _ => return Vec::new(),
        }
        let ranges = self.held.remove(&node.name).map(|held| held.ranges).unwrap_or_default();
        self.release_unheld(&ranges)
    }

    /// Remembers the ranges of a node. Those that it had before become free.
    fn hold(&mut self, node: &Meta, ranges: Vec<IpNet>) -> Vec<Effect> {
        let before = self.held.insert(node.name.clone(), Held { uid: node.uid.clone(), ranges });
        before.map(|before| self.release_unheld(&before.ranges)).unwrap_or_default()
    }

    /// Frees ranges, except what a node has of them, or a service may have.
    fn release_unheld(&mut self, ranges: &[IpNet]) -> Vec<Effect> {
        let mut effects = Vec::new();
        for (set, range) in ranges.iter().enumerate() {
            let Some(of_family) = self.sets.get_mut(set) else { continue };
            // A range that is not the cluster's was never taken.
            let Ok(released) = of_family.release(*range) else { continue };
            // Others may have a part of them: an overlapping range, or another part of what is given to one node as a whole.
            let others = self.held.values().flat_map(|held| &held.ranges);
            let others: Vec<IpNet> = others.filter(|other| of_family.meet(**other, *range)).copied().collect();
            let taken_again: u64 = others.into_iter().filter_map(|other| of_family.occupy(other).ok()).sum();
            let count = released.saturating_sub(taken_again);
            if count > 0 {
                effects.push(Effect::Released { set, count });
            }
        }
        self.spare_services();
        effects
    }

    /// Marks the addresses of services as used.
    fn spare_services(&mut self) {
        for set in &mut self.sets {
            for range in &self.services {
                // Those that are elsewhere are not concerned.
                let _ = set.occupy(*range);
            }
        }
    }
}

//! Pod addresses: unique, from the range of the node, and reused as late as possible.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use core::net::Ipv4Addr;
use ipnet::Ipv4Net;
use steersman_base::{Istr, ObjectKey, Uid};

/// Assigns addresses to pods. After a restart the state is restored from the pods' statuses.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    ranges: BTreeMap<Istr, Range>,
    held: HashMap<ObjectKey, Held>,
}

/// The addresses of one node.
#[derive(Debug)]
struct Range {
    net: Ipv4Net,
    used: BTreeSet<u32>,
    /// The address at which the search begins: after the last assigned address, so that an address is not reused at
    /// once.
    next: u32,
}

/// An assigned address.
#[derive(Debug)]
struct Held {
    uid: Uid,
    node: Istr,
    address: u32,
}

/// The network address and the gateway are not assigned.
const FIRST: u32 = 2;

// === impl Addresses ===

impl Addresses {
    /// Sets the range of a node. Returns whether it is another one than before, so that the addresses in use are not known:
    /// a node that is created again may get another range.
    pub(super) fn set_range(&mut self, node: &Istr, net: Ipv4Net) -> bool {
        if self.ranges.get(node).is_some_and(|range| range.net == net) {
            return false;
        }
        self.held.retain(|_, held| held.node != *node);
        self.ranges.insert(node.clone(), Range { net, used: BTreeSet::new(), next: FIRST });
        true
    }

    /// Records that a pod has an address already.
    pub(super) fn claim(&mut self, key: &ObjectKey, uid: &Uid, node: &Istr, address: &str) {
        let Ok(address) = address.parse::<Ipv4Addr>() else { return };
        self.hold(key, uid, node, address.to_bits());
    }

    /// Returns the address of a pod: its present one, or a new one; `None` if the node has none left.
    pub(super) fn address(&mut self, key: &ObjectKey, uid: &Uid, node: &Istr) -> Option<String> {
        if let Some(held) = self.held.get(key).filter(|held| held.uid == *uid && held.node == *node) {
            return Some(Ipv4Addr::from_bits(held.address).to_string());
        }
        let address = self.ranges.get_mut(node)?.take()?;
        self.hold(key, uid, node, address);
        Some(Ipv4Addr::from_bits(address).to_string())
    }

    /// Releases the address of a pod that is deleted or needs none any more.
    pub(super) fn release(&mut self, key: &ObjectKey) {
        if let Some(held) = self.held.remove(key)
            && let Some(range) = self.ranges.get_mut(&held.node)
        {
            range.used.remove(&held.address);
        }
    }

    fn hold(&mut self, key: &ObjectKey, uid: &Uid, node: &Istr, address: u32) {
        let is_same = |held: &Held| held.uid == *uid && held.node == *node && held.address == address;
        if self.held.get(key).is_some_and(is_same) {
            return;
        }
        self.release(key);
        if let Some(range) = self.ranges.get_mut(node) {
            range.used.insert(address);
        }
        self.held.insert(key.clone(), Held { uid: uid.clone(), node: node.clone(), address });
    }
}

// === impl Range ===

impl Range {
    /// Returns the next free address.
    fn take(&mut self) -> Option<u32> {
        let first = self.net.network().to_bits();
        // The last address of a range is its broadcast address.
        let size = self.net.broadcast().to_bits() - first;
        if size <= FIRST {
            return None;
        }
        let places = size - FIRST;
        let start = self.next.clamp(FIRST, size - 1) - FIRST;
        let free = (0..places).map(|step| FIRST + (start + step) % places);
        let offset = free.into_iter().find(|offset| !self.used.contains(&(first + offset)))?;
        self.next = if offset + 1 >= size { FIRST } else { offset + 1 };
        Some(first + offset)
    }
}

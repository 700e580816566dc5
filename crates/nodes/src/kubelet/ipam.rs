//! Addresses of pods: each unique, from the range of its node, and taken again only when all others were.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use core::net::Ipv4Addr;
use ipnet::Ipv4Net;
use steersman_base::{Istr, ObjectKey, Uid};

/// Which pod has which address. What it knows comes back from the pods' statuses after a restart.
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
    /// Where the search begins: behind the address given last, so that an address rests before it is used again.
    next: u32,
}

/// An address that a pod has.
#[derive(Debug)]
struct Held {
    uid: Uid,
    node: Istr,
    address: u32,
}

/// The network itself and its gateway are nobody's.
const FIRST: u32 = 2;

// === impl Addresses ===

impl Addresses {
    /// Whether the range of a node is known.
    pub(super) fn knows(&self, node: &str) -> bool {
        self.ranges.contains_key(node)
    }

    /// Tells the range of a node. A known one stays.
    pub(super) fn add_range(&mut self, node: &Istr, net: Ipv4Net) {
        let range = || Range { net, used: BTreeSet::new(), next: FIRST };
        self.ranges.entry(node.clone()).or_insert_with(range);
    }

    /// Tells that a pod has an address already.
    pub(super) fn claim(&mut self, key: &ObjectKey, uid: &Uid, node: &Istr, address: &str) {
        let Ok(address) = address.parse::<Ipv4Addr>() else { return };
        self.hold(key, uid, node, address.to_bits());
    }

    /// The address of a pod: the one it has, or a new one; `None` if the node has none left.
    pub(super) fn address(&mut self, key: &ObjectKey, uid: &Uid, node: &Istr) -> Option<String> {
        if let Some(held) = self.held.get(key).filter(|held| held.uid == *uid && held.node == *node) {
            return Some(Ipv4Addr::from_bits(held.address).to_string());
        }
        let address = self.ranges.get_mut(node)?.take()?;
        self.hold(key, uid, node, address);
        Some(Ipv4Addr::from_bits(address).to_string())
    }

    /// The pod with this key is gone, or needs no address any more.
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
    /// The next free address.
    fn take(&mut self) -> Option<u32> {
        let first = self.net.network().to_bits();
        // The last address of a range is its broadcast.
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

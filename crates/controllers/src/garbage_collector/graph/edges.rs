//! From dependents to owners: each edge is in two lists, that of its owner's dependents and that of its dependent's owners.
//!
//! A list per node would cost an allocation each and, for an owner with many dependents or an object with many owners, a
//! search for each that goes.

/// No edge.
pub(super) const NONE: u32 = u32::MAX;

/// All edges, in one allocation.
#[derive(Debug, Default)]
pub(super) struct Edges {
    all: Vec<Edge>,
    free: Vec<u32>,
}

/// One edge.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) owner: u32,
    pub(super) dependent: u32,
    /// Its neighbours among the dependents of the owner, and among the owners of the dependent.
    links: [Link; 2],
}

#[derive(Clone, Copy, Debug)]
struct Link {
    previous: u32,
    next: u32,
}

/// The two lists that an edge is in.
#[derive(Clone, Copy, Debug)]
pub(super) enum List {
    /// The dependents of the owner.
    Dependents = 0,
    /// The owners of the dependent.
    Owners = 1,
}

// === impl Edges ===

impl Edges {
    /// A new edge, which becomes the first of both lists; `dependents` of the owner and `owners` of the dependent are the
    /// first ones so far.
    pub(super) fn add(&mut self, owner: u32, dependent: u32, dependents: u32, owners: u32) -> u32 {
        let link = |next| Link { previous: NONE, next };
        let edge = Edge { owner, dependent, links: [link(dependents), link(owners)] };
        let at = match self.free.pop() {
            Some(at) => {
                self.all[at as usize] = edge;
                at
            }
            None => {
                self.all.push(edge);
                // Four thousand million edges do not fit into memory.
                u32::try_from(self.all.len() - 1).unwrap_or(NONE)
            }
        };
        for (list, next) in [(List::Dependents, dependents), (List::Owners, owners)] {
            if let Some(next) = self.all.get_mut(next as usize) {
                next.links[list as usize].previous = at;
            }
        }
        at
    }

    /// The edge at a place.
    pub(super) fn get(&self, at: u32) -> Edge {
        self.all[at as usize]
    }

    /// The edges of a list, from the first on; the newest first.
    pub(super) fn walk(&self, list: List, first: u32) -> impl Iterator<Item = (u32, Edge)> + '_ {
        let found = move |at: u32| Some((at, *self.all.get(at as usize)?));
        std::iter::successors(found(first), move |(_, edge)| found(edge.links[list as usize].next))
    }

    /// Takes an edge out of a list. The answer is the new beginning of the list, if it was the first.
    pub(super) fn take_out(&mut self, at: u32, list: List) -> Option<u32> {
        let Link { previous, next } = self.all[at as usize].links[list as usize];
        if let Some(next) = self.all.get_mut(next as usize) {
            next.links[list as usize].previous = previous;
        }
        match self.all.get_mut(previous as usize) {
            Some(previous) => {
                previous.links[list as usize].next = next;
                None
            }
            None => Some(next),
        }
    }

    /// An edge that is in no list any more.
    pub(super) fn free(&mut self, at: u32) {
        self.free.push(at);
    }
}

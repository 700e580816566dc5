//! Edges from dependents to owners: each edge is in two linked lists, its owner's dependents and its dependent's
//! owners.
//!
//! A vector per node would cost an allocation each and, for an owner with many dependents or an object with many
//! owners, a linear search for each removal.

/// The index of no edge.
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
    /// The neighbours among the dependents of the owner, and among the owners of the dependent.
    links: [Link; 2],
}

#[derive(Clone, Copy, Debug)]
struct Link {
    previous: u32,
    next: u32,
}

/// The two lists of an edge.
#[derive(Clone, Copy, Debug)]
pub(super) enum List {
    /// The dependents of the owner.
    Dependents = 0,
    /// The owners of the dependent.
    Owners = 1,
}

// === impl Edges ===

impl Edges {
    /// Adds an edge, which becomes the first of both lists; `dependents` of the owner and `owners` of the dependent are
    /// the previous first edges.
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
                // Four billion edges do not fit into memory.
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

    /// Returns the edge at an index.
    pub(super) fn get(&self, at: u32) -> Edge {
        self.all[at as usize]
    }

    /// Iterates over a list, newest edge first.
    pub(super) fn walk(&self, list: List, first: u32) -> impl Iterator<Item = (u32, Edge)> + '_ {
        let found = move |at: u32| Some((at, *self.all.get(at as usize)?));
        std::iter::successors(found(first), move |(_, edge)| found(edge.links[list as usize].next))
    }

    /// Removes an edge from a list. Returns the new first edge, if it was the first.
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

    /// Frees an edge that is in no list any more.
    pub(super) fn free(&mut self, at: u32) {
        self.free.push(at);
    }
}

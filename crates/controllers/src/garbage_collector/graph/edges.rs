//! From dependents to owners: each edge is in two lists, that of its owner's dependents and that of its dependent's owners.
//!
//! A list per node would cost an allocation each and, for an owner with many dependents, a search per dependent that goes.

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
    /// Among the dependents of the owner.
    previous: u32,
    next: u32,
    /// Among the owners of the dependent.
    sibling: u32,
}

// === impl Edges ===

impl Edges {
    /// A new edge, which becomes the first of both lists: `dependents` of the owner and `owned_by` of the dependent.
    pub(super) fn add(&mut self, owner: u32, dependent: u32, dependents: u32, owned_by: u32) -> u32 {
        let edge = Edge { owner, dependent, previous: NONE, next: dependents, sibling: owned_by };
        let at = match self.free.pop() {
            Some(at) => {
                self.all[at as usize] = edge;
                at
            }
            None => {
                self.all.push(edge);
                u32::try_from(self.all.len() - 1).unwrap_or(NONE)
            }
        };
        if let Some(next) = self.all.get_mut(dependents as usize) {
            next.previous = at;
        }
        at
    }

    /// The edge at a place.
    pub(super) fn get(&self, at: u32) -> Edge {
        self.all[at as usize]
    }

    /// The dependents of an owner, from the first edge on; the newest first.
    pub(super) fn dependents(&self, first: u32) -> impl Iterator<Item = u32> + '_ {
        let step = |at: &u32| self.all.get(*at as usize).map(|edge| edge.next);
        std::iter::successors(Some(first), step).filter_map(|at| Some(self.all.get(at as usize)?.dependent))
    }

    /// The edges to the owners of a dependent, from the first on.
    pub(super) fn owners(&self, first: u32) -> impl Iterator<Item = u32> + '_ {
        let step = |at: &u32| self.all.get(*at as usize).map(|edge| edge.sibling);
        std::iter::successors(Some(first), step).take_while(|at| *at != NONE)
    }

    /// Takes an edge out of its owner's list, and frees it. The answer is the new beginning of that list, if it has one.
    /// The list of the dependent must not lead here any more.
    pub(super) fn remove(&mut self, at: u32) -> Option<u32> {
        let Edge { previous, next, .. } = self.get(at);
        if let Some(next) = self.all.get_mut(next as usize) {
            next.previous = previous;
        }
        self.free.push(at);
        match self.all.get_mut(previous as usize) {
            Some(previous) => {
                previous.next = next;
                None
            }
            None => Some(next),
        }
    }

    /// Keeps those owners' edges of a dependent of which `keep` is true; the others stay in their owners' lists. The answer
    /// is the new beginning of the list, and what was taken out.
    pub(super) fn retain_owners(&mut self, first: u32, keep: impl Fn(Edge) -> bool) -> (u32, Vec<u32>) {
        let all: Vec<u32> = self.owners(first).collect();
        let (kept, dropped): (Vec<u32>, Vec<u32>) = all.into_iter().partition(|at| keep(self.get(*at)));
        let mut sibling = NONE;
        for at in kept.into_iter().rev() {
            self.all[at as usize].sibling = sibling;
            sibling = at;
        }
        (sibling, dropped)
    }
}

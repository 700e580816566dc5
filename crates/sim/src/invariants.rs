//! What must hold after every write.

use std::collections::BTreeMap;

use crate::record::Change;
use crate::world::World;

/// How invariants are judged.
#[derive(Clone, Debug, Default)]
pub struct Options {}

/// All invariants.
#[derive(Debug, Default)]
pub struct Suite {}

/// An invariant that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The name of the invariant.
    pub invariant: String,
    /// What happened.
    pub message: String,
}

/// How often an invariant was judged, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How often it was checked.
    pub checked: u64,
    /// How often it did not hold, and staleness excused it.
    pub excused: u64,
    /// How often it did not hold.
    pub violated: u64,
}

impl Suite {
    /// All invariants.
    #[must_use]
    pub fn new(_options: Options) -> Self {
        Self {}
    }

    /// Judges the world after a change.
    pub fn check(&mut self, _world: &World, _change: &Change) -> Vec<Violation> {
        Vec::new()
    }

    /// Judges a world that should have healed.
    pub fn healed(&mut self, _world: &World) -> Vec<Violation> {
        Vec::new()
    }

    /// How often each was judged.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<String, Counts> {
        BTreeMap::new()
    }
}

//! The state of the world, rebuilt from changes.

use crate::record::Change;

/// The state of the world.
#[derive(Debug, Default)]
pub struct World {}

impl World {
    /// Takes a change in.
    pub fn apply(&mut self, _change: &Change) {}
}

//! How much work a patch may be.
//!
//! A patch of a few MiB can ask for quadratic work: ten thousand moves of a large value, or a list that is merged again
//! for each of its elements. Upstream does it; here each step is paid for, and a patch that asks for too many is refused.

use std::cell::Cell;

use super::PatchError;

/// The maximum number of steps of a patch: each is a node that is walked, an element that is moved or a byte that is
/// compared. The largest patch that changes every element of the largest object once takes fewer.
pub(super) const STEPS_MAX: usize = 1 << 24;

/// The steps that a patch has taken.
#[derive(Debug, Default)]
pub(super) struct Work(Cell<usize>);

// === impl Work ===

impl Work {
    /// Pays for some steps.
    ///
    /// # Errors
    /// 413 if the patch has taken too many.
    pub(super) fn spend(&self, steps: usize) -> Result<(), PatchError> {
        let spent = self.0.get().saturating_add(steps);
        self.0.set(spent);
        if spent > STEPS_MAX {
            return Err(PatchError::too_large("the patch moves or merges too much; send it in parts"));
        }
        Ok(())
    }
}

//! Owners in a namespace that is going away.
//!
//! 1. Nothing can be created there, and a namespace that is being deleted never comes back: whoever was refused once, for as
//!    long as it exists itself, need not try again. Without this, every pod that goes with its namespace is missed, and
//!    costs a request that is bound to fail.
//! 2. It is the owner's uid that is remembered: one of the same name in a new namespace of that name is another one.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use steersman_base::Uid;

/// Owners that nothing can be created for.
#[derive(Debug, Default)]
pub(crate) struct Doomed(Mutex<BTreeSet<Uid>>);

/// So many owners are remembered, in a few hundred kilobytes; beyond that all are forgotten, and are refused once more.
const REMEMBERED_MAX: usize = 16_384;

// === impl Doomed ===

impl Doomed {
    /// The server said so.
    pub(crate) fn add(&self, owner: &Uid) {
        let mut owners = self.0.lock();
        if owners.len() >= REMEMBERED_MAX {
            owners.clear();
        }
        owners.insert(owner.clone());
    }

    pub(crate) fn has(&self, owner: &Uid) -> bool {
        self.0.lock().contains(owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_refused_is_remembered_and_there_is_an_end_to_that() {
        let doomed = Doomed::default();
        let uid = |number: usize| Uid::new(&format!("uid-{number}"));
        (0..REMEMBERED_MAX).for_each(|number| doomed.add(&uid(number)));
        assert!(doomed.has(&uid(0)));
        assert!(!doomed.has(&uid(REMEMBERED_MAX)));
        doomed.add(&uid(REMEMBERED_MAX));
        assert!(doomed.has(&uid(REMEMBERED_MAX)));
        assert_eq!(doomed.0.lock().len(), 1);
    }
}

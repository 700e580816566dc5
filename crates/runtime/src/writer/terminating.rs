//! Owners in namespaces that are terminating.
//!
//! 1. Nothing can be created there, and a terminating namespace never recovers: an owner that was refused once need not
//!    try again, for as long as it exists. Without this, every pod that is deleted with its namespace would be
//!    replaced, at the cost of a request that must fail. It holds for creates in the owner's own namespace only: an owner
//!    that is cluster-scoped, or creates elsewhere, asks every time.
//! 2. The owner's uid is remembered: an owner of the same name in a new namespace of that name is another one.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use steersman_base::Uid;

/// The owners that nothing can be created for.
#[derive(Debug, Default)]
pub(super) struct Terminating(Mutex<BTreeSet<Uid>>);

/// The number of remembered owners, in a few hundred kilobytes; beyond that all are forgotten, and are refused once
/// more.
const REMEMBERED_MAX: usize = 16_384;

// === impl Terminating ===

impl Terminating {
    /// Adds an owner whose create was refused.
    pub(super) fn add(&self, owner: &Uid) {
        let mut owners = self.0.lock();
        if owners.len() >= REMEMBERED_MAX {
            owners.clear();
        }
        owners.insert(owner.clone());
    }

    pub(super) fn has(&self, owner: &Uid) -> bool {
        self.0.lock().contains(owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_users_are_remembered_for_a_while() {
        let terminating = Terminating::default();
        let uid = |number: usize| Uid::new(&format!("uid-{number}"));
        (0..REMEMBERED_MAX).for_each(|number| terminating.add(&uid(number)));
        assert!(terminating.has(&uid(0)));
        assert!(!terminating.has(&uid(REMEMBERED_MAX)));
        terminating.add(&uid(REMEMBERED_MAX));
        assert!(terminating.has(&uid(REMEMBERED_MAX)));
        assert_eq!(terminating.0.lock().len(), 1);
    }
}

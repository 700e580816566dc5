//! What the owners of an object are worth, and what becomes of the object.

use std::collections::HashSet;

use steersman_base::names::finalizers;
use steersman_base::{Meta, OwnerRef, Uid};
use steersman_runtime::Propagation;

/// What an owner is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It is there, and keeps its dependents.
    Solid,
    /// It is gone, or another object has its name.
    Dangling,
    /// It is there, and is deleted in the foreground: it goes when its dependents have gone.
    Waiting,
}

/// What becomes of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It stays as it is.
    Stays,
    /// It stays, and lets go of these owners.
    LetsGo(Vec<Uid>),
    /// It goes, and its dependents go first, because an owner waits for all of them. If it is part of a cycle, its
    /// references must first stop blocking, or all would wait for each other.
    GoesInForeground {
        /// Whether a dependent of it waits for its own dependents.
        in_cycle: bool,
    },
    /// It goes, in the way that its own finalizers ask for.
    Goes(Propagation),
}

/// What the graph knows of an object's dependents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dependents {
    /// Whether there are any.
    pub(crate) any: bool,
    /// Whether one of them waits for its own dependents.
    pub(crate) any_waiting: bool,
}

/// What an owner is worth that the server has, or has not: `live` is what is found under its name.
pub(crate) fn standing(reference: &OwnerRef, live: Option<&Meta>) -> Standing {
    match live {
        Some(owner) if owner.uid == reference.uid => {
            let waits = owner.is_terminating() && owner.has_finalizer(finalizers::FOREGROUND_DELETION);
            if waits { Standing::Waiting } else { Standing::Solid }
        }
        _ => Standing::Dangling,
    }
}

/// What becomes of an object whose owners are worth this, one by one.
pub(crate) fn fate(live: &Meta, standings: &[Standing], dependents: Dependents) -> Fate {
    let owners = live.owner_references.iter().zip(standings);
    let is_any = |wanted: Standing| standings.contains(&wanted);
    if standings.is_empty() {
        return Fate::Stays;
    }
    if is_any(Standing::Solid) {
        // Patches name owners by uid: one that is right in another reference must not go with a wrong one.
        let is_solid = |(_, standing): &(&OwnerRef, &Standing)| **standing == Standing::Solid;
        let mut spared: HashSet<&Uid> = owners.clone().filter(is_solid).map(|(owner, _)| &owner.uid).collect();
        let gone = owners.filter(|owner| !is_solid(owner) && spared.insert(&owner.0.uid));
        let gone: Vec<Uid> = gone.map(|(owner, _)| owner.uid.clone()).collect();
        return if gone.is_empty() { Fate::Stays } else { Fate::LetsGo(gone) };
    }
    if is_any(Standing::Waiting) && dependents.any {
        return Fate::GoesInForeground { in_cycle: dependents.any_waiting };
    }
    Fate::Goes(if live.has_finalizer(finalizers::ORPHAN) {
        Propagation::Orphan
    } else if live.has_finalizer(finalizers::FOREGROUND_DELETION) {
        Propagation::Foreground
    } else {
        Propagation::Background
    })
}

//! Classifies the owners of an object, and decides what happens to the object.

use std::collections::HashSet;

use steersman_base::names::finalizers;
use steersman_base::{Meta, OwnerRef, Uid};
use steersman_runtime::Propagation;

/// The state of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnerState {
    /// The owner exists, and keeps its dependents.
    Solid,
    /// The owner is absent, or another object has its name.
    Dangling,
    /// The owner is in foreground deletion: it is deleted after its dependents.
    Waiting,
}

/// The action on an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// The object is kept as it is.
    Keep,
    /// The object is kept, and references to these owners are removed.
    RemoveOwners(Vec<Uid>),
    /// The object is deleted in the foreground, because an owner waits for all dependents. In a cycle, its references
    /// must first stop blocking, or all would wait for each other.
    DeleteInForeground {
        /// Whether one of its dependents waits for its own dependents.
        in_cycle: bool,
    },
    /// The object is deleted with the propagation policy that its own finalizers request.
    Delete(Propagation),
}

/// The state of an object's dependents in the graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dependents {
    /// Whether there are any.
    pub(crate) any: bool,
    /// Whether one of them waits for its own dependents.
    pub(crate) any_waiting: bool,
}

/// Classifies an owner: `live` is the object that the server has under its name.
pub(crate) fn owner_state(reference: &OwnerRef, live: Option<&Meta>) -> OwnerState {
    match live {
        Some(owner) if owner.uid == reference.uid => {
            let waits = owner.is_terminating() && owner.has_finalizer(finalizers::FOREGROUND_DELETION);
            if waits { OwnerState::Waiting } else { OwnerState::Solid }
        }
        _ => OwnerState::Dangling,
    }
}

/// Decides what happens to an object with owners in these states.
pub(crate) fn plan(live: &Meta, owner_states: &[OwnerState], dependents: Dependents) -> Plan {
    let owners = live.owner_references.iter().zip(owner_states);
    let is_any = |wanted: OwnerState| owner_states.contains(&wanted);
    if owner_states.is_empty() {
        return Plan::Keep;
    }
    if is_any(OwnerState::Solid) {
        // Patches name owners by uid: an owner that is right in another reference must not be removed with a wrong one.
        let is_solid = |(_, owner_state): &(&OwnerRef, &OwnerState)| **owner_state == OwnerState::Solid;
        let mut spared: HashSet<&Uid> = owners.clone().filter(is_solid).map(|(owner, _)| &owner.uid).collect();
        let gone = owners.filter(|owner| !is_solid(owner) && spared.insert(&owner.0.uid));
        let gone: Vec<Uid> = gone.map(|(owner, _)| owner.uid.clone()).collect();
        return if gone.is_empty() { Plan::Keep } else { Plan::RemoveOwners(gone) };
    }
    if is_any(OwnerState::Waiting) && dependents.any {
        return Plan::DeleteInForeground { in_cycle: dependents.any_waiting };
    }
    Plan::Delete(if live.has_finalizer(finalizers::ORPHAN) {
        Propagation::Orphan
    } else if live.has_finalizer(finalizers::FOREGROUND_DELETION) {
        Propagation::Foreground
    } else {
        Propagation::Background
    })
}

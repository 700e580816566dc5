//! Ownership: controllers that find their objects by labels and hold them by an owner reference.
//!
//! 1. An object has one controller: an object of another controller is never touched.
//! 2. An orphan that matches is adopted, after a live read has confirmed that the owner still exists and selects it; an
//!    object of ours that no longer matches is released. A terminating owner does neither.
//! 3. An event of an object concerns its controller; an event of an orphan concerns the owners whose selector matches
//!    it, which are found by an index and never by iterating over the namespace.
//! 4. An object that cannot be claimed, because the server refuses it, does not hold back the others; the pass fails.
//! 5. An owner whose selector matches everything, or not even its own template, is skipped.
//!
//! Follows `controller_ref_manager.go` of Kubernetes 1.37.1. Used for pods of ReplicaSets, ReplicationControllers,
//! StatefulSets, DaemonSets and Jobs, for ReplicaSets of Deployments, and for ControllerRevisions.

use steersman_base::{Meta, OwnerRef, Selector, StringMap};
use steersman_model::Kind;

pub(crate) mod map;
mod sync;
#[cfg(test)]
mod tests;

pub(crate) use sync::{Claimed, claimed, claimed_if, claimed_with};

/// An object that selects others by their labels.
pub(crate) trait Selecting: Kind {
    /// Returns the selector; `None` if it is invalid, which the API server does not accept.
    fn selector(&self) -> Option<Selector>;
}

/// The action on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The object is ours and still matches.
    Keep,
    /// The object has no controller and matches: adopt it.
    Adopt,
    /// The object is ours and no longer matches: release it.
    Release,
    /// The object belongs to another controller, or does not match.
    Ignore,
}

/// Decides about one object that the owner selects or not, as upstream's `ClaimObject`.
pub(crate) fn claim(owner: &Meta, matches: bool, object: &Meta) -> Claim {
    match object.controller() {
        Some(holder) if holder.uid != owner.uid => Claim::Ignore,
        Some(_) if matches => Claim::Keep,
        // A terminating owner leaves its objects to the garbage collector.
        Some(_) if owner.is_terminating() => Claim::Ignore,
        Some(_) => Claim::Release,
        None if !matches || owner.is_terminating() || object.is_terminating() => Claim::Ignore,
        None if object.namespace != owner.namespace => Claim::Ignore,
        None => Claim::Adopt,
    }
}

/// Returns the selector of an owner, if objects can be created for it from a template with these labels; otherwise an
/// error: a created object would be released at once and created again without end. The API server does not accept such
/// an owner.
pub(crate) fn usable(selector: Option<Selector>, template: &StringMap) -> Result<Selector, &'static str> {
    match selector {
        None => Err("its selector is invalid"),
        Some(selector) if selector.is_everything() => Err("its selector matches everything there is"),
        Some(selector) if !selector.matches(template) => Err("its selector does not match the labels of its template"),
        Some(selector) => Ok(selector),
    }
}

/// Returns the reference that makes `owner` the controller of an object.
pub(crate) fn owner_ref<O: Kind>(owner: &O) -> OwnerRef {
    OwnerRef::controller_of(&O::RESOURCE.api_version(), &O::RESOURCE.kind, owner.meta())
}

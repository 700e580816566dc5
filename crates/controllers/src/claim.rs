//! Who belongs to whom: controllers that find their objects by labels and hold them by a reference.
//!
//! 1. An object has one controller: what another one holds is never touched.
//! 2. An orphan that matches is adopted, after a live look that the owner is still there and wants it; an object of ours that
//!    does not match any more is let go. Who is going away does neither.
//! 3. An event of an object concerns its controller; an event of an orphan concerns those whose selector matches it, found
//!    by an index and never by a walk through the namespace.
//! 4. An owner whose selector matches everything, or not even its own template, is left alone.
//!
//! Follows `controller_ref_manager.go` of Kubernetes 1.37.1. One implementation for pods of ReplicaSets and
//! ReplicationControllers, for ReplicaSets of Deployments, and for whoever comes.

use steersman_base::{Meta, OwnerRef, Selector, StringMap};
use steersman_model::Kind;

pub(crate) mod map;
mod sync;
#[cfg(test)]
mod tests;

pub(crate) use sync::claimed;

/// An object that takes others by their labels.
pub(crate) trait Selecting: Kind {
    /// The selector; `None` if it is invalid, which the API server would have to have let through.
    fn selector(&self) -> Option<Selector>;
}

/// What is to be done about an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// It is ours and stays ours.
    Keep,
    /// It is nobody's and matches: take it.
    Adopt,
    /// It is ours and does not match any more: let it go.
    Release,
    /// It is none of our business.
    Ignore,
}

/// Decides about one object, as upstream's `ClaimObject` does.
pub(crate) fn claim(owner: &Meta, selector: &Selector, object: &Meta) -> Claim {
    let matches = selector.matches(&object.labels);
    match object.controller() {
        Some(holder) if holder.uid != owner.uid => Claim::Ignore,
        Some(_) if matches => Claim::Keep,
        // Who is going away itself leaves its objects to the garbage collector.
        Some(_) if owner.is_terminating() => Claim::Ignore,
        Some(_) => Claim::Release,
        None if !matches || owner.is_terminating() || object.is_terminating() => Claim::Ignore,
        None if object.namespace != owner.namespace => Claim::Ignore,
        None => Claim::Adopt,
    }
}

/// The selector of an owner, if something can be made for it from a template with these labels. Else why not: what is made
/// would be let go at once and made again, for ever. The API server lets no such owner through.
pub(crate) fn usable(selector: Option<Selector>, template: &StringMap) -> Result<Selector, &'static str> {
    match selector {
        None => Err("its selector is invalid"),
        Some(selector) if selector.is_everything() => Err("its selector matches everything there is"),
        Some(selector) if !selector.matches(template) => Err("its selector does not match the labels of its template"),
        Some(selector) => Ok(selector),
    }
}

/// The reference that makes `owner` the controller of an object.
pub(crate) fn owner_ref<O: Kind>(owner: &O) -> OwnerRef {
    OwnerRef::controller_of(&O::RESOURCE.api_version(), &O::RESOURCE.kind, owner.meta())
}

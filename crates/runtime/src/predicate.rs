//! Which events a controller looks at: controller-runtime's predicates.
//!
//! A predicate sees metadata, so that one serves every kind that a controller watches. What it lets through still goes
//! to the handlers; what it does not costs no reconcile. What depends on the rest of an object is decided by
//! [`Watch::when`](crate::source::Watch::when).
//!
//! ```
//! use steersman_runtime::predicate::{Predicate, PredicateExt, generation_changed, labels_changed};
//! # use steersman_runtime::event::MetaEvent;
//! let interesting = generation_changed().or(labels_changed());
//! let not_ours = |event: &MetaEvent<'_>| event.object().namespace != "kube-system";
//! let both = interesting.and(not_ours);
//! # let meta = steersman_base::Meta::default();
//! # assert!(both.admits(&MetaEvent::Created { new: &meta, initial: false }));
//! # assert!(!both.admits(&MetaEvent::Updated { old: &meta, new: &meta }));
//! ```

use steersman_base::Meta;

use crate::event::MetaEvent;

/// Decides whether an event is let through.
pub trait Predicate: Send + Sync + 'static {
    /// Whether the event is let through.
    fn admits(&self, event: &MetaEvent<'_>) -> bool;
}

/// Predicates made of predicates.
pub trait PredicateExt: Predicate + Sized {
    /// Lets through what both let through.
    fn and<P: Predicate>(self, other: P) -> And<Self, P> {
        And(self, other)
    }

    /// Lets through what either lets through.
    fn or<P: Predicate>(self, other: P) -> Or<Self, P> {
        Or(self, other)
    }

    /// Lets through what this one does not.
    fn not(self) -> Not<Self> {
        Not(self)
    }
}

/// What both let through; see [`PredicateExt::and`].
#[derive(Clone, Copy, Debug)]
pub struct And<A, B>(A, B);

/// What either lets through; see [`PredicateExt::or`].
#[derive(Clone, Copy, Debug)]
pub struct Or<A, B>(A, B);

/// What the other does not let through; see [`PredicateExt::not`].
#[derive(Clone, Copy, Debug)]
pub struct Not<P>(P);

/// Lets an update through only if something of the metadata changed; everything else is let through.
#[derive(Clone, Copy, Debug)]
pub struct Changed(fn(&Meta, &Meta) -> bool);

/// Updates are let through if `metadata.generation` changed: changes of status alone are not.
#[must_use]
pub fn generation_changed() -> Changed {
    Changed(|old, new| old.generation != new.generation)
}

/// Updates are let through if the labels changed.
#[must_use]
pub fn labels_changed() -> Changed {
    Changed(|old, new| old.labels != new.labels)
}

/// Updates are let through if the annotations changed.
///
/// Views of built-in kinds may hold some annotations only: see the view's own documentation.
#[must_use]
pub fn annotations_changed() -> Changed {
    Changed(|old, new| old.annotations != new.annotations)
}

/// Updates are let through if the finalizers changed, or if the object began to terminate. A controller that looks at
/// generations alone combines the two (`generation_changed().or(finalizers_changed())`) to hear of finalizers of others.
#[must_use]
pub fn finalizers_changed() -> Changed {
    Changed(|old, new| old.finalizers() != new.finalizers() || old.is_terminating() != new.is_terminating())
}

/// Updates are let through if the resourceVersion changed: a resync is not.
#[must_use]
pub fn resource_version_changed() -> Changed {
    Changed(|old, new| old.resource_version != new.resource_version)
}

// === impl Predicate ===

impl<F: Fn(&MetaEvent<'_>) -> bool + Send + Sync + 'static> Predicate for F {
    fn admits(&self, event: &MetaEvent<'_>) -> bool {
        self(event)
    }
}

impl Predicate for Changed {
    fn admits(&self, event: &MetaEvent<'_>) -> bool {
        match event {
            MetaEvent::Updated { old, new } => (self.0)(old, new),
            MetaEvent::Created { .. } | MetaEvent::Deleted { .. } | MetaEvent::Generic { .. } => true,
        }
    }
}

impl<A: Predicate, B: Predicate> Predicate for And<A, B> {
    fn admits(&self, event: &MetaEvent<'_>) -> bool {
        self.0.admits(event) && self.1.admits(event)
    }
}

impl<A: Predicate, B: Predicate> Predicate for Or<A, B> {
    fn admits(&self, event: &MetaEvent<'_>) -> bool {
        self.0.admits(event) || self.1.admits(event)
    }
}

impl<P: Predicate> Predicate for Not<P> {
    fn admits(&self, event: &MetaEvent<'_>) -> bool {
        !self.0.admits(event)
    }
}

impl<P: Predicate> PredicateExt for P {}

impl MetaEvent<'_> {
    /// The object as it is now, or was last.
    #[must_use]
    pub fn object(&self) -> &Meta {
        match self {
            Self::Created { new: object, .. }
            | Self::Updated { new: object, .. }
            | Self::Deleted { last: object }
            | Self::Generic { object } => object,
        }
    }
}

#[cfg(test)]
mod tests;

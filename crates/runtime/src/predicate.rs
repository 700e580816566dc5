//! Predicates: which changes reach a controller's handlers, as in controller-runtime.
//!
//! A predicate sees metadata, so that one serves every kind. Changes that it does not admit reach no handler and cost
//! no reconcile. [`Builder::filter`](crate::controller::Builder::filter) filters main objects,
//! [`Watch::filter`](crate::source::Watch::filter) one source, and
//! [`Builder::filter_all`](crate::controller::Builder::filter_all) every watched kind. For conditions on the rest of an
//! object there is [`Watch::when`](crate::source::Watch::when). As with controller-runtime's raw sources, predicates do
//! not apply to objects that are sent through a [`channel`](crate::source::channel) or keys that a task enqueues.
//!
//! ```
//! use steersman_runtime::predicate::{Predicate, PredicateExt, generation_changed, labels_changed};
//! use steersman_informer::Change;
//! use steersman_model::HasMeta;
//!
//! let interesting = generation_changed().or(labels_changed());
//! let not_ours = |change: &Change<dyn HasMeta>| change.object().meta().namespace != "kube-system";
//! let both = interesting.and(not_ours);
//! # let meta = std::sync::Arc::new(steersman_base::Meta::default());
//! # assert!(both.admits(&Change::Added { new: meta.clone(), initial: false }));
//! # assert!(!both.admits(&Change::Updated { old: meta.clone(), new: meta }));
//! ```

use steersman_base::{Meta, Selector};
use steersman_informer::Change;
use steersman_model::HasMeta;

/// A condition on changes, of any kind of object.
pub trait Predicate: Send + Sync + 'static {
    /// Whether the change is passed on to the handlers.
    fn admits(&self, change: &Change<dyn HasMeta>) -> bool;
}

/// Combinations of predicates.
pub trait PredicateExt: Predicate + Sized {
    /// Returns a predicate that admits what both admit.
    fn and<P: Predicate>(self, other: P) -> And<Self, P> {
        And(self, other)
    }

    /// Returns a predicate that admits what either admits.
    fn or<P: Predicate>(self, other: P) -> Or<Self, P> {
        Or(self, other)
    }

    /// Returns a predicate that admits what this one does not.
    fn not(self) -> Not<Self> {
        Not(self)
    }
}

/// Admits what both admit; see [`PredicateExt::and`].
#[derive(Clone, Copy, Debug)]
pub struct And<A, B>(A, B);

/// Admits what either admits; see [`PredicateExt::or`].
#[derive(Clone, Copy, Debug)]
pub struct Or<A, B>(A, B);

/// Admits what the other does not; see [`PredicateExt::not`].
#[derive(Clone, Copy, Debug)]
pub struct Not<P>(P);

/// Admits updates in which a part of the metadata changed, and everything that is not an update.
#[derive(Clone, Copy, Debug)]
pub struct Changed(fn(&Meta, &Meta) -> bool);

/// Admits objects with certain labels; see [`labels_match`].
#[derive(Clone, Debug)]
pub struct LabelsMatch(Selector);

/// Returns a predicate that admits changes of the objects that a selector selects: `"app=web".parse()`. An update is admitted if
/// the object was selected before it or is after it, so that a controller notices what leaves its selection.
///
/// The cache holds the other objects, too; an informer with a [selection](steersman_informer::Selection) does not.
#[must_use]
pub fn labels_match(selector: Selector) -> LabelsMatch {
    LabelsMatch(selector)
}

/// Returns a predicate that admits updates if `metadata.generation` changed: not those of the status alone, and no resync.
#[must_use]
pub fn generation_changed() -> Changed {
    Changed(|old, new| old.generation != new.generation)
}

/// Returns a predicate that admits updates if the labels changed.
#[must_use]
pub fn labels_changed() -> Changed {
    Changed(|old, new| old.labels != new.labels)
}

/// Returns a predicate that admits updates if the annotations changed.
///
/// Views of built-in kinds may hold some annotations only: see the view's own documentation.
#[must_use]
pub fn annotations_changed() -> Changed {
    Changed(|old, new| old.annotations != new.annotations)
}

/// Returns a predicate that admits updates if the finalizers changed, or if the object began to terminate.
/// `generation_changed().or(finalizers_changed())` admits changes of the spec and of finalizers.
#[must_use]
pub fn finalizers_changed() -> Changed {
    Changed(|old, new| old.finalizers() != new.finalizers() || old.is_terminating() != new.is_terminating())
}

/// Returns a predicate that admits updates if the resourceVersion changed: not a resync.
#[must_use]
pub fn resource_version_changed() -> Changed {
    Changed(|old, new| old.resource_version != new.resource_version)
}

// === impl Predicate ===

impl<F: Fn(&Change<dyn HasMeta>) -> bool + Send + Sync + 'static> Predicate for F {
    fn admits(&self, change: &Change<dyn HasMeta>) -> bool {
        self(change)
    }
}

impl Predicate for Changed {
    fn admits(&self, change: &Change<dyn HasMeta>) -> bool {
        match change {
            Change::Updated { old, new } => (self.0)(old.meta(), new.meta()),
            Change::Added { .. } | Change::Deleted { .. } => true,
        }
    }
}

impl Predicate for LabelsMatch {
    fn admits(&self, change: &Change<dyn HasMeta>) -> bool {
        let is_selected = |object: &dyn HasMeta| self.0.matches(&object.meta().labels);
        is_selected(&**change.object()) || change.before().is_some_and(|before| is_selected(&**before))
    }
}

impl<A: Predicate, B: Predicate> Predicate for And<A, B> {
    fn admits(&self, change: &Change<dyn HasMeta>) -> bool {
        self.0.admits(change) && self.1.admits(change)
    }
}

impl<A: Predicate, B: Predicate> Predicate for Or<A, B> {
    fn admits(&self, change: &Change<dyn HasMeta>) -> bool {
        self.0.admits(change) || self.1.admits(change)
    }
}

impl<P: Predicate> Predicate for Not<P> {
    fn admits(&self, change: &Change<dyn HasMeta>) -> bool {
        !self.0.admits(change)
    }
}

impl<P: Predicate> PredicateExt for P {}

#[cfg(test)]
mod tests;

//! Handlers: functions that turn a [`Change`] into the keys to enqueue.
//!
//! A handler is any function of a change that returns something that becomes [`Keys`]: one key, an option, a vector, an
//! array, or `Keys` if some keys are to wait.
//!
//! | handler | keys | controller-runtime |
//! |---|---|---|
//! | [`object`] | the object itself | `EnqueueRequestForObject` |
//! | [`owner`] | its owners of a kind | `EnqueueRequestForOwner` |
//! | [`controller_owner`] | the owner that controls it, if of that kind | … with `OnlyControllerOwner` |
//! | [`mapped`] | what a function returns for the object before and after | `EnqueueRequestsFromMapFunc` |
//! | a closure with a `match` | depends on whether it was added, updated or deleted | `Funcs`, `EventHandler` |
//!
//! ```
//! use steersman_base::{Meta, ObjectKey};
//! use steersman_informer::Change;
//! use steersman_runtime::handler::{Handler, Keys};
//! # fn handler(handler: impl Handler<Meta>) {}
//! # let second = std::time::Duration::from_secs(1);
//! handler(|change| change.key());
//! handler(move |change| match change {
//!     Change::Deleted { last, .. } => Keys::after([last.key()], second),
//!     Change::Added { .. } | Change::Updated { .. } => Keys::default(),
//! });
//! ```

use std::time::Duration;

use steersman_base::{Meta, ObjectKey, OwnerRef, Resource, Scope};
use steersman_informer::Change;
use steersman_model::View;

/// A function from a change to the keys it concerns. Implemented for all functions of the right signature.
///
/// It must not block: it is called in the task of the informer, whose other subscribers wait for it. Slow work belongs into a
/// [`Reconciler`](crate::Reconciler).
pub trait Handler<V>: Fn(&Change<V>) -> Self::Found + Send + Sync + 'static {
    /// The return type of the function.
    type Found: Into<Keys>;
}

/// The keys that a change concerns.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    pub(crate) now: Vec<ObjectKey>,
    pub(crate) later: Vec<(ObjectKey, Duration)>,
}

/// Returns a handler for the key of the object itself.
#[must_use]
pub fn object<V: View>() -> impl Handler<V> {
    |change: &Change<V>| Keys::from(change.key())
}

/// Returns a handler for the object's owners of a kind, in any version. If the owners change, the old and the new ones.
#[must_use]
pub fn owner<V: View>(kind: Resource) -> impl Handler<V> {
    mapped(move |object: &V| owners_of(object.meta(), &kind, |_| true))
}

/// Returns a handler for the owner that controls the object, if it is of this kind.
#[must_use]
pub fn controller_owner<V: View>(kind: Resource) -> impl Handler<V> {
    mapped(move |object: &V| owners_of(object.meta(), &kind, |owner| owner.controller == Some(true)))
}

/// Returns a handler for the keys that a function returns, for the object as it was and as it is.
#[must_use]
pub fn mapped<V, F, I>(keys: F) -> impl Handler<V>
where
    V: View,
    F: Fn(&V) -> I + Send + Sync + 'static,
    I: IntoIterator<Item = ObjectKey> + 'static,
{
    move |change: &Change<V>| {
        let mut found = Keys::default();
        for object in change.before().into_iter().chain([change.object()]) {
            found.extend(keys(object));
        }
        found
    }
}

fn owners_of(object: &Meta, kind: &Resource, is_meant: impl Fn(&OwnerRef) -> bool) -> Vec<ObjectKey> {
    let is_of_kind = |owner: &&OwnerRef| owner.kind == *kind.kind && owner.group() == kind.group && is_meant(owner);
    let namespace = if kind.scope == Scope::Namespaced { &*object.namespace } else { "" };
    let owners = object.owner_references.iter().filter(is_of_kind);
    owners.map(|owner| ObjectKey::new(namespace, &owner.name)).collect()
}

// === impl Handler ===

impl<V, F, K> Handler<V> for F
where
    F: Fn(&Change<V>) -> K + Send + Sync + 'static,
    K: Into<Keys>,
{
    type Found = K;
}

// === impl Keys ===

impl Keys {
    /// Returns keys that are enqueued after a delay, so that what happens until then is reconciled with them; at once, if
    /// the delay is zero. A key that something else enqueues earlier is reconciled then, and not once more after the delay.
    #[must_use]
    pub fn after(keys: impl IntoIterator<Item = ObjectKey>, delay: Duration) -> Self {
        let mut delayed = Self::default();
        keys.into_iter().for_each(|key| delayed.add_after(key, delay));
        delayed
    }

    /// Adds a key that is enqueued at once.
    pub fn add(&mut self, key: ObjectKey) {
        if !self.now.contains(&key) {
            self.now.push(key);
        }
    }

    /// Adds a key that is enqueued after a delay; at once, if the delay is zero.
    pub fn add_after(&mut self, key: ObjectKey, delay: Duration) {
        if delay.is_zero() {
            self.add(key);
        } else {
            self.later.push((key, delay));
        }
    }

    /// Whether there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.now.is_empty() && self.later.is_empty()
    }

    /// Returns every key, those with a delay included.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &ObjectKey> {
        self.now.iter().chain(self.later.iter().map(|(key, _)| key))
    }
}

impl Extend<ObjectKey> for Keys {
    fn extend<I: IntoIterator<Item = ObjectKey>>(&mut self, keys: I) {
        for key in keys {
            self.add(key);
        }
    }
}

impl FromIterator<ObjectKey> for Keys {
    fn from_iter<I: IntoIterator<Item = ObjectKey>>(keys: I) -> Self {
        let mut found = Self::default();
        found.extend(keys);
        found
    }
}

impl From<ObjectKey> for Keys {
    fn from(key: ObjectKey) -> Self {
        Self { now: vec![key], later: Vec::new() }
    }
}

impl From<Option<ObjectKey>> for Keys {
    fn from(key: Option<ObjectKey>) -> Self {
        key.into_iter().collect()
    }
}

impl From<Vec<ObjectKey>> for Keys {
    fn from(keys: Vec<ObjectKey>) -> Self {
        keys.into_iter().collect()
    }
}

impl<const N: usize> From<[ObjectKey; N]> for Keys {
    fn from(keys: [ObjectKey; N]) -> Self {
        keys.into_iter().collect()
    }
}

#[cfg(test)]
mod tests;

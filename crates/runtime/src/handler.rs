//! Which keys an event puts into a controller's queue.
//!
//! | handler | keys | controller-runtime |
//! |---|---|---|
//! | [`object`] | the object itself | `EnqueueRequestForObject` |
//! | [`owner`] | its owners of a kind | `EnqueueRequestForOwner` |
//! | [`controller_owner`] | the owner that controls it, if of that kind | … with `OnlyControllerOwner` |
//! | [`mapped`] | what a function says, of the object before and after | `EnqueueRequestsFromMapFunc` |
//! | [`Handlers`] | a function each for create, update, delete, generic | `Funcs` |
//! | a closure `Fn(Event<V>, &mut Keys)` | anything | `EventHandler` |

use std::sync::Arc;
use std::time::Duration;

use steersman_base::{Meta, ObjectKey, Resource, Scope};
use steersman_model::View;

use crate::event::Event;

/// Turns an event into keys.
pub trait Handler<V: View>: Send + Sync + 'static {
    /// Adds the keys that the event concerns.
    fn handle(&self, event: Event<'_, V>, keys: &mut Keys);
}

/// The keys that an event concerns.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    pub(crate) now: Vec<ObjectKey>,
    pub(crate) later: Vec<(ObjectKey, Duration)>,
}

/// The object itself; see [`object`].
#[derive(Clone, Copy, Debug)]
pub struct ItsObject;

/// Owners of a kind; see [`owner`].
#[derive(Clone, Debug)]
pub struct ItsOwner {
    kind: Resource,
    controllers_only: bool,
}

/// What a function says; see [`mapped`].
#[derive(Clone, Copy, Debug)]
pub struct Mapped<F>(F);

type One<V> = Box<dyn Fn(&Arc<V>, &mut Keys) + Send + Sync>;
type Two<V> = Box<dyn Fn(&Arc<V>, &Arc<V>, &mut Keys) + Send + Sync>;

/// A function for each kind of event; what has none is left alone.
pub struct Handlers<V> {
    created: Option<One<V>>,
    updated: Option<Two<V>>,
    deleted: Option<One<V>>,
    generic: Option<One<V>>,
}

/// The key of the object itself.
#[must_use]
pub fn object() -> ItsObject {
    ItsObject
}

/// The keys of the object's owners of a kind, whatever their version. When owners change, the old and the new ones.
#[must_use]
pub fn owner(kind: Resource) -> ItsOwner {
    ItsOwner { kind, controllers_only: false }
}

/// The key of the owner that controls the object, if it is of this kind.
#[must_use]
pub fn controller_owner(kind: Resource) -> ItsOwner {
    ItsOwner { kind, controllers_only: true }
}

/// The keys that a function says; of the object as it was and as it is.
#[must_use]
pub fn mapped<V, F, I>(keys: F) -> Mapped<F>
where
    F: Fn(&V) -> I + Send + Sync + 'static,
    I: IntoIterator<Item = ObjectKey>,
{
    Mapped(keys)
}

// === impl Keys ===

impl Keys {
    /// This key is to be looked at.
    pub fn add(&mut self, key: ObjectKey) {
        if !self.now.contains(&key) {
            self.now.push(key);
        }
    }

    /// This key is to be looked at, in a while: what comes until then is looked at with it. At once, if it is zero.
    pub fn add_after(&mut self, key: ObjectKey, wait: Duration) {
        if wait.is_zero() {
            self.add(key);
        } else {
            self.later.push((key, wait));
        }
    }

    /// Whether nothing is to be looked at.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.now.is_empty() && self.later.is_empty()
    }
}

impl Extend<ObjectKey> for Keys {
    fn extend<I: IntoIterator<Item = ObjectKey>>(&mut self, keys: I) {
        for key in keys {
            self.add(key);
        }
    }
}

// === impl Handler ===

impl<V: View, F: Fn(Event<'_, V>, &mut Keys) + Send + Sync + 'static> Handler<V> for F {
    fn handle(&self, event: Event<'_, V>, keys: &mut Keys) {
        self(event, keys);
    }
}

impl<V: View> Handler<V> for ItsObject {
    fn handle(&self, event: Event<'_, V>, keys: &mut Keys) {
        keys.add(event.object().meta().key());
    }
}

impl<V: View> Handler<V> for ItsOwner {
    fn handle(&self, event: Event<'_, V>, keys: &mut Keys) {
        for object in event.before().into_iter().chain([event.object()]) {
            keys.extend(self.owners_of(object.meta()));
        }
    }
}

impl<V, F, I> Handler<V> for Mapped<F>
where
    V: View,
    F: Fn(&V) -> I + Send + Sync + 'static,
    I: IntoIterator<Item = ObjectKey>,
{
    fn handle(&self, event: Event<'_, V>, keys: &mut Keys) {
        for object in event.before().into_iter().chain([event.object()]) {
            keys.extend((self.0)(object));
        }
    }
}

impl<V: View> Handler<V> for Handlers<V> {
    fn handle(&self, event: Event<'_, V>, keys: &mut Keys) {
        match event {
            Event::Created { new, .. } => self.created.iter().for_each(|handle| handle(new, keys)),
            Event::Updated { old, new } => self.updated.iter().for_each(|handle| handle(old, new, keys)),
            Event::Deleted { last, .. } => self.deleted.iter().for_each(|handle| handle(last, keys)),
            Event::Generic { object } => self.generic.iter().for_each(|handle| handle(object, keys)),
        }
    }
}

// === impl ItsOwner ===

impl ItsOwner {
    fn owners_of<'a>(&'a self, object: &'a Meta) -> impl Iterator<Item = ObjectKey> + 'a {
        let ours = move |owner: &&steersman_base::OwnerRef| {
            owner.kind == *self.kind.kind
                && owner.group() == self.kind.group
                && (!self.controllers_only || owner.controller == Some(true))
        };
        let namespace = if self.kind.scope == Scope::Namespaced { &*object.namespace } else { "" };
        object.owner_references.iter().filter(ours).map(move |owner| ObjectKey::new(namespace, &owner.name))
    }
}

// === impl Handlers ===

impl<V> Default for Handlers<V> {
    fn default() -> Self {
        Self { created: None, updated: None, deleted: None, generic: None }
    }
}

impl<V> Handlers<V> {
    /// What is done when an object is first seen.
    #[must_use]
    pub fn created(mut self, handle: impl Fn(&Arc<V>, &mut Keys) + Send + Sync + 'static) -> Self {
        self.created = Some(Box::new(handle));
        self
    }

    /// What is done when an object changes: old, new.
    #[must_use]
    pub fn updated(mut self, handle: impl Fn(&Arc<V>, &Arc<V>, &mut Keys) + Send + Sync + 'static) -> Self {
        self.updated = Some(Box::new(handle));
        self
    }

    /// What is done when an object is gone.
    #[must_use]
    pub fn deleted(mut self, handle: impl Fn(&Arc<V>, &mut Keys) + Send + Sync + 'static) -> Self {
        self.deleted = Some(Box::new(handle));
        self
    }

    /// What is done when something outside of the cluster concerns an object.
    #[must_use]
    pub fn generic(mut self, handle: impl Fn(&Arc<V>, &mut Keys) + Send + Sync + 'static) -> Self {
        self.generic = Some(Box::new(handle));
        self
    }
}

impl<V> std::fmt::Debug for Handlers<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handlers").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

//! Pure: which owners a change of an object concerns, and how owners and objects are indexed.

use std::sync::Arc;

use steersman_base::{Istr, Meta, ObjectKey, Uid};
use steersman_informer::{Change, Index, Lister, SharedInformer};
use steersman_model::View;

use super::Selecting;

/// The owners of kind `O`, for the handlers of their objects' events.
pub(crate) struct Owners<O> {
    lister: Lister<O>,
    by_selector: Index<SelectorKey, O>,
}

/// The key of an owner in the index by selector: one label that the selector requires, so that an orphan needs one
/// lookup per label and no iteration over the namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum SelectorKey {
    Label {
        namespace: Istr,
        key: Istr,
        value: Istr,
    },
    /// For a selector that requires no label with a single value: found by every orphan of its namespace.
    Any {
        namespace: Istr,
    },
}

// === impl Owners ===

impl<O: Selecting> Owners<O> {
    /// Returns the owners of an informer.
    pub(crate) fn new(informer: &SharedInformer<O>) -> Self {
        Self { lister: informer.lister(), by_selector: informer.shared_index(selector_key::<O>) }
    }

    /// Returns the owners that a change of an object concerns.
    pub(crate) fn of<V: View>(&self, change: &Change<V>) -> Vec<ObjectKey> {
        let uid_of = |key: &ObjectKey| self.lister.get(key).map(|owner| owner.meta().uid.clone());
        owners_of(change, uid_of, |key| self.by_selector.get(key))
    }
}

/// Returns the index key of an owner, by selector.
pub(crate) fn selector_key<O: Selecting>(owner: &O) -> Option<SelectorKey> {
    let namespace = owner.meta().namespace.clone();
    let selector = owner.selector()?;
    if selector.is_nothing() || selector.is_everything() {
        return None;
    }
    let label = selector.exact_matches().next();
    Some(match label {
        Some((key, value)) => SelectorKey::Label { namespace, key: key.clone(), value: value.clone() },
        None => SelectorKey::Any { namespace },
    })
}

/// Returns the keys under which the owners are found that may select this orphan.
fn wanted_under(orphan: &Meta) -> impl Iterator<Item = SelectorKey> {
    let namespace = &orphan.namespace;
    let labels = orphan.labels.iter().map(|(key, value)| SelectorKey::Label {
        namespace: namespace.clone(),
        key: key.clone(),
        value: value.clone(),
    });
    labels.chain([SelectorKey::Any { namespace: namespace.clone() }])
}

/// Returns the owner of kind `O` that a reference names, if its uid is that of the current object of the name.
pub(crate) fn controller_of<O: Selecting>(
    object: &Meta,
    uid_of: impl Fn(&ObjectKey) -> Option<Uid>,
) -> Option<ObjectKey> {
    let of_kind =
        |owner: &&steersman_base::OwnerRef| owner.kind == *O::RESOURCE.kind && owner.group() == O::RESOURCE.group;
    let owner = object.controller().filter(of_kind)?;
    let key = ObjectKey { namespace: object.namespace.clone(), name: owner.name.clone() };
    (uid_of(&key).as_ref() == Some(&owner.uid)).then_some(key)
}

/// Returns the owners of kind `O` that a change of an object concerns.
///
/// `uid_of` returns the uid of the current owner of a name; `owners_under` finds owners by selector.
pub(crate) fn owners_of<O: Selecting, V: View>(
    change: &Change<V>,
    uid_of: impl Fn(&ObjectKey) -> Option<Uid>,
    owners_under: impl Fn(&SelectorKey) -> Vec<Arc<O>>,
) -> Vec<ObjectKey> {
    let controller = |object: &Meta| controller_of::<O>(object, &uid_of);
    let takers = |orphan: &Meta| -> Vec<ObjectKey> {
        let owners = wanted_under(orphan).flat_map(|key| owners_under(&key));
        owners
            .filter(|owner| owner.selector().is_some_and(|selector| selector.matches(&orphan.labels)))
            .map(|owner| owner.meta().key())
            .collect()
    };
    match change {
        Change::Added { new, .. } if new.meta().controller().is_some() => controller(new.meta()).into_iter().collect(),
        Change::Added { new, .. } if new.meta().is_terminating() => Vec::new(),
        Change::Added { new, .. } => takers(new.meta()),
        Change::Updated { old, new } => {
            let old = old.meta();
            let new = new.meta();
            if old.resource_version == new.resource_version {
                return Vec::new();
            }
            let before = (old.controller() != new.controller()).then(|| controller(old)).flatten();
            let now = controller(new);
            // An orphan concerns the owners that may select it, and only when its labels or owners changed.
            let orphan_changed = new.controller().is_none()
                && !new.is_terminating()
                && (old.labels != new.labels || old.controller().is_some());
            let takers = if orphan_changed { takers(new) } else { Vec::new() };
            before.into_iter().chain(now).chain(takers).collect()
        }
        // The deletion of an orphan concerns no owner.
        Change::Deleted { last, .. } => controller(last.meta()).into_iter().collect(),
    }
}

//! Pure: which ReplicaSets a pod's event concerns, and how both are indexed.

use std::sync::Arc;

use steersman_base::{Istr, Meta, ObjectKey, Selector, Uid};
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::apps::ReplicaSetView;
use steersman_model::core::PodView;

/// Under what a pod is found: its controller, or the namespace it is an orphan of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum OwnerKey {
    Controller(Uid),
    OrphanIn(Istr),
}

/// Under what a ReplicaSet is found by the labels of an orphan: one label it insists on, so that an orphan asks once per
/// label and nobody walks the namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum SelectorKey {
    Label {
        namespace: Istr,
        key: Istr,
        value: Istr,
    },
    /// A selector that insists on no label with one value: found by every orphan of its namespace.
    Any {
        namespace: Istr,
    },
}

/// The index key of a pod.
pub(super) fn owner_key(pod: &PodView) -> Option<OwnerKey> {
    Some(owner_key_of(pod.meta()))
}

fn owner_key_of(pod: &Meta) -> OwnerKey {
    match pod.controller() {
        Some(owner) => OwnerKey::Controller(owner.uid.clone()),
        None => OwnerKey::OrphanIn(pod.namespace.clone()),
    }
}

/// The index key of a ReplicaSet, by selector.
pub(super) fn selector_keys(set: &ReplicaSetView) -> Option<SelectorKey> {
    let namespace = set.meta().namespace.clone();
    let selector = selector(set)?;
    let label = selector.exact_matches().next();
    Some(match label {
        Some((key, value)) => SelectorKey::Label { namespace, key: key.clone(), value: value.clone() },
        None => SelectorKey::Any { namespace },
    })
}

/// The selector of a ReplicaSet; `None` if it is invalid, which the API server would have to have let through.
pub(super) fn selector(set: &ReplicaSetView) -> Option<Selector> {
    Selector::from_declared(set.spec.selector.as_ref()).ok()
}

/// The keys under which ReplicaSets that may want this orphan are found.
fn wanted_under(pod: &Meta) -> impl Iterator<Item = SelectorKey> {
    let namespace = &pod.namespace;
    let labels = pod.labels.iter().map(|(key, value)| SelectorKey::Label {
        namespace: namespace.clone(),
        key: key.clone(),
        value: value.clone(),
    });
    labels.chain([SelectorKey::Any { namespace: namespace.clone() }])
}

/// The ReplicaSets that a change of a pod concerns.
///
/// `uid_of` tells which ReplicaSet has a name now; `sets_under` finds ReplicaSets by selector.
pub(super) fn replica_sets_of(
    change: &Change<PodView>,
    uid_of: impl Fn(&ObjectKey) -> Option<Uid>,
    sets_under: impl Fn(&SelectorKey) -> Vec<Arc<ReplicaSetView>>,
) -> Vec<ObjectKey> {
    let controller = |pod: &Meta| {
        let owner = pod.controller().filter(|owner| owner.kind == "ReplicaSet" && owner.group() == "apps")?;
        let key = ObjectKey { namespace: pod.namespace.clone(), name: owner.name.clone() };
        (uid_of(&key).as_ref() == Some(&owner.uid)).then_some(key)
    };
    let takers = |pod: &Meta| -> Vec<ObjectKey> {
        let sets = wanted_under(pod).flat_map(|key| sets_under(&key));
        sets.filter(|set| selector(set).is_some_and(|selector| selector.matches(&pod.labels)))
            .map(|set| set.meta().key())
            .collect()
    };
    match change {
        Change::Added { new, .. } if new.meta().controller().is_some() => controller(new.meta()).into_iter().collect(),
        Change::Added { new, .. } if new.meta().is_terminating() => Vec::new(),
        Change::Added { new, .. } => takers(new.meta()),
        Change::Updated { old, new } => {
            let (old, new) = (old.meta(), new.meta());
            if old.resource_version == new.resource_version {
                return Vec::new();
            }
            let before = (old.controller() != new.controller()).then(|| controller(old)).flatten();
            let now = controller(new);
            // An orphan concerns those who may want it, and only when something about that changed.
            let orphan_changed = new.controller().is_none()
                && !new.is_terminating()
                && (old.labels != new.labels || old.controller().is_some());
            let takers = if orphan_changed { takers(new) } else { Vec::new() };
            before.into_iter().chain(now).chain(takers).collect()
        }
        // Nobody misses an orphan.
        Change::Deleted { last, .. } => controller(last.meta()).into_iter().collect(),
    }
}

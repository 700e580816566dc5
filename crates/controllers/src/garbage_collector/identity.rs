//! The identity of an object: kind, namespace, name and uid.

use std::fmt;

use steersman_base::{Istr, Meta, OwnerRef, Resource, Uid};

/// The kind of an object, as owner references name it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Kind {
    pub(crate) api_version: Istr,
    pub(crate) kind: Istr,
}

/// The identity of an object. For an owner that is only referred to, it is taken from a reference.
///
/// Two identities with one uid that differ otherwise contradict each other: at most one is right. The order is that in
/// which alternatives are tried, kinds first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Identity {
    pub(crate) kind: Istr,
    pub(crate) api_version: Istr,
    /// Empty for cluster-scoped objects.
    pub(crate) namespace: Istr,
    pub(crate) name: Istr,
    pub(crate) uid: Uid,
}

// === impl Kind ===

impl Kind {
    pub(crate) fn of(resource: &Resource) -> Self {
        Self { api_version: Istr::interned(&resource.api_version()), kind: Istr::interned(&resource.kind) }
    }
}

// === impl Identity ===

impl Identity {
    /// Returns the identity of an observed object of this kind.
    pub(crate) fn observed(kind: &Kind, meta: &Meta) -> Self {
        Self {
            kind: kind.kind.clone(),
            api_version: kind.api_version.clone(),
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
            uid: meta.uid.clone(),
        }
    }

    /// Returns the owner that a reference of an object in `namespace` names: in the same namespace, or in none.
    pub(crate) fn referred_to(reference: &OwnerRef, namespace: &Istr) -> Self {
        Self {
            kind: reference.kind.clone(),
            api_version: reference.api_version.clone(),
            namespace: namespace.clone(),
            name: reference.name.clone(),
            uid: reference.uid.clone(),
        }
    }

    /// Returns the identity as a cluster-scoped one.
    pub(crate) fn cluster_wide(self) -> Self {
        Self { namespace: Istr::default(), ..self }
    }

    /// Whether a reference names this object, in any namespace.
    pub(crate) fn is_meant_by(&self, reference: &OwnerRef) -> bool {
        self.uid == reference.uid
            && self.name == reference.name
            && self.kind == reference.kind
            && self.api_version == reference.api_version
    }

    /// Returns the API group; empty for the core group.
    pub(crate) fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// Returns the version within the group.
    pub(crate) fn version(&self) -> &str {
        self.api_version.split_once('/').map_or(&self.api_version, |(_, version)| version)
    }
}

/// Formats the identity as upstream prints references in events.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, api_version, namespace, name, uid } = self;
        write!(f, "[{api_version}/{kind}, namespace: {namespace}, name: {name}, uid: {uid}]")
    }
}

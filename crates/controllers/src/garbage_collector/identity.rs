//! Who an object is: kind, place, name and uid.

use std::fmt;

use steersman_base::{Istr, Meta, OwnerRef, Resource, Uid};

/// The kind of objects, as owner references name it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Kind {
    pub(crate) api_version: Istr,
    pub(crate) kind: Istr,
}

/// Who an object is. For an owner that is only referred to, this is what a reference says.
///
/// Two of one uid that differ elsewhere disagree: at most one of them is true. The order is that in which alternatives are
/// tried, kinds first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Identity {
    pub(crate) kind: Istr,
    pub(crate) api_version: Istr,
    /// Empty for cluster-wide objects.
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
    /// An object of this kind, as it was observed.
    pub(crate) fn observed(kind: &Kind, meta: &Meta) -> Self {
        Self {
            kind: kind.kind.clone(),
            api_version: kind.api_version.clone(),
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
            uid: meta.uid.clone(),
        }
    }

    /// The owner that a reference of an object in `namespace` means: it is in the same one, or in none.
    pub(crate) fn referred_to(reference: &OwnerRef, namespace: &Istr) -> Self {
        Self {
            kind: reference.kind.clone(),
            api_version: reference.api_version.clone(),
            namespace: namespace.clone(),
            name: reference.name.clone(),
            uid: reference.uid.clone(),
        }
    }

    /// The same, taken as cluster-wide.
    pub(crate) fn cluster_wide(self) -> Self {
        Self { namespace: Istr::default(), ..self }
    }

    /// Whether a reference means this object, wherever it is.
    pub(crate) fn is_meant_by(&self, reference: &OwnerRef) -> bool {
        self.uid == reference.uid
            && self.name == reference.name
            && self.kind == reference.kind
            && self.api_version == reference.api_version
    }

    /// The API group; empty for the core group.
    pub(crate) fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The version within the group.
    pub(crate) fn version(&self) -> &str {
        self.api_version.split_once('/').map_or(&self.api_version, |(_, version)| version)
    }
}

/// As upstream prints references in events.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, api_version, namespace, name, uid } = self;
        write!(f, "[{api_version}/{kind}, namespace: {namespace}, name: {name}, uid: {uid}]")
    }
}

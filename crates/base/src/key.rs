//! Which object, and which API it belongs to.

use std::borrow::Cow;
use std::fmt;

use crate::Istr;

/// Namespace and name of an object within its resource. Cluster-wide objects have an empty namespace.
///
/// Both parts are shared strings, so a clone copies two pointers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// The namespace; empty for cluster-wide objects.
    pub namespace: Istr,
    /// The name.
    pub name: Istr,
}

/// Whether a resource's objects live in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// Objects live in a namespace.
    Namespaced,
    /// Objects belong to the whole cluster.
    Cluster,
}

/// One resource of the API: group, version, plural name, kind and scope. It knows its paths.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Resource {
    /// API group; empty for the core group.
    pub group: Cow<'static, str>,
    /// Version within the group.
    pub version: Cow<'static, str>,
    /// Plural, lower-case name, as in paths.
    pub plural: Cow<'static, str>,
    /// Kind of its objects.
    pub kind: Cow<'static, str>,
    /// Whether its objects live in namespaces.
    pub scope: Scope,
}

// === impl ObjectKey ===

impl ObjectKey {
    /// The key of an object in a namespace. The namespace is interned, the name is kept as given.
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: Istr::interned(namespace), name: Istr::new(name) }
    }

    /// The key of a cluster-wide object.
    #[must_use]
    pub fn cluster(name: &str) -> Self {
        Self::new("", name)
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            return f.write_str(&self.name);
        }
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

// === impl Resource ===

impl Resource {
    /// A namespaced resource whose names are known at compile time.
    #[must_use]
    pub const fn namespaced(
        group: &'static str,
        version: &'static str,
        plural: &'static str,
        kind: &'static str,
    ) -> Self {
        Self::known(group, version, plural, kind, Scope::Namespaced)
    }

    /// A cluster-wide resource whose names are known at compile time.
    #[must_use]
    pub const fn cluster(group: &'static str, version: &'static str, plural: &'static str, kind: &'static str) -> Self {
        Self::known(group, version, plural, kind, Scope::Cluster)
    }

    const fn known(
        group: &'static str,
        version: &'static str,
        plural: &'static str,
        kind: &'static str,
        scope: Scope,
    ) -> Self {
        Self {
            group: Cow::Borrowed(group),
            version: Cow::Borrowed(version),
            plural: Cow::Borrowed(plural),
            kind: Cow::Borrowed(kind),
            scope,
        }
    }

    /// `group/version`, or just the version for the core group.
    #[must_use]
    pub fn api_version(&self) -> Cow<'_, str> {
        if self.group.is_empty() {
            return Cow::Borrowed(&self.version);
        }
        Cow::Owned(format!("{}/{}", self.group, self.version))
    }

    /// `plural.group`, as upstream prints resources in metrics, logs and errors; just the plural for the core group.
    #[must_use]
    pub fn group_resource(&self) -> Cow<'_, str> {
        if self.group.is_empty() {
            return Cow::Borrowed(&self.plural);
        }
        Cow::Owned(format!("{}.{}", self.plural, self.group))
    }

    /// The path of the collection: in one namespace, or over all of them.
    #[must_use]
    pub fn collection_path(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() {
            format!("/api/{}", self.version)
        } else {
            format!("/apis/{}/{}", self.group, self.version)
        };
        match namespace.filter(|namespace| !namespace.is_empty()) {
            Some(namespace) => format!("{root}/namespaces/{namespace}/{}", self.plural),
            None => format!("{root}/{}", self.plural),
        }
    }

    /// The path of one object.
    #[must_use]
    pub fn object_path(&self, key: &ObjectKey) -> String {
        format!("{}/{}", self.collection_path(Some(&key.namespace)), key.name)
    }

    /// The path of a subresource of one object, such as `status`.
    #[must_use]
    pub fn subresource_path(&self, key: &ObjectKey, subresource: &str) -> String {
        format!("{}/{subresource}", self.object_path(key))
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.group_resource())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_knows_its_paths() {
        let pods = Resource::namespaced("", "v1", "pods", "Pod");
        let sets = Resource::namespaced("apps", "v1", "replicasets", "ReplicaSet");
        let nodes = Resource::cluster("", "v1", "nodes", "Node");
        let web = ObjectKey::new("default", "web");
        assert_eq!(pods.collection_path(None), "/api/v1/pods");
        assert_eq!(pods.object_path(&web), "/api/v1/namespaces/default/pods/web");
        assert_eq!(sets.subresource_path(&web, "status"), "/apis/apps/v1/namespaces/default/replicasets/web/status");
        assert_eq!(nodes.object_path(&ObjectKey::cluster("n1")), "/api/v1/nodes/n1");
        assert_eq!(sets.to_string(), "replicasets.apps");
        assert_eq!(sets.api_version(), "apps/v1");
        assert_eq!(pods.api_version(), "v1");
    }
}

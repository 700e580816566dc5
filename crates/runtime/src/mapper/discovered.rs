//! Pure: the resources of a server, and how they are looked up.

use std::sync::Arc;

use steersman_base::{Resource, Scope};

/// The resources of a server: groups in its order, the core group first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Discovered {
    /// Shared by answers that say the same.
    pub(super) groups: Arc<Vec<ApiGroup>>,
    pub(super) failures: Vec<Failure>,
}

/// A group of APIs.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ApiGroup {
    /// The name; empty for the core group.
    pub name: String,
    /// The versions, the preferred one first.
    pub versions: Vec<ApiVersion>,
}

/// A version of a group.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ApiVersion {
    /// The name.
    pub name: String,
    /// The resources, in the server's order.
    pub resources: Vec<ApiResource>,
}

/// A resource and its verbs.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ApiResource {
    /// The names, kind and scope.
    pub resource: Resource,
    /// The singular name.
    pub singular: String,
    /// Short names, such as `po`.
    pub short_names: Vec<String>,
    /// The categories, such as `all`.
    pub categories: Vec<String>,
    /// The verbs.
    pub verbs: Vec<String>,
    /// The subresources.
    pub subresources: Vec<ApiSubresource>,
    /// Whether this is an older answer, because the server could not be asked now.
    pub is_stale: bool,
}

/// A subresource, such as `status`.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ApiSubresource {
    /// The name.
    pub name: String,
    /// Group, version and kind of the body, where it is not the object itself: empty parts are the resource's own.
    pub kind: (String, String, String),
    /// The verbs.
    pub verbs: Vec<String>,
}

/// A failed request of discovery.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// `group/version`, or the path of a root.
    pub what: String,
    /// The problem.
    pub why: String,
}

impl Failure {
    /// A failed request, and its problem.
    #[doc(hidden)]
    #[must_use]
    pub fn new(what: &str, why: &str) -> Self {
        Self { what: what.to_owned(), why: why.to_owned() }
    }
}

/// The path of the core group, which names it among the failures.
pub(super) const CORE: &str = "/api";
/// The path of all other groups.
pub(super) const GROUPS: &str = "/apis";

// === impl Discovered ===

impl Discovered {
    /// Returns the groups, in the server's order.
    #[must_use]
    pub fn groups(&self) -> &[ApiGroup] {
        &self.groups
    }

    /// Returns the failed requests.
    #[must_use]
    pub fn failures(&self) -> &[Failure] {
        &self.failures
    }

    /// Returns which root, `/api` or `/apis`, could not be asked, and why: then groups may be missing that were never seen.
    pub(super) fn missing_root(&self) -> Option<(&'static str, &str)> {
        let is_root = |failure: &&Failure| [CORE, GROUPS].contains(&failure.what.as_str());
        let failure = self.failures.iter().find(is_root)?;
        Some((if failure.what == CORE { CORE } else { GROUPS }, &failure.why))
    }

    /// Whether the core group is known.
    pub(super) fn has_core(&self) -> bool {
        self.groups.iter().any(|group| group.name.is_empty())
    }

    /// Returns every resource in every version, the preferred version first.
    pub fn resources(&self) -> impl Iterator<Item = &ApiResource> {
        self.groups.iter().flat_map(|group| &group.versions).flat_map(|version| &version.resources)
    }

    /// Returns every resource once, in the preferred version that has it.
    pub fn preferred(&self) -> impl Iterator<Item = &ApiResource> {
        self.groups.iter().flat_map(|group| {
            let all = group.versions.iter().enumerate();
            all.flat_map(|(at, version)| {
                let before = &group.versions[..at];
                let is_new = move |resource: &&ApiResource| !before.iter().any(|earlier| earlier.has(resource));
                version.resources.iter().filter(is_new)
            })
        })
    }

    /// Returns every resource once, in the preferred version that has it *and* supports all of `verbs`: what the
    /// garbage collector (`delete`, `list`, `watch`) and the namespace controller (`delete`) work on.
    pub fn supporting(&self, verbs: &[&str]) -> Vec<&ApiResource> {
        self.preferred().filter(|resource| resource.supports(verbs)).collect()
    }

    /// Returns the resource of a kind; of the preferred version that has it, if no version is given.
    #[must_use]
    pub fn kind(&self, group: &str, version: Option<&str>, kind: &str) -> Option<&ApiResource> {
        let is = |found: &&ApiResource| {
            let resource = &found.resource;
            resource.group == group
                && version.is_none_or(|version| resource.version == version)
                && resource.kind == kind
        };
        self.resources().find(is)
    }

    /// Returns a resource by its plural name; of the preferred version that has it, if no version is given.
    #[must_use]
    pub fn resource(&self, group: &str, version: Option<&str>, plural: &str) -> Option<&ApiResource> {
        let is = |found: &&ApiResource| {
            let resource = &found.resource;
            resource.group == group
                && version.is_none_or(|version| resource.version == version)
                && resource.plural == plural
        };
        self.resources().find(is)
    }

    /// Returns the resource of a name, with kubectl's syntax: `pods`, `pod`, `po`, `deployments.apps`,
    /// `deployments.v1.apps`. If several match, the first in the server's order; a full name goes before a short one.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&ApiResource> {
        let name = name.to_lowercase();
        let (name, rest) = name.split_once('.').map_or((&*name, None), |(name, rest)| (name, Some(rest)));
        let fits = |found: &ApiResource| match rest {
            None => true,
            Some(rest) => {
                let Resource { group, version, .. } = &found.resource;
                *group == rest || rest.strip_prefix(&**version).and_then(|rest| rest.strip_prefix('.')) == Some(group)
            }
        };
        let long = self.resources().find(|found| fits(found) && found.is_called(name));
        long.or_else(|| {
            self.resources().find(|found| fits(found) && found.short_names.iter().any(|short| short == name))
        })
    }

    /// Adds the earlier resources of groups that could not be discovered now.
    pub(super) fn keeping(mut self, before: &Self) -> Self {
        let failed: Vec<String> = self.failures.iter().map(|failure| failure.what.clone()).collect();
        for group in before.groups.iter() {
            let root = if group.name.is_empty() { CORE } else { GROUPS };
            for version in &group.versions {
                let name = group_version(&group.name, &version.name);
                if failed.iter().any(|failed| *failed == name || failed == root) {
                    self.keep(&group.name, version);
                }
            }
        }
        // The core group stays first.
        Arc::make_mut(&mut self.groups).sort_by_key(|group| !group.name.is_empty());
        self
    }

    fn keep(&mut self, group: &str, version: &ApiVersion) {
        let groups = Arc::make_mut(&mut self.groups);
        let at = groups.iter().position(|held| held.name == group).unwrap_or_else(|| {
            groups.push(ApiGroup { name: group.to_owned(), versions: Vec::new() });
            groups.len() - 1
        });
        let versions = &mut groups[at].versions;
        if versions.iter().any(|held| held.name == version.name) {
            return;
        }
        let mut stale = version.clone();
        stale.resources.iter_mut().for_each(|resource| resource.is_stale = true);
        versions.push(stale);
    }
}

/// Returns `group/version`, or the version alone for the core group.
pub(super) fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

// === impl ApiVersion ===

impl ApiVersion {
    fn has(&self, other: &ApiResource) -> bool {
        self.resources.iter().any(|held| held.resource.plural == other.resource.plural)
    }
}

// === impl ApiResource ===

impl ApiResource {
    /// Whether all of these verbs are supported.
    #[must_use]
    pub fn supports(&self, verbs: &[&str]) -> bool {
        verbs.iter().all(|verb| self.verbs.iter().any(|held| held == verb))
    }

    /// Whether the objects are in namespaces.
    #[must_use]
    pub fn is_namespaced(&self) -> bool {
        self.resource.scope == Scope::Namespaced
    }

    /// Returns a subresource.
    #[must_use]
    pub fn subresource(&self, name: &str) -> Option<&ApiSubresource> {
        self.subresources.iter().find(|held| held.name == name)
    }

    fn is_called(&self, name: &str) -> bool {
        let Resource { plural, kind, .. } = &self.resource;
        *plural == name || self.singular == name || kind.to_lowercase() == name
    }
}

#[cfg(test)]
mod tests;

//! Pure: discovery documents, aggregated and unaggregated.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use steersman_base::{Resource, Scope};

use super::discovered::{ApiGroup, ApiResource, ApiSubresource, ApiVersion, Discovered, Failure, group_version};

/// `APIGroupDiscoveryList` of `apidiscovery.k8s.io`, v2 or v2beta1.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Aggregated {
    items: Vec<AggregatedGroup>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AggregatedGroup {
    metadata: Named,
    versions: Vec<AggregatedVersion>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Named {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AggregatedVersion {
    version: String,
    freshness: String,
    resources: Option<Vec<AggregatedResource>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AggregatedResource {
    resource: String,
    response_kind: Option<KindOf>,
    scope: String,
    singular_resource: String,
    verbs: Option<Vec<String>>,
    short_names: Option<Vec<String>>,
    categories: Option<Vec<String>>,
    subresources: Option<Vec<AggregatedSubresource>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AggregatedSubresource {
    subresource: String,
    response_kind: Option<KindOf>,
    verbs: Option<Vec<String>>,
}

#[derive(Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct KindOf {
    group: String,
    version: String,
    kind: String,
}

/// `APIVersions`: the unaggregated document of `/api`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct CoreVersions {
    pub(super) versions: Vec<String>,
}

/// `APIGroupList`: the unaggregated document of `/apis`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct GroupList {
    groups: Option<Vec<ListedGroup>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ListedGroup {
    name: String,
    versions: Vec<ListedVersion>,
    preferred_version: ListedVersion,
}

#[derive(Default, PartialEq, Deserialize)]
#[serde(default)]
struct ListedVersion {
    version: String,
}

/// `APIResourceList`: the unaggregated document of one version of one group.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ResourceList {
    resources: Option<Vec<ListedResource>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ListedResource {
    name: String,
    singular_name: String,
    namespaced: bool,
    kind: String,
    group: String,
    version: String,
    verbs: Option<Vec<String>>,
    short_names: Option<Vec<String>>,
    categories: Option<Vec<String>>,
}

// === impl Aggregated ===

impl Aggregated {
    /// Reads the document. A version that the server marks as stale counts as a failure, as in upstream's clients.
    pub(super) fn read(self) -> Discovered {
        let mut read = Discovered::default();
        for group in self.items {
            let name = group.metadata.name;
            let mut versions = Vec::new();
            for version in group.versions {
                let what = group_version(&name, &version.version);
                if version.freshness == "Stale" {
                    let why = format!("stale GroupVersion discovery: {what}");
                    read.failures.push(Failure { what, why });
                    continue;
                }
                let resources = version.resources.unwrap_or_default();
                let resources = resources.into_iter().filter_map(|resource| resource.read(&name, &version.version));
                versions.push(ApiVersion { resources: resources.collect(), name: version.version });
            }
            if !versions.is_empty() {
                Arc::make_mut(&mut read.groups).push(ApiGroup { name, versions });
            }
        }
        read
    }
}

// === impl AggregatedResource ===

impl AggregatedResource {
    /// A resource without a kind of its own exists only for its subresources, and cannot be used.
    fn read(self, group: &str, version: &str) -> Option<ApiResource> {
        let kind = self.response_kind.filter(|kind| *kind != KindOf::default())?.kind;
        let singular = singular(self.singular_resource, &kind);
        let subresources = self.subresources.unwrap_or_default().into_iter().filter_map(|part| {
            let KindOf { group, version, kind } = part.response_kind.filter(|kind| *kind != KindOf::default())?;
            let verbs = part.verbs.unwrap_or_default();
            Some(ApiSubresource { name: part.subresource, kind: (group, version, kind), verbs })
        });
        Some(ApiResource {
            resource: resource(group, version, self.resource, kind, self.scope == "Namespaced"),
            singular,
            short_names: self.short_names.unwrap_or_default(),
            categories: self.categories.unwrap_or_default(),
            verbs: self.verbs.unwrap_or_default(),
            subresources: subresources.collect(),
            is_stale: false,
        })
    }
}

// === impl GroupList ===

impl GroupList {
    /// Returns the groups and their versions, the preferred one first.
    pub(super) fn read(self) -> Vec<(String, Vec<String>)> {
        let groups = self.groups.unwrap_or_default().into_iter().map(|mut group| {
            group.versions.sort_by_key(|version| *version != group.preferred_version);
            (group.name, group.versions.into_iter().map(|version| version.version).collect())
        });
        groups.collect()
    }
}

// === impl ResourceList ===

impl ResourceList {
    pub(super) fn read(self, group: &str, version: &str) -> ApiVersion {
        let listed = self.resources.unwrap_or_default();
        let (parts, wholes): (Vec<_>, Vec<_>) = listed.into_iter().partition(|listed| listed.name.contains('/'));
        let read = |whole: ListedResource| {
            let subresources = parts.iter().filter_map(|part| {
                let (_, name) = part.name.split_once('/').filter(|(parent, _)| *parent == whole.name)?;
                let kind = (part.group.clone(), part.version.clone(), part.kind.clone());
                Some(ApiSubresource { name: name.to_owned(), kind, verbs: part.verbs.clone().unwrap_or_default() })
            });
            ApiResource {
                subresources: subresources.collect(),
                singular: singular(whole.singular_name, &whole.kind),
                resource: resource(group, version, whole.name, whole.kind, whole.namespaced),
                short_names: whole.short_names.unwrap_or_default(),
                categories: whole.categories.unwrap_or_default(),
                verbs: whole.verbs.unwrap_or_default(),
                is_stale: false,
            }
        };
        ApiVersion { name: version.to_owned(), resources: wholes.into_iter().map(read).collect() }
    }
}

fn resource(group: &str, version: &str, plural: String, kind: String, is_namespaced: bool) -> Resource {
    Resource {
        group: Cow::Owned(group.to_owned()),
        version: Cow::Owned(version.to_owned()),
        plural: Cow::Owned(plural),
        kind: Cow::Owned(kind),
        scope: if is_namespaced { Scope::Namespaced } else { Scope::Cluster },
    }
}

/// Older servers do not send it; the kind in lower case is upstream's guess.
fn singular(declared: String, kind: &str) -> String {
    if declared.is_empty() { kind.to_lowercase() } else { declared }
}

//! Pure: the kinds that a policy's expressions are checked against.

use std::collections::BTreeSet;

use serde::Deserialize;
use steersman_base::Resource;

/// The number of kinds after which no more are looked for.
const KINDS_MAX: usize = 10;

/// The spec of a policy, as far as types go.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PolicySpec {
    pub(super) param_kind: Option<ParamKind>,
    pub(super) match_constraints: Option<MatchConstraints>,
    pub(super) validations: Vec<Validation>,
    pub(super) variables: Vec<Variable>,
}

/// The kind of a policy's parameters.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ParamKind {
    pub(super) api_version: String,
    pub(super) kind: String,
}

/// The requests that a policy matches.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct MatchConstraints {
    pub(super) resource_rules: Vec<Rule>,
}

/// Resources that a policy matches.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Rule {
    pub(super) api_groups: Vec<String>,
    pub(super) api_versions: Vec<String>,
    pub(super) resources: Vec<String>,
}

/// A validation, and the message if it fails.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Validation {
    pub(super) expression: String,
    pub(super) message_expression: String,
}

/// A variable that a policy declares.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) expression: String,
}

/// A kind in a version, in the order in which warnings name them.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct VersionKind {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
}

/// A resource that the server has, and its singular name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'a> {
    pub(super) resource: &'a Resource,
    pub(super) singular: &'a str,
}

/// The kinds that a policy matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Matched {
    /// By group, version and kind.
    pub(super) kinds: BTreeSet<VersionKind>,
    /// Whether a resource is not known: discovery may be too old.
    pub(super) has_unknown: bool,
}

/// Returns the kinds that a policy names. Rules with a wildcard for groups or versions are left out, and so are wildcards of
/// resources and subresources: they would be too many, or none.
pub(super) fn matched(spec: &PolicySpec, known: &[Known<'_>]) -> Matched {
    let mut found = Matched::default();
    let rules = spec.match_constraints.iter().flat_map(|constraints| &constraints.resource_rules);
    for rule in rules {
        let is_plain = |names: &[String]| !names.iter().any(|name| name.contains('*'));
        if !is_plain(&rule.api_groups) || !is_plain(&rule.api_versions) {
            continue;
        }
        let resources = rule.resources.iter().filter(|name| !name.contains(['*', '/']));
        let resources = sorted(resources);
        let mut count = 0;
        for group in sorted(&rule.api_groups) {
            for version in sorted(&rule.api_versions) {
                for resource in &resources {
                    let kinds = kinds_of(known, group, version, resource);
                    found.has_unknown |= kinds.is_empty();
                    for kind in kinds {
                        found.kinds.insert(kind);
                        count += 1;
                        if count == KINDS_MAX {
                            return found;
                        }
                    }
                }
            }
        }
    }
    found
}

/// Returns the kinds of a resource. As in upstream's mapper, no group stands for any group, and a singular name is one, too.
fn kinds_of(known: &[Known<'_>], group: &str, version: &str, resource: &str) -> Vec<VersionKind> {
    let name = resource.to_lowercase();
    let fits = known.iter().filter(|found| {
        let of = found.resource;
        (group.is_empty() || *of.group == *group)
            && *of.version == *version
            && (*of.plural == *name || found.singular == name)
    });
    fits.map(|found| VersionKind {
        group: found.resource.group.to_string(),
        version: found.resource.version.to_string(),
        kind: found.resource.kind.to_string(),
    })
    .collect()
}

fn sorted<'a>(names: impl IntoIterator<Item = &'a String>) -> Vec<&'a str> {
    let mut names: Vec<_> = names.into_iter().map(String::as_str).collect();
    names.sort_unstable();
    names
}

// === impl ParamKind ===

impl ParamKind {
    /// Returns the kind; none if its version is no version.
    pub(super) fn version_kind(&self) -> Option<VersionKind> {
        let (group, version) = match self.api_version.split('/').collect::<Vec<_>>()[..] {
            [version] => ("", version),
            [group, version] => (group, version),
            _ => return None,
        };
        Some(VersionKind { group: group.to_owned(), version: version.to_owned(), kind: self.kind.clone() })
    }
}

// === impl VersionKind ===

impl VersionKind {
    /// Returns the name of its group and version in the index of OpenAPI documents.
    pub(super) fn document(&self) -> String {
        match self.group.as_str() {
            "" => format!("api/{}", self.version),
            group => format!("apis/{group}/{}", self.version),
        }
    }
}

impl std::fmt::Display for VersionKind {
    /// As Go writes it: `apps/v1, Kind=Deployment`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}

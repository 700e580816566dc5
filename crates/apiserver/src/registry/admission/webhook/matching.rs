//! Whether a rule of a webhook matches a request. Pure.
//!
//! Follows `apiserver/pkg/admission/plugin/webhook/predicates/rules/rules.go` of Kubernetes 1.37.

use serde_json::Value;

use crate::kinds::shared::json::text;
use crate::registry::query::strings;

/// What rules are about: one resource in one version, and what happens to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    pub(super) resource: &'a str,
    pub(super) subresource: &'a str,
    pub(super) operation: &'a str,
    /// Whether the object belongs to a namespace. Namespaces do not.
    pub(super) is_namespaced: bool,
}

/// A rule: operations on resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    resources: Vec<String>,
    scope: Scope,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    All,
    Cluster,
    Namespaced,
    /// One that does not exist.
    None,
}

// === impl Rule ===

impl Rule {
    pub(super) fn read(rule: &Value) -> Self {
        let words = |field: &str| strings(&rule[field]).into_iter().map(str::to_owned).collect();
        Self {
            operations: words("operations"),
            groups: words("apiGroups"),
            versions: words("apiVersions"),
            resources: words("resources"),
            scope: match text(&rule["scope"]) {
                "" | "*" => Scope::All,
                "Cluster" => Scope::Cluster,
                "Namespaced" => Scope::Namespaced,
                _ => Scope::None,
            },
        }
    }

    /// Whether the rule matches a request.
    pub(super) fn matches(&self, asked: Asked<'_>) -> bool {
        let is_in_scope = match self.scope {
            Scope::All => true,
            Scope::Cluster => !asked.is_namespaced,
            Scope::Namespaced => asked.is_namespaced,
            Scope::None => false,
        };
        is_in_scope
            && has(&self.operations, asked.operation)
            && has(&self.groups, asked.group)
            && has(&self.versions, asked.version)
            && self.resources.iter().any(|resource| {
                let (resource, part) = resource.split_once('/').unwrap_or((resource, ""));
                is_or_any(resource, asked.resource) && is_or_any(part, asked.subresource)
            })
    }
}

fn has(words: &[String], wanted: &str) -> bool {
    words.iter().any(|word| is_or_any(word, wanted))
}

fn is_or_any(word: &str, wanted: &str) -> bool {
    word == "*" || word == wanted
}

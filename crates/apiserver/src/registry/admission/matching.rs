//! The requests that a webhook or a policy is about: rules and selectors. Pure.
//!
//! Follows `apiserver/pkg/admission/plugin/webhook/predicates/rules/rules.go` and `plugin/policy/matching/matching.go` of Kubernetes
//! 1.37.

use serde_json::Value;
use steersman_base::Selector;

use crate::kinds::shared::check::selector_of;
use crate::kinds::shared::json::{items, text};
use crate::registry::query::strings;

/// The subject of rules: one resource in one version, and the operation on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    pub(super) resource: &'a str,
    pub(super) subresource: &'a str,
    pub(super) operation: &'a str,
    /// The name of the object, if it is known.
    pub(super) name: &'a str,
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
    /// `resourceNames`; none stands for all.
    names: Vec<String>,
}

/// The requests that a webhook or a policy is about.
#[derive(Debug)]
pub(super) struct Criteria {
    /// One of them must match. Without any, a binding matches all, a webhook none.
    pub(super) rules: Vec<Rule>,
    pub(super) matches_without_rules: bool,
    /// None of them may match.
    pub(super) excluded: Vec<Rule>,
    /// `matchPolicy: Equivalent`
    pub(super) matches_equivalents: bool,
    pub(super) namespace_selector: Result<Selector, String>,
    pub(super) object_selector: Result<Selector, String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    All,
    Cluster,
    Namespaced,
    /// One that does not exist.
    None,
}

// === impl Criteria ===

impl Criteria {
    /// Reads a webhook.
    pub(super) fn of_webhook(hook: &Value) -> Self {
        Self { excluded: Vec::new(), matches_without_rules: false, ..Self::read(hook, "rules") }
    }

    /// Reads the `matchConstraints` of a policy, or the `matchResources` of a binding.
    pub(super) fn of_policy(resources: &Value) -> Self {
        Self::read(resources, "resourceRules")
    }

    fn read(declared: &Value, rules: &str) -> Self {
        let selector = |field: &str| match &declared[field] {
            Value::Null => Ok(Selector::everything()),
            declared => selector_of(declared).compile().map_err(|errors| errors.to_string()),
        };
        let rules_of = |field: &str| items(&declared[field]).iter().map(Rule::read).collect();
        Self {
            rules: rules_of(rules),
            matches_without_rules: true,
            excluded: rules_of("excludeResourceRules"),
            matches_equivalents: declared["matchPolicy"] != "Exact",
            namespace_selector: selector("namespaceSelector"),
            object_selector: selector("objectSelector"),
        }
    }
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
            names: words("resourceNames"),
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
            && (self.names.is_empty() || self.names.iter().any(|name| name == asked.name))
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

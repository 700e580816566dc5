//! Authorization by the stored roles and bindings.
//!
//! 1. `system:masters` may do everything; for all others the first binding with a matching rule counts, cluster-wide
//!    ones before those of the namespace.
//! 2. There are no deny rules: what no rule allows is refused.
//! 3. The reasons are upstream's, so that `kubectl auth can-i` and reviewers see why.
//! 4. An aggregated ClusterRole (`admin`, `edit`, `view`) has the rules of those it selects ([`aggregation`]).
//!
//! Follows `plugin/pkg/auth/authorizer/rbac` and `pkg/registry/rbac/validation` of Kubernetes 1.37.

mod aggregation;
pub(crate) mod escalation;
#[cfg(test)]
mod tests;

use serde_json::Value;
use steersman_base::ObjectKey;

use super::User;
use crate::registry::list::list_all;
use crate::registry::object_meta::meta_text;
use crate::registry::query::strings;
use crate::registry::{Registry, Row};
use aggregation::rules_of;

const GROUP: &str = "rbac.authorization.k8s.io";
/// The group that may do everything, regardless of bindings.
pub(crate) const MASTERS: &str = "system:masters";

/// The attributes of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attributes {
    pub(crate) verb: String,
    pub(crate) namespace: String,
    pub(crate) group: String,
    pub(crate) resource: String,
    pub(crate) subresource: String,
    pub(crate) name: String,
    /// The path, if it is a non-resource request.
    pub(crate) path: Option<String>,
}

/// A decision and its reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) is_allowed: bool,
    pub(crate) reason: String,
}

/// Whether a user may make a request.
pub(crate) fn decide(registry: &Registry, user: &User, wanted: &Attributes) -> Decision {
    if user.groups.iter().any(|group| group == MASTERS) {
        return Decision { is_allowed: true, reason: String::new() };
    }
    let mut missing = Vec::new();
    let found = bindings(registry, &wanted.namespace).find_map(|binding| {
        let subject = subject_of(&binding, user)?;
        let Some(role) = role_of(registry, &binding) else {
            let (kind, name) = reference(&binding);
            missing.push(format!("{}.{GROUP} {name:?} not found", kind.to_lowercase()));
            return None;
        };
        let fits = rules_of(registry, role).iter().any(|rule| wanted.is_allowed_by(rule));
        fits.then(|| allowed_by(&binding, &subject))
    });
    match found {
        Some(reason) => Decision { is_allowed: true, reason },
        None if missing.is_empty() => Decision::default(),
        None => Decision { is_allowed: false, reason: format!("rbac: RBAC: {}", joined(&missing)) },
    }
}

/// Returns the rules for a user in a namespace: resource rules, and non-resource rules.
pub(crate) fn rules(registry: &Registry, user: &User, namespace: &str) -> (Vec<Value>, Vec<Value>) {
    let mine = bindings(registry, namespace).filter(|binding| subject_of(binding, user).is_some());
    let roles = mine.filter_map(|binding| role_of(registry, &binding));
    let rules = roles.flat_map(|role| rules_of(registry, role));
    rules.partition(|rule| strings(&rule["nonResourceURLs"]).is_empty())
}

/// Returns the rules that a user holds in a namespace, and the names of roles that are bound and do not exist.
pub(crate) fn held_by(registry: &Registry, user: &User, namespace: &str) -> (Vec<Value>, Vec<String>) {
    let mut held = Vec::new();
    let mut unresolved = Vec::new();
    for binding in bindings(registry, namespace).filter(|binding| subject_of(binding, user).is_some()) {
        match role_of(registry, &binding) {
            Some(role) => held.extend(rules_of(registry, role)),
            None => {
                let (_, name) = reference(&binding);
                if !unresolved.iter().any(|known| known == name) {
                    unresolved.push(name.to_owned());
                }
            }
        }
    }
    (held, unresolved)
}

/// Returns the rules of the role that a binding in this namespace refers to; none if it does not exist.
pub(crate) fn referenced_rules(registry: &Registry, binding: &Value, namespace: &str) -> Option<Vec<Value>> {
    role_named(registry, reference(binding), namespace).map(|role| rules_of(registry, role))
}

/// Returns the bindings of the cluster, then those of a namespace.
fn bindings(registry: &Registry, namespace: &str) -> impl Iterator<Item = Value> {
    let of = |plural: &str, namespace: &str| {
        let row = registry.row(GROUP, "v1", plural);
        row.map(|row| list_all(registry, &row, namespace)).unwrap_or_default()
    };
    let local = if namespace.is_empty() { Vec::new() } else { of("rolebindings", namespace) };
    of("clusterrolebindings", "").into_iter().chain(local).filter_map(|binding| binding.parse().ok())
}

fn reference(binding: &Value) -> (&str, &str) {
    let text = |field: &str| binding["roleRef"][field].as_str().unwrap_or_default();
    (text("kind"), text("name"))
}

fn role_of(registry: &Registry, binding: &Value) -> Option<Value> {
    role_named(registry, reference(binding), meta_text(binding, "namespace"))
}

fn role_named(registry: &Registry, reference: (&str, &str), namespace: &str) -> Option<Value> {
    match reference {
        ("Role", name) => registry.stored(GROUP, "v1", "roles", &ObjectKey::new(namespace, name)),
        (_, name) => registry.stored(GROUP, "v1", "clusterroles", &ObjectKey::cluster(name)),
    }
}

/// Returns the subject of a binding that matches this user, in upstream's words.
fn subject_of(binding: &Value, user: &User) -> Option<String> {
    let subjects = binding["subjects"].as_array().into_iter().flatten();
    subjects.into_iter().find_map(|subject| {
        let text = |field: &str| subject[field].as_str().unwrap_or_default();
        let kind = text("kind");
        let name = text("name");
        match kind {
            "User" if user.name == name => Some(format!("User {name:?}")),
            "Group" if user.groups.iter().any(|group| group == name) => Some(format!("Group {name:?}")),
            "ServiceAccount" => {
                let home = Some(text("namespace")).filter(|home| !home.is_empty());
                let home = home.unwrap_or_else(|| meta_text(binding, "namespace"));
                let is_it = user.name == format!("system:serviceaccount:{home}:{name}");
                is_it.then(|| format!("ServiceAccount \"{name}/{home}\""))
            }
            _ => None,
        }
    })
}

fn allowed_by(binding: &Value, subject: &str) -> String {
    let (kind, role) = reference(binding);
    let namespace = meta_text(binding, "namespace");
    let name = meta_text(binding, "name");
    let binding = match namespace {
        "" => format!("ClusterRoleBinding {name:?}"),
        _ => format!("RoleBinding \"{name}/{namespace}\""),
    };
    format!("RBAC: allowed by {binding} of {kind} {role:?} to {subject}")
}

/// Formats several errors as Go does.
pub(crate) fn joined(errors: &[String]) -> String {
    match errors {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

// === impl Attributes ===

impl Attributes {
    /// Returns the attributes of a create of a resource.
    pub(crate) fn create(row: &Row, namespace: &str, name: &str) -> Self {
        Self {
            verb: "create".to_owned(),
            namespace: namespace.to_owned(),
            group: row.resource.group.to_string(),
            resource: row.resource.plural.to_string(),
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// Returns the attributes that a review is about.
    pub(crate) fn of_review(spec: &Value) -> Self {
        let resource = &spec["resourceAttributes"];
        let path = &spec["nonResourceAttributes"];
        let text = |of: &Value, field: &str| of[field].as_str().unwrap_or_default().to_owned();
        if path.is_object() {
            return Self { verb: text(path, "verb"), path: Some(text(path, "path")), ..Self::default() };
        }
        Self {
            verb: text(resource, "verb"),
            namespace: text(resource, "namespace"),
            group: text(resource, "group"),
            resource: text(resource, "resource"),
            subresource: text(resource, "subresource"),
            name: text(resource, "name"),
            path: None,
        }
    }

    fn is_allowed_by(&self, rule: &Value) -> bool {
        let has = |field: &str, wanted: &str| {
            strings(&rule[field]).into_iter().any(|allowed| allowed == "*" || allowed == wanted)
        };
        if !has("verbs", &self.verb) {
            return false;
        }
        if let Some(path) = &self.path {
            return strings(&rule["nonResourceURLs"]).into_iter().any(|allowed| {
                allowed == path || allowed.strip_suffix('*').is_some_and(|prefix| path.starts_with(prefix))
            });
        }
        let names = strings(&rule["resourceNames"]);
        has("apiGroups", &self.group)
            && strings(&rule["resources"]).into_iter().any(|allowed| self.is_resource(allowed))
            && (names.is_empty() || names.contains(&self.name.as_str()))
    }

    /// Whether a rule's resource matches: `pods`, `pods/log`, `*/scale` or `*`.
    fn is_resource(&self, allowed: &str) -> bool {
        match allowed.split_once('/') {
            _ if allowed == "*" => true,
            None => self.subresource.is_empty() && allowed == self.resource,
            Some((resource, part)) => {
                part == self.subresource && !part.is_empty() && (resource == "*" || resource == self.resource)
            }
        }
    }

    /// Returns the refusal, in upstream's words.
    pub(crate) fn refusal(&self, user: &User, decision: &Decision) -> crate::status::Status {
        let Self { verb, namespace, group, resource, subresource, .. } = self;
        let mut why = match &self.path {
            Some(path) => format!("User {:?} cannot {verb} path {path:?}", user.name),
            None => {
                let part = if subresource.is_empty() { String::new() } else { format!("/{subresource}") };
                let place = match namespace.as_str() {
                    "" => "at the cluster scope".to_owned(),
                    namespace => format!("in the namespace {namespace:?}"),
                };
                let whole = format!("{resource}{part}");
                format!("User {:?} cannot {verb} resource {whole:?} in API group {group:?} {place}", user.name)
            }
        };
        if !decision.reason.is_empty() {
            why = format!("{why}: {}", decision.reason);
        }
        let target = crate::status::GroupResource { group, resource };
        crate::status::Status::forbidden(target, &self.name, &why)
    }
}

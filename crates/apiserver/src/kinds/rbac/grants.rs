//! Who may write a role or a binding: who holds what it grants, or may explicitly give away more (verbs `escalate` and `bind`).
//!
//! 1. Members of `system:masters` may write everything, as on a server on which everything is allowed.
//! 2. A write that changes nothing but finalizers and owner references is the garbage collector's, and allowed.
//! 3. The rules of an aggregated ClusterRole are those it grants here; who sets an aggregation rule needs all there is.
//!
//! Follows `pkg/registry/rbac/{escalation_check,helpers}.go`, `validation/rule.go` and `*/policybased/storage.go` of Kubernetes 1.37.

use serde_json::{Value, json};
use steersman_base::go::quote;
use steersman_base::validation::path_segment;

use super::GROUP;
use crate::auth::rbac::escalation::{Missing, missing, quoted};
use crate::auth::rbac::{Attributes, MASTERS, held_by, joined, referenced_rules};
use crate::kinds::shared::json::{items, same, text, unset};
use crate::registry::object_meta::meta_text;
use crate::registry::{Call, Registry};
use crate::status::Status;

/// Refuses a role whose rules its author does not hold.
pub(super) fn of_role(registry: &Registry, call: &Call, new: &Value, old: Option<&Value>) -> Result<(), Status> {
    let escalate = attributes(call, "escalate", &call.row.resource.plural, &call.name);
    if is_master(call) || registry.decide(&call.user, &escalate).is_allowed || is_collected(new, old) {
        return Ok(());
    }
    confirm(registry, call, new, items(&new["rules"]))?;
    let gathers = |role: &Value| !items(&role["aggregationRule"]["clusterRoleSelectors"]).is_empty();
    if gathers(new) || old.is_some_and(gathers) {
        let all = [
            json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}),
            json!({"verbs": ["*"], "nonResourceURLs": ["*"]}),
        ];
        let why = "must have cluster-admin privileges to use the aggregationRule";
        confirm(registry, call, new, &all)
            .map_err(|_| Status::forbidden(call.row.target(), meta_text(new, "name"), why))?;
    }
    Ok(())
}

/// Refuses a binding to a role whose rules its author does not hold.
pub(super) fn of_binding(registry: &Registry, call: &Call, new: &Value, old: Option<&Value>) -> Result<(), Status> {
    if is_master(call) || is_collected(new, old) {
        return Ok(());
    }
    let role = &new["roleRef"];
    let name = text(&role["name"]);
    let plural = match text(&role["kind"]) {
        "ClusterRole" => "clusterroles",
        "Role" => "roles",
        kind => {
            // Everything is allowed where nobody is asked, and the kind is refused later, by validation.
            return match registry.decide(&call.user, &attributes(call, "bind", "", name)).is_allowed {
                true if registry.allows_everything() => Ok(()),
                _ => Err(Status::plain(format!("unsupported role reference kind: {}", quote(kind)))),
            };
        }
    };
    let bind = Attributes { group: text(&role["apiGroup"]).to_owned(), ..attributes(call, "bind", plural, name) };
    if registry.decide(&call.user, &bind).is_allowed {
        return Ok(());
    }
    if plural == "roles" && call.namespace.is_empty() {
        return Err(Status::bad_request("Namespace parameter required."));
    }
    if name.is_empty() {
        return Err(Status::bad_request("Name parameter required."));
    }
    let problems = path_segment(name);
    if !problems.is_empty() {
        let message = format!("Name parameter invalid: {}: {}", quote(name), problems.join(";"));
        return Err(Status::bad_request(message));
    }
    let rules = referenced_rules(registry, new, &call.namespace).ok_or_else(|| not_found(call, name))?;
    confirm(registry, call, new, &rules)
}

/// Refuses what grants more than the user of a request holds.
fn confirm(registry: &Registry, call: &Call, new: &Value, wanted: &[Value]) -> Result<(), Status> {
    let (held, unresolved) = held_by(registry, &call.user, &call.namespace);
    let Some(missing) = missing(&held, wanted) else { return Ok(()) };
    let user = quote(&call.user.name);
    let groups = quoted(call.user.groups.iter().map(String::as_str));
    let mut why =
        format!("user {user} (groups={groups}) is attempting to grant RBAC permissions not currently held:\n");
    why.push_str(match &missing {
        Missing::These(lines) => lines,
        Missing::TooMany => "more than can be compared",
    });
    if !unresolved.is_empty() {
        let unresolved: Vec<String> = unresolved.iter().map(|name| not_found(call, name).message).collect();
        why = format!("{why}; resolution errors: [{}]", joined(&unresolved));
    }
    Err(Status::forbidden(call.row.target(), meta_text(new, "name"), &why))
}

/// Upstream's store names the resource of the request, whatever it looks for.
fn not_found(call: &Call, role: &str) -> Status {
    Status::not_found(call.row.target(), role)
}

fn attributes(call: &Call, verb: &str, plural: &str, name: &str) -> Attributes {
    Attributes {
        verb: verb.to_owned(),
        namespace: call.namespace.clone(),
        group: GROUP.to_owned(),
        resource: plural.to_owned(),
        name: name.to_owned(),
        ..Attributes::default()
    }
}

fn is_master(call: &Call) -> bool {
    call.user.groups.iter().any(|group| group == MASTERS)
}

/// Whether a write changes no more than garbage collection does.
fn is_collected(new: &Value, old: Option<&Value>) -> bool {
    let rest = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object.get_mut("metadata") {
            for field in ["ownerReferences", "finalizers", "selfLink", "managedFields"] {
                unset(metadata, field);
            }
        }
        object
    };
    old.is_some_and(|old| same(&rest(new), &rest(old)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_garbage_collector_changes_is_free_of_checks() {
        let old = json!({
            "metadata": {"name": "a", "resourceVersion": "1", "finalizers": ["x/y"], "managedFields": [{}]},
            "rules": [], "aggregationRule": null,
        });
        let released = json!({"metadata": {"name": "a", "resourceVersion": "1", "ownerReferences": [{"name": "o"}]}});
        let labelled = json!({"metadata": {"name": "a", "resourceVersion": "1", "labels": {"a": "b"}}});
        let ruled = json!({"metadata": {"name": "a", "resourceVersion": "1"}, "rules": [{"verbs": ["get"]}]});
        for (new, want) in [(&old, true), (&released, true), (&labelled, false), (&ruled, false)] {
            assert_eq!(is_collected(new, Some(&old)), want, "{new}");
        }
        assert!(!is_collected(&old, None));
    }
}

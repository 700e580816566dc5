//! Which containers may run again after they have ended: `ValidateContainerStateTransition` of
//! `pkg/apis/core/validation/validation.go`, and `ContainerShouldRestart` of `pkg/api/v1/pod/util.go`.

use serde_json::Value;

use crate::field::{FieldError, Path};
use crate::kinds::shared::check::Errors;
use crate::kinds::shared::json::{items, number, text};

/// Checks that what has ended stays so, unless its container restarts.
pub(super) fn check(status: &Value, old: &Value, path: &Path, errors: &mut Errors) {
    let spec = &old["spec"];
    let before = &old["status"];
    if !all_could_restart(spec) {
        for (list, statuses) in [("containers", "containerStatuses"), ("initContainers", "initContainerStatuses")] {
            let restarts = |name: &str, code: i64| {
                let container = items(&spec[list]).iter().find(|container| text(&container["name"]) == name);
                container.is_some_and(|container| should_restart(container, spec, code))
            };
            transitions(&status[statuses], &before[statuses], &path.child(statuses), errors, restarts);
        }
    }
    let statuses = "ephemeralContainerStatuses";
    transitions(&status[statuses], &before[statuses], &path.child(statuses), errors, |_, _| false);
}

/// Refuses states of containers that have ended and do not restart.
fn transitions(now: &Value, before: &Value, path: &Path, errors: &mut Errors, restarts: impl Fn(&str, i64) -> bool) {
    for (at, ended) in items(before).iter().enumerate() {
        let name = text(&ended["name"]);
        let is_undone = |now: &Value| text(&now["name"]) == name && now["state"]["terminated"].is_null();
        if ended["state"]["terminated"].is_null() || !items(now).iter().any(is_undone) {
            continue;
        }
        if !restarts(name, number(&ended["state"]["terminated"]["exitCode"])) {
            let detail = "may not be transitioned to non-terminated state";
            errors.push(FieldError::forbidden(&path.index(at).child("state"), detail));
        }
    }
}

/// Whether the end of some container may restart all of them, whatever they say for themselves.
fn all_could_restart(spec: &Value) -> bool {
    let all = items(&spec["initContainers"]).iter().chain(items(&spec["containers"]));
    let mut rules = all.flat_map(|container| items(&container["restartPolicyRules"]));
    rules.any(|rule| text(&rule["action"]) == "RestartAllContainers")
}

/// Whether a container restarts after an exit: by its first rule that matches, by its own policy, by that of its pod.
fn should_restart(container: &Value, spec: &Value, code: i64) -> bool {
    let own = text(&container["restartPolicy"]);
    let matches = |rule: &Value| {
        let codes = &rule["exitCodes"];
        let is_named = items(&codes["values"]).iter().any(|value| number(value) == code);
        matches!((text(&codes["operator"]), is_named), ("In", true) | ("NotIn", false))
    };
    let rule = items(&container["restartPolicyRules"]).iter().find(|rule| matches(rule));
    if !own.is_empty() && rule.is_some_and(|rule| text(&rule["action"]) == "Restart") {
        return true;
    }
    let by = |policy: &str| match policy {
        "Always" => Some(true),
        "OnFailure" => Some(code != 0),
        "Never" => Some(false),
        _ => None,
    };
    by(own).or_else(|| by(text(&spec["restartPolicy"]))).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(policy: &str, container: &Value, sidecar: &Value, code: i64) -> Vec<String> {
        let ended = |name: &str| json!({"name": name, "state": {"terminated": {"exitCode": code}}});
        let runs = |name: &str| json!({"name": name, "state": {"running": {}}});
        let mut spec = json!({"restartPolicy": policy, "containers": [container], "initContainers": [sidecar]});
        spec["containers"][0]["name"] = "c".into();
        spec["initContainers"][0]["name"] = "i".into();
        let status = |of: &dyn Fn(&str) -> Value| {
            let first = json!({"name": "other", "state": {"running": {}}});
            json!({"containerStatuses": [first, of("c")], "initContainerStatuses": [of("i")]})
        };
        let old = json!({"spec": spec, "status": status(&ended)});
        let mut errors = Errors::default();
        check(&status(&runs), &old, &Path::new("status"), &mut errors);
        let detail = ": Forbidden: may not be transitioned to non-terminated state";
        errors.iter().map(|error| error.to_string().replace(detail, "")).collect()
    }

    #[test]
    fn only_a_container_that_restarts_runs_again() {
        let regular = "status.containerStatuses[1].state";
        let init = "status.initContainerStatuses[0].state";
        let rule = |action: &str, operator: &str| {
            let codes = json!({"operator": operator, "values": [42]});
            json!({"restartPolicy": "Never", "restartPolicyRules": [{"action": action, "exitCodes": codes}]})
        };
        let plain = || json!({});
        let never = json!({"restartPolicy": "Never"});
        for (policy, container, sidecar, code, want) in [
            ("Always", plain(), plain(), 0, vec![]),
            ("Always", never, plain(), 1, vec![regular]),
            ("OnFailure", plain(), plain(), 1, vec![]),
            ("OnFailure", plain(), plain(), 0, vec![regular, init]),
            ("Never", plain(), plain(), 1, vec![regular, init]),
            ("Never", plain(), json!({"restartPolicy": "Always"}), 0, vec![regular]),
            ("Never", json!({"restartPolicy": "OnFailure"}), plain(), 1, vec![init]),
            ("Never", rule("Restart", "In"), plain(), 42, vec![init]),
            ("Never", rule("Restart", "In"), plain(), 43, vec![regular, init]),
            ("Never", rule("Restart", "NotIn"), plain(), 43, vec![init]),
            ("Never", rule("RestartAllContainers", "In"), plain(), 43, vec![]),
            ("Never", plain(), rule("RestartAllContainers", "In"), 1, vec![]),
        ] {
            assert_eq!(refused(policy, &container, &sidecar, code), want, "{policy} {container} {sidecar}");
        }
    }
}

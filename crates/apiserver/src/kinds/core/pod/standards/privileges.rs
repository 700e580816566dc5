//! What a process may do beyond its user: privileged containers, capabilities, more privileges than its parent.

use serde_json::Value;

use super::{Finding, Pod, containers, found, named, names_of, quoted, set_of, setters};
use crate::kinds::shared::json::{flag, items, text};

const BY_DEFAULT: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// `check_privileged.go`
pub(super) fn privileged(pod: Pod<'_>) -> Option<Finding> {
    let bad = names_of(pod, |container| flag(&container["securityContext"]["privileged"]));
    if bad.is_empty() {
        return None;
    }
    found("privileged", format!("{} must not set securityContext.privileged=true", named(&bad)))
}

/// `check_allowPrivilegeEscalation.go`
pub(super) fn escalation(pod: Pod<'_>) -> Option<Finding> {
    let bad = names_of(pod, |container| container["securityContext"]["allowPrivilegeEscalation"] != false);
    if bad.is_empty() {
        return None;
    }
    let detail = format!("{} must set securityContext.allowPrivilegeEscalation=false", named(&bad));
    found("allowPrivilegeEscalation != false", detail)
}

/// `check_capabilities_baseline.go`
pub(super) fn capabilities_baseline(pod: Pod<'_>) -> Option<Finding> {
    let detail = added(pod, |name| !BY_DEFAULT.contains(&name))?;
    found("non-default capabilities", detail)
}

/// `check_capabilities_restricted.go`
pub(super) fn capabilities_restricted(pod: Pod<'_>) -> Option<Finding> {
    let keeps_some =
        |container: &Value| !items(&container["securityContext"]["capabilities"]["drop"]).iter().any(|it| it == "ALL");
    let keeping = names_of(pod, keeps_some);
    let dropped = (!keeping.is_empty())
        .then(|| format!("{} must set securityContext.capabilities.drop=[\"ALL\"]", named(&keeping)));
    let added = added(pod, |name| name != "NET_BIND_SERVICE");
    let details: Vec<String> = dropped.into_iter().chain(added).collect();
    if details.is_empty() { None } else { found("unrestricted capabilities", details.join("; ")) }
}

/// `check_windowsHostProcess.go`
pub(super) fn windows_host_process(pod: Pod<'_>) -> Option<Finding> {
    let is_on_host = |context: &Value| flag(&context["windowsOptions"]["hostProcess"]);
    let is_pod = is_on_host(&pod.spec["securityContext"]);
    let bad = names_of(pod, |container| is_on_host(&container["securityContext"]));
    if !is_pod && bad.is_empty() {
        return None;
    }
    let who = setters(is_pod, &bad);
    found("hostProcess", format!("{who} must not set securityContext.windowsOptions.hostProcess=true"))
}

/// Says which containers add capabilities that they may not.
fn added(pod: Pod<'_>, is_bad: fn(&str) -> bool) -> Option<String> {
    fn adds(container: &Value, is_bad: fn(&str) -> bool) -> impl Iterator<Item = &str> {
        let list = items(&container["securityContext"]["capabilities"]["add"]).iter();
        list.map(text).filter(move |name| is_bad(name))
    }
    let bad = names_of(pod, |container| adds(container, is_bad).next().is_some());
    if bad.is_empty() {
        return None;
    }
    let what = quoted(set_of(containers(pod).flat_map(|container| adds(container, is_bad))));
    Some(format!("{} must not include {what} in securityContext.capabilities.add", named(&bad)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::check;
    use super::*;

    fn spec(contexts: &[Value]) -> Value {
        let containers = contexts.iter().zip(["a", "b", "c"]);
        let containers: Vec<Value> =
            containers.map(|(context, name)| json!({"name": name, "securityContext": context})).collect();
        json!({ "containers": containers })
    }

    #[test]
    fn containers_are_not_privileged_and_get_no_more_privileges() {
        check(
            privileged,
            &[
                (spec(&[json!({}), json!({"privileged": false}), Value::Null]), None),
                (
                    spec(&[json!({"privileged": true})]),
                    Some("privileged (container \"a\" must not set securityContext.privileged=true)"),
                ),
            ],
        );
        check(
            escalation,
            &[
                (spec(&[json!({"allowPrivilegeEscalation": false})]), None),
                (
                    spec(&[json!({}), json!({"allowPrivilegeEscalation": true}), Value::Null]),
                    Some(
                        "allowPrivilegeEscalation != false (containers \"a\", \"b\", \"c\" must set \
                     securityContext.allowPrivilegeEscalation=false)",
                    ),
                ),
            ],
        );
        let mut windows = spec(&[json!({"windowsOptions": {"hostProcess": true}})]);
        check(
            windows_host_process,
            &[
                (spec(&[json!({"windowsOptions": {"hostProcess": false}})]), None),
                (
                    windows.clone(),
                    Some("hostProcess (container \"a\" must not set securityContext.windowsOptions.hostProcess=true)"),
                ),
            ],
        );
        windows["securityContext"] = json!({"windowsOptions": {"hostProcess": true}});
        check(
            windows_host_process,
            &[(
                windows,
                Some(
                    "hostProcess (pod and container \"a\" must not set securityContext.windowsOptions.hostProcess=true)",
                ),
            )],
        );
    }

    #[test]
    fn capabilities_are_those_of_the_level() {
        let of = |add: &[&str], drop: &[&str]| json!({"capabilities": {"add": add, "drop": drop}});
        check(
            capabilities_baseline,
            &[
                (spec(&[of(&["CHOWN", "KILL"], &[]), json!({"capabilities": null})]), None),
                (
                    spec(&[of(&["NET_RAW", "CHOWN", "BPF"], &[]), of(&["NET_RAW"], &[])]),
                    Some(
                        "non-default capabilities (containers \"a\", \"b\" must not include \"BPF\", \"NET_RAW\" in \
                     securityContext.capabilities.add)",
                    ),
                ),
            ],
        );
        check(
            capabilities_restricted,
            &[
                (spec(&[of(&["NET_BIND_SERVICE"], &["KILL", "ALL"])]), None),
                (
                    spec(&[Value::Null, of(&[], &["all"])]),
                    Some(
                        "unrestricted capabilities (containers \"a\", \"b\" must set securityContext.capabilities.drop=[\"ALL\"])",
                    ),
                ),
                (
                    spec(&[of(&["CHOWN"], &[])]),
                    Some(
                        "unrestricted capabilities (container \"a\" must set securityContext.capabilities.drop=[\"ALL\"]; \
                     container \"a\" must not include \"CHOWN\" in securityContext.capabilities.add)",
                    ),
                ),
            ],
        );
    }
}

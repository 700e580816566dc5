//! The profiles that confine a process: AppArmor, seccomp and SELinux.

use std::collections::BTreeSet;

use serde_json::Value;
use steersman_base::go::quote;

use super::{Finding, Pod, containers, found, named, names_of, plural, quoted, set_of, setters};
use crate::kinds::shared::json::{entries, is_empty, text};

const OF_APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const OF_SECCOMP: &str = "seccomp.security.alpha.kubernetes.io/pod";
const OF_SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const CONFINED: [&str; 2] = ["RuntimeDefault", "Localhost"];
const SE_LINUX_TYPES: [&str; 5] = ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];

/// A profile that a pod or containers name: who names a bad one, and which.
struct Bad<'a> {
    is_pod: bool,
    containers: Vec<&'a str>,
    types: BTreeSet<&'a str>,
}

/// `check_appArmorProfile.go`
pub(super) fn app_armor(pod: Pod<'_>) -> Option<Finding> {
    let bad = Bad::of(pod, "appArmorProfile");
    let is_allowed = |value: &str| value.is_empty() || value == "runtime/default" || value.starts_with("localhost/");
    let annotations = entries(pod.annotations)
        .into_iter()
        .filter(|(key, value)| key.starts_with(OF_APP_ARMOR) && !is_allowed(text(value)));
    let mut annotations: Vec<String> =
        annotations.map(|(key, value)| format!("{key}={}", quote(text(value)))).collect();
    annotations.sort();
    let mut who: Vec<String> = bad.is_pod.then(|| "pod".to_owned()).into_iter().collect();
    if !bad.containers.is_empty() {
        who.push(named(&bad.containers));
    }
    if !annotations.is_empty() {
        who.push(plural(annotations.len(), "annotation", "annotations").to_owned());
    }
    if who.is_empty() {
        return None;
    }
    let values: Vec<&str> = bad.types.iter().copied().chain(annotations.iter().map(String::as_str)).collect();
    let reason = plural(values.len(), "forbidden AppArmor profile", "forbidden AppArmor profiles");
    found(reason, format!("{} must not set AppArmor profile type to {}", who.join(" and "), quoted(values)))
}

/// `seccompProfileBaseline_1_0`
pub(super) fn seccomp_annotations(pod: Pod<'_>) -> Option<Finding> {
    let of_containers = containers(pod).map(|container| format!("{OF_SECCOMP_CONTAINER}{}", text(&container["name"])));
    let is_allowed =
        |value: &str| matches!(value, "runtime/default" | "docker/default") || value.starts_with("localhost/");
    let bad: BTreeSet<String> = std::iter::once(OF_SECCOMP.to_owned())
        .chain(of_containers)
        .filter_map(|key| {
            let value = pod.annotations.get(&key).and_then(Value::as_str).filter(|value| !is_allowed(value))?;
            Some(format!("{key}={}", quote(value)))
        })
        .collect();
    if bad.is_empty() {
        return None;
    }
    let what = plural(bad.len(), "annotation", "annotations");
    let bad: Vec<String> = bad.into_iter().collect();
    found("seccompProfile", format!("forbidden {what} {}", bad.join(", ")))
}

/// `seccompProfileBaseline_1_19`
pub(super) fn seccomp_baseline(pod: Pod<'_>) -> Option<Finding> {
    let bad = Bad::of(pod, "seccompProfile");
    if !bad.is_pod && bad.containers.is_empty() {
        return None;
    }
    let who = setters(bad.is_pod, &bad.containers);
    let what = quoted(bad.types);
    found("seccompProfile", format!("{who} must not set securityContext.seccompProfile.type to {what}"))
}

/// `check_seccompProfile_restricted.go`
pub(super) fn seccomp_restricted(pod: Pod<'_>) -> Option<Finding> {
    let bad = seccomp_baseline(pod);
    if bad.is_some() || pod.spec["securityContext"]["seccompProfile"].is_object() {
        return bad;
    }
    let silent = names_of(pod, |container| !container["securityContext"]["seccompProfile"].is_object());
    if silent.is_empty() {
        return None;
    }
    let who = named(&silent);
    let detail =
        format!("pod or {who} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"");
    found("seccompProfile", detail)
}

/// `seLinuxOptions1_0`
pub(super) fn se_linux(pod: Pod<'_>) -> Option<Finding> {
    se_linux_of_types(pod, &SE_LINUX_TYPES[..4])
}

/// `seLinuxOptions1_31`
pub(super) fn se_linux_with_engine(pod: Pod<'_>) -> Option<Finding> {
    se_linux_of_types(pod, &SE_LINUX_TYPES)
}

fn se_linux_of_types(pod: Pod<'_>, types: &[&str]) -> Option<Finding> {
    fn options(context: &Value) -> &Value {
        &context["seLinuxOptions"]
    }
    let is_bad = |options: &Value| {
        !types.contains(&text(&options["type"])) || !is_empty(&options["user"]) || !is_empty(&options["role"])
    };
    let is_pod = is_bad(options(&pod.spec["securityContext"]));
    let bad = names_of(pod, |container| is_bad(options(&container["securityContext"])));
    if !is_pod && bad.is_empty() {
        return None;
    }
    let all = || {
        let of_containers = containers(pod).map(|container| options(&container["securityContext"]));
        std::iter::once(options(&pod.spec["securityContext"])).chain(of_containers)
    };
    let bad_types = set_of(all().map(|options| text(&options["type"])).filter(|it| !types.contains(it)));
    let mut what = Vec::new();
    if !bad_types.is_empty() {
        what.push(format!("{} {}", plural(bad_types.len(), "type", "types"), quoted(bad_types)));
    }
    for field in ["user", "role"] {
        if all().any(|options| !is_empty(&options[field])) {
            what.push(format!("{field} may not be set"));
        }
    }
    let who = setters(is_pod, &bad);
    let what = what.join("; ");
    found("seLinuxOptions", format!("{who} set forbidden securityContext.seLinuxOptions: {what}"))
}

// === impl Bad ===

impl<'a> Bad<'a> {
    /// Those that name a profile other than that of the runtime or of the node.
    fn of(pod: Pod<'a>, field: &'static str) -> Self {
        let bad_type = move |context: &'a Value| {
            let profile = &context["securityContext"][field];
            profile.is_object().then(|| text(&profile["type"])).filter(|kind| !CONFINED.contains(kind))
        };
        let of_pod = bad_type(pod.spec);
        let types = of_pod.into_iter().chain(containers(pod).filter_map(bad_type)).collect();
        Self { is_pod: of_pod.is_some(), containers: names_of(pod, |it| bad_type(it).is_some()), types }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{check, detail};
    use super::*;

    fn spec(of_pod: Value, contexts: &[Value]) -> Value {
        let containers = contexts.iter().zip(["a", "b"]);
        let containers: Vec<Value> =
            containers.map(|(context, name)| json!({"name": name, "securityContext": context})).collect();
        let mut spec = json!({ "containers": containers });
        spec["securityContext"] = of_pod;
        spec
    }

    fn profile(field: &str, kind: &str) -> Value {
        json!({field: {"type": kind}})
    }

    #[test]
    fn nobody_leaves_app_armor() {
        let of = |kind: &str| profile("appArmorProfile", kind);
        check(
            app_armor,
            &[
                (spec(of("RuntimeDefault"), &[of("Localhost"), Value::Null]), None),
                (
                    spec(of("Unconfined"), &[]),
                    Some("forbidden AppArmor profile (pod must not set AppArmor profile type to \"Unconfined\")"),
                ),
                (
                    spec(of("Unconfined"), &[of("Other"), of("Unconfined")]),
                    Some(
                        "forbidden AppArmor profiles (pod and containers \"a\", \"b\" must not set AppArmor profile type to \
                     \"Other\", \"Unconfined\")",
                    ),
                ),
            ],
        );
        let key = |name: &str| format!("{OF_APP_ARMOR}{name}");
        let annotations = json!({key("a"): "unconfined", key("b"): "localhost/x", key("c"): "", "other": "unconfined"});
        assert_eq!(
            detail(app_armor, &annotations, &spec(Value::Null, &[of("Unconfined")])).unwrap(),
            format!(
                "forbidden AppArmor profiles (container \"a\" and annotation must not set AppArmor profile type to \
                 \"Unconfined\", \"{OF_APP_ARMOR}a=\"unconfined\"\")"
            )
        );
    }

    #[test]
    fn nobody_leaves_seccomp() {
        let of = |kind: &str| profile("seccompProfile", kind);
        let key = |name: &str| format!("{OF_SECCOMP_CONTAINER}{name}");
        let annotations = json!({OF_SECCOMP: "unconfined", key("a"): "x", key("z"): "x", key("b"): "docker/default"});
        assert_eq!(
            detail(seccomp_annotations, &annotations, &spec(Value::Null, &[Value::Null, Value::Null])).unwrap(),
            format!("seccompProfile (forbidden annotations {}=\"x\", {OF_SECCOMP}=\"unconfined\")", key("a"))
        );
        check(seccomp_annotations, &[(spec(of("Unconfined"), &[]), None)]);
        let both = "seccompProfile (pod and container \"b\" must not set securityContext.seccompProfile.type to \"Odd\", \
                    \"Unconfined\")";
        check(
            seccomp_baseline,
            &[
                (spec(Value::Null, &[Value::Null, of("Localhost")]), None),
                (spec(of("Unconfined"), &[of("RuntimeDefault"), of("Odd")]), Some(both)),
            ],
        );
        check(
            seccomp_restricted,
            &[
                (spec(of("Unconfined"), &[of("RuntimeDefault"), of("Odd")]), Some(both)),
                (spec(of("Localhost"), &[Value::Null]), None),
                (spec(Value::Null, &[of("Localhost"), of("RuntimeDefault")]), None),
                (
                    spec(Value::Null, &[of("Localhost"), json!({})]),
                    Some(
                        "seccompProfile (pod or container \"b\" must set securityContext.seccompProfile.type to \
                     \"RuntimeDefault\" or \"Localhost\")",
                    ),
                ),
            ],
        );
    }

    #[test]
    fn only_types_of_containers_are_allowed_for_se_linux() {
        let of = |options: Value| json!({ "seLinuxOptions": options });
        let engine = spec(of(json!({"type": "container_engine_t", "level": "s0"})), &[]);
        check(
            se_linux,
            &[
                (spec(of(json!({"type": "container_t"})), &[of(json!({}))]), None),
                (
                    engine.clone(),
                    Some(
                        "seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type \"container_engine_t\")",
                    ),
                ),
            ],
        );
        check(
            se_linux_with_engine,
            &[
                (engine, None),
                (
                    spec(of(json!({"type": "b"})), &[of(json!({"type": "a", "role": "r"})), of(json!({"user": "u"}))]),
                    Some(
                        "seLinuxOptions (pod and containers \"a\", \"b\" set forbidden securityContext.seLinuxOptions: types \
                     \"a\", \"b\"; user may not be set; role may not be set)",
                    ),
                ),
            ],
        );
    }
}

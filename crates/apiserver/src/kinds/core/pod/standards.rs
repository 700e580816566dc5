//! The Pod Security Standards: what a pod may ask for at the levels `baseline` and `restricted`, in every version.
//!
//! A check looks at one pod and says in upstream's words what is wrong; the table [`CHECKS`] says at which levels and versions it
//! counts. Which level a namespace has is read from its labels ([`level`]); who is refused or warned is decided in
//! [`pod_security`](crate::registry::admission::pod_security).
//!
//! Follows `policy/{checks,registry}.go` of `k8s.io/pod-security-admission` 0.37.

mod host;
mod kernel;
pub(crate) mod level;
mod privileges;
mod profiles;
mod users;
mod volumes;

use std::collections::BTreeSet;

use serde_json::Value;

use crate::kinds::shared::json::{items, text};
use level::{Level, LevelVersion};

/// The part of a pod that checks look at: the metadata and the spec of a pod or of a template.
#[derive(Clone, Copy)]
pub(crate) struct Pod<'a> {
    pub(crate) annotations: &'a Value,
    pub(crate) spec: &'a Value,
}

/// A violation of the standards: one thing that is wrong with a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    reason: String,
    detail: String,
}

/// The violations of one level: none, if it is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Findings(Vec<Finding>);

/// A check, and the versions of each level in which it counts: from the first to before the second.
struct Check {
    baseline: (u32, u32),
    restricted: (u32, u32),
    run: fn(Pod<'_>) -> Option<Finding>,
}

/// For all versions to come.
const EVER: u32 = u32::MAX;
/// The version behind which no check has changed: later ones, and `latest`, are the same.
const NEWEST: u32 = 37;

/// The checks, in the order of upstream's names. Some of `restricted` take the place of others of `baseline`.
const CHECKS: &[Check] = &[
    Check::always(profiles::app_armor),
    Check { baseline: (0, EVER), restricted: (0, 22), run: privileges::capabilities_baseline },
    Check::always(host::namespaces),
    Check { baseline: (0, EVER), restricted: (0, 0), run: host::path_volumes },
    Check::always(host::ports),
    Check::since(34, host::probes),
    Check::always(privileges::privileged),
    Check::between(0, 35, kernel::proc_mount),
    Check { baseline: (35, EVER), restricted: (0, 0), run: kernel::proc_mount_of_host_users },
    Check::between(0, 31, profiles::se_linux),
    Check::since(31, profiles::se_linux_with_engine),
    Check::between(0, 19, profiles::seccomp_annotations),
    Check { baseline: (19, EVER), restricted: (0, 0), run: profiles::seccomp_baseline },
    Check::between(0, 27, |pod| kernel::sysctls(pod, 5)),
    Check::between(27, 29, |pod| kernel::sysctls(pod, 6)),
    Check::between(29, 32, |pod| kernel::sysctls(pod, 10)),
    Check::between(32, 37, |pod| kernel::sysctls(pod, 12)),
    Check::since(37, |pod| kernel::sysctls(pod, 14)),
    Check::always(privileges::windows_host_process),
    Check::restricted(8, 25, privileges::escalation),
    Check::restricted(25, EVER, |pod| unless_windows(pod, privileges::escalation)),
    Check::restricted(22, 25, privileges::capabilities_restricted),
    Check::restricted(25, EVER, |pod| unless_windows(pod, privileges::capabilities_restricted)),
    Check::restricted(35, EVER, kernel::proc_mount),
    Check::restricted(0, EVER, volumes::restricted),
    Check::restricted(0, 35, users::non_root),
    Check::restricted(35, EVER, |pod| unless_in_user_namespace(pod, users::non_root)),
    Check::restricted(23, 35, users::not_user_0),
    Check::restricted(35, EVER, |pod| unless_in_user_namespace(pod, users::not_user_0)),
    Check::restricted(19, 25, profiles::seccomp_restricted),
    Check::restricted(25, EVER, |pod| unless_windows(pod, profiles::seccomp_restricted)),
];

/// Returns what is wrong with a pod at a level.
pub(crate) fn evaluate(at: LevelVersion, pod: Pod<'_>) -> Findings {
    let version = at.version.number().map_or(NEWEST, |number| number.min(NEWEST));
    let counts = |check: &&Check| {
        let (from, until) = match at.level {
            Level::Privileged => (0, 0),
            Level::Baseline => check.baseline,
            Level::Restricted => check.restricted,
        };
        (from..until).contains(&version)
    };
    Findings(CHECKS.iter().filter(counts).filter_map(|check| (check.run)(pod)).collect())
}

/// The containers of a pod, in the order in which checks name them.
fn containers(pod: Pod<'_>) -> impl Iterator<Item = &Value> {
    ["initContainers", "containers", "ephemeralContainers"].into_iter().flat_map(move |list| items(&pod.spec[list]))
}

/// The names of the containers of which something is true.
fn names_of<'a>(pod: Pod<'a>, is_bad: impl Fn(&'a Value) -> bool) -> Vec<&'a str> {
    containers(pod).filter(|container| is_bad(container)).map(|container| text(&container["name"])).collect()
}

/// Quotes as upstream does: whatever is in them.
fn quoted<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let texts: Vec<&str> = texts.into_iter().collect();
    if texts.is_empty() { String::new() } else { format!("\"{}\"", texts.join("\", \"")) }
}

/// `container "a"` or `containers "a", "b"`.
fn named(names: &[&str]) -> String {
    format!("{} {}", plural(names.len(), "container", "containers"), quoted(names.iter().copied()))
}

/// `pod and container "a"`: who sets what is wrong.
fn setters(is_pod: bool, names: &[&str]) -> String {
    match (is_pod, names) {
        (true, []) => "pod".to_owned(),
        (true, names) => format!("pod and {}", named(names)),
        (false, names) => named(names),
    }
}

fn plural(count: usize, one: &'static str, many: &'static str) -> &'static str {
    if count == 1 { one } else { many }
}

fn set_of<'a>(values: impl IntoIterator<Item = &'a str>) -> BTreeSet<&'a str> {
    values.into_iter().collect()
}

fn found(reason: &str, detail: impl Into<String>) -> Option<Finding> {
    Some(Finding { reason: reason.to_owned(), detail: detail.into() })
}

/// Pods of Windows pass: they cannot set what these checks want, validation refuses that.
fn unless_windows(pod: Pod<'_>, check: fn(Pod<'_>) -> Option<Finding>) -> Option<Finding> {
    if text(&pod.spec["os"]["name"]) == "windows" { None } else { check(pod) }
}

/// Pods in their own user namespace pass: on the host they are not the user that they are inside.
fn unless_in_user_namespace(pod: Pod<'_>, check: fn(Pod<'_>) -> Option<Finding>) -> Option<Finding> {
    if pod.spec["hostUsers"] == false { None } else { check(pod) }
}

// === impl Check ===

impl Check {
    const fn always(run: fn(Pod<'_>) -> Option<Finding>) -> Self {
        Self::since(0, run)
    }

    const fn since(first: u32, run: fn(Pod<'_>) -> Option<Finding>) -> Self {
        Self::between(first, EVER, run)
    }

    const fn between(first: u32, end: u32, run: fn(Pod<'_>) -> Option<Finding>) -> Self {
        Self { baseline: (first, end), restricted: (first, end), run }
    }

    const fn restricted(first: u32, end: u32, run: fn(Pod<'_>) -> Option<Finding>) -> Self {
        Self { baseline: (0, 0), restricted: (first, end), run }
    }
}

// === impl Findings ===

impl Findings {
    /// Whether the pod is as the level wants it.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The reasons, without what is particular to the pod.
    pub(crate) fn reasons(&self) -> String {
        self.0.iter().map(|finding| finding.reason.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// The reasons, each with its details.
    pub(crate) fn details(&self) -> String {
        let shown = self.0.iter().map(|Finding { reason, detail }| match detail.as_str() {
            "" => reason.clone(),
            detail => format!("{reason} ({detail})"),
        });
        shown.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Runs a check on a pod.
    pub(super) fn detail(check: fn(Pod<'_>) -> Option<Finding>, annotations: &Value, spec: &Value) -> Option<String> {
        check(Pod { annotations, spec }).map(|finding| Findings(vec![finding]).details())
    }

    /// Compares what a check says of specs with what it is to say.
    pub(super) fn check(check: fn(Pod<'_>) -> Option<Finding>, rows: &[(Value, Option<&str>)]) {
        for (spec, want) in rows {
            assert_eq!(detail(check, &Value::Null, spec).as_deref(), *want, "{spec}");
        }
    }

    fn reasons(at: &str, spec: &Value) -> String {
        evaluate(LevelVersion::of(at), Pod { annotations: &Value::Null, spec }).reasons()
    }

    #[test]
    fn each_version_of_a_level_has_its_checks() {
        let plain = json!({"containers": [{"name": "a", "image": "i"}]});
        let rows = [
            ("privileged:latest", ""),
            ("baseline:latest", ""),
            ("restricted:v1.0", "runAsNonRoot != true"),
            ("restricted:v1.7", "runAsNonRoot != true"),
            ("restricted:v1.8", "allowPrivilegeEscalation != false, runAsNonRoot != true"),
            ("restricted:v1.18", "allowPrivilegeEscalation != false, runAsNonRoot != true"),
            ("restricted:v1.19", "allowPrivilegeEscalation != false, runAsNonRoot != true, seccompProfile"),
            (
                "restricted:v1.22",
                "allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, seccompProfile",
            ),
            (
                "restricted:v1.99",
                "allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, seccompProfile",
            ),
            (
                "restricted:latest",
                "allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, seccompProfile",
            ),
        ];
        for (at, want) in rows {
            assert_eq!(reasons(at, &plain), want, "{at}");
        }
        let mut windows = plain.clone();
        windows["os"] = json!({"name": "windows"});
        assert_eq!(reasons("restricted:v1.25", &windows), "runAsNonRoot != true");
        let mut inside = plain;
        inside["hostUsers"] = false.into();
        inside["securityContext"] = json!({"runAsUser": 0});
        assert!(reasons("restricted:v1.34", &inside).contains("runAsNonRoot != true, runAsUser=0"));
        assert!(!reasons("restricted:v1.35", &inside).contains("runAs"));
    }

    #[test]
    fn a_check_of_restricted_takes_the_place_of_one_of_baseline() {
        let context = json!({
            "capabilities": {"add": ["SYS_TIME"]}, "procMount": "Unmasked", "seccompProfile": {"type": "Unconfined"},
        });
        let spec = json!({
            "hostUsers": false, "volumes": [{"name": "v", "hostPath": {"path": "/"}}],
            "containers": [{"name": "a", "securityContext": context}],
        });
        let rows = [
            ("baseline:v1.18", "non-default capabilities, hostPath volumes, procMount"),
            ("baseline:v1.21", "non-default capabilities, hostPath volumes, procMount, seccompProfile"),
            ("baseline:v1.35", "non-default capabilities, hostPath volumes, seccompProfile"),
            (
                "restricted:v1.21",
                "non-default capabilities, procMount, allowPrivilegeEscalation != false, restricted volume types, \
                 runAsNonRoot != true, seccompProfile",
            ),
            (
                "restricted:v1.35",
                "allowPrivilegeEscalation != false, unrestricted capabilities, procMount, restricted volume types, \
                 seccompProfile",
            ),
        ];
        for (at, want) in rows {
            assert_eq!(reasons(at, &spec), want, "{at}");
        }
    }
}

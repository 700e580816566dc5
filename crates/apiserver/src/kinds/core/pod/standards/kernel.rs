//! What a pod sees and sets of the kernel.

use super::{Finding, Pod, containers, found, named, names_of, quoted, set_of, unless_in_user_namespace};
use crate::kinds::shared::json::{items, text};

/// The safe parameters, in the order in which versions came to allow them.
const SYSCTLS: [&str; 14] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_notsent_lowat",
];

/// `procMount_1_0`
pub(super) fn proc_mount(pod: Pod<'_>) -> Option<Finding> {
    let other = |container: &'_ serde_json::Value| {
        container["securityContext"]["procMount"].as_str().is_some_and(|mount| mount != "Default")
    };
    let bad = names_of(pod, other);
    if bad.is_empty() {
        return None;
    }
    let others = containers(pod).filter(|container| other(container));
    let what = quoted(set_of(others.map(|container| text(&container["securityContext"]["procMount"]))));
    found("procMount", format!("{} must not set securityContext.procMount to {what}", named(&bad)))
}

/// `procMount1_35baseline`
pub(super) fn proc_mount_of_host_users(pod: Pod<'_>) -> Option<Finding> {
    unless_in_user_namespace(pod, proc_mount)
}

/// `check_sysctls.go`, with the first so many parameters allowed.
pub(super) fn sysctls(pod: Pod<'_>, allowed: usize) -> Option<Finding> {
    let names = items(&pod.spec["securityContext"]["sysctls"]).iter().map(|sysctl| text(&sysctl["name"]));
    let bad: Vec<&str> = names.filter(|name| !SYSCTLS[..allowed].contains(name)).collect();
    if bad.is_empty() { None } else { found("forbidden sysctls", bad.join(", ")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::check;
    use super::*;

    #[test]
    fn proc_is_masked() {
        let container = |name: &str, mount: &str| json!({"name": name, "securityContext": {"procMount": mount}});
        let odd = json!({"hostUsers": false, "containers": [container("a", "Unmasked"), container("b", "Odd")]});
        let refused =
            "procMount (containers \"a\", \"b\" must not set securityContext.procMount to \"Odd\", \"Unmasked\")";
        check(
            proc_mount,
            &[(json!({"containers": [container("a", "Default"), {"name": "b"}]}), None), (odd.clone(), Some(refused))],
        );
        check(proc_mount_of_host_users, &[(odd, None)]);
    }

    #[test]
    fn each_version_allows_some_more_parameters() {
        let spec = |names: &[&str]| {
            let sysctls: Vec<_> = names.iter().map(|name| json!({"name": name, "value": "1"})).collect();
            json!({"securityContext": {"sysctls": sysctls}})
        };
        let some = spec(&["kernel.shm_rmid_forced", "net.ipv4.tcp_rmem", "a"]);
        check(|pod| sysctls(pod, 5), &[(some.clone(), Some("forbidden sysctls (net.ipv4.tcp_rmem, a)"))]);
        check(|pod| sysctls(pod, 12), &[(some, Some("forbidden sysctls (a)")), (spec(&[]), None)]);
        check(|pod| sysctls(pod, 14), &[(spec(&SYSCTLS), None)]);
        check(|pod| sysctls(pod, 10), &[(spec(&SYSCTLS[..10]), None)]);
    }
}

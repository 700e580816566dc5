//! What a pod shares with its node: namespaces, directories, ports, and probes that are sent elsewhere.

use super::{Finding, Pod, containers, found, named, names_of, plural, quoted, set_of};
use crate::kinds::shared::json::{flag, items, number, text};

/// `check_hostNamespaces.go`
pub(super) fn namespaces(pod: Pod<'_>) -> Option<Finding> {
    let shared: Vec<String> = ["hostNetwork", "hostPID", "hostIPC"]
        .into_iter()
        .filter(|field| flag(&pod.spec[*field]))
        .map(|field| format!("{field}=true"))
        .collect();
    if shared.is_empty() { None } else { found("host namespaces", shared.join(", ")) }
}

/// `check_hostPathVolumes.go`
pub(super) fn path_volumes(pod: Pod<'_>) -> Option<Finding> {
    let of_host = items(&pod.spec["volumes"]).iter().filter(|volume| volume["hostPath"].is_object());
    let bad: Vec<&str> = of_host.map(|volume| text(&volume["name"])).collect();
    if bad.is_empty() {
        return None;
    }
    found("hostPath volumes", format!("{} {}", plural(bad.len(), "volume", "volumes"), quoted(bad)))
}

/// `check_hostPorts.go`
pub(super) fn ports(pod: Pod<'_>) -> Option<Finding> {
    let bad = names_of(pod, |container| items(&container["ports"]).iter().any(|port| number(&port["hostPort"]) != 0));
    if bad.is_empty() {
        return None;
    }
    let ports = containers(pod).flat_map(|container| items(&container["ports"]));
    let ports: Vec<String> =
        ports.map(|port| number(&port["hostPort"])).filter(|port| *port != 0).map(|port| port.to_string()).collect();
    let ports = set_of(ports.iter().map(String::as_str));
    let uses = plural(bad.len(), "uses", "use");
    let what = plural(ports.len(), "hostPort", "hostPorts");
    let ports: Vec<&str> = ports.into_iter().collect();
    found("hostPort", format!("{} {uses} {what} {}", named(&bad), ports.join(", ")))
}

/// `check_hostProbesAndhostLifecycle.go`
pub(super) fn probes(pod: Pod<'_>) -> Option<Finding> {
    let hosts = |container: &'_ serde_json::Value| -> Vec<String> {
        let probes = ["livenessProbe", "readinessProbe", "startupProbe"].map(|probe| &container[probe]);
        let hooks = ["postStart", "preStop"].map(|hook| &container["lifecycle"][hook]);
        let handlers = probes.into_iter().chain(hooks);
        let hosts = handlers.flat_map(|handler| ["httpGet", "tcpSocket"].map(|kind| text(&handler[kind]["host"])));
        hosts.filter(|host| !host.is_empty()).map(str::to_owned).collect()
    };
    let bad = set_of(names_of(pod, |container| !hosts(container).is_empty()));
    if bad.is_empty() {
        return None;
    }
    let named_hosts: Vec<String> = containers(pod).flat_map(hosts).collect();
    let named_hosts = set_of(named_hosts.iter().map(String::as_str));
    let bad: Vec<&str> = bad.into_iter().collect();
    let uses = plural(bad.len(), "uses", "use");
    let what = plural(named_hosts.len(), "probe or lifecycle host", "probe or lifecycle hosts");
    found("probe or lifecycle host", format!("{} {uses} {what} {}", named(&bad), quoted(named_hosts)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::check;
    use super::*;

    #[test]
    fn nothing_of_the_host_is_shared() {
        check(
            namespaces,
            &[
                (json!({"hostNetwork": false}), None),
                (
                    json!({"hostIPC": true, "hostNetwork": true}),
                    Some("host namespaces (hostNetwork=true, hostIPC=true)"),
                ),
                (json!({"hostPID": true}), Some("host namespaces (hostPID=true)")),
            ],
        );
        check(
            path_volumes,
            &[
                (json!({"volumes": [{"name": "a", "emptyDir": {}, "hostPath": null}]}), None),
                (json!({"volumes": [{"name": "a", "hostPath": {}}]}), Some("hostPath volumes (volume \"a\")")),
                (
                    json!({"volumes": [{"name": "a", "hostPath": {"path": "/"}}, {"name": "b", "hostPath": {"path": "/"}}]}),
                    Some("hostPath volumes (volumes \"a\", \"b\")"),
                ),
            ],
        );
    }

    #[test]
    fn ports_of_the_host_are_listed_as_texts() {
        let port = |port: i64| json!({"containerPort": 1, "hostPort": port});
        let container = |name: &str, ports: &[i64]| json!({"name": name, "ports": ports.iter().map(|it| port(*it)).collect::<Vec<_>>()});
        check(
            ports,
            &[
                (json!({"containers": [container("a", &[0])]}), None),
                (
                    json!({"containers": [container("a", &[0, 12])]}),
                    Some("hostPort (container \"a\" uses hostPort 12)"),
                ),
                (
                    json!({"containers": [container("b", &[9, 12]), container("c", &[12])],
                       "initContainers": [container("a", &[]), container("i", &[100])]}),
                    Some("hostPort (containers \"i\", \"b\", \"c\" use hostPorts 100, 12, 9)"),
                ),
            ],
        );
    }

    #[test]
    fn probes_and_hooks_stay_with_the_pod() {
        check(
            probes,
            &[
                (json!({"containers": [{"name": "a", "livenessProbe": {"httpGet": {"port": 1, "host": ""}}}]}), None),
                (
                    json!({"containers": [{"name": "a", "startupProbe": {"tcpSocket": {"host": "h"}}}]}),
                    Some("probe or lifecycle host (container \"a\" uses probe or lifecycle host \"h\")"),
                ),
                (
                    json!({
                        "containers": [{"name": "a", "lifecycle": {"preStop": {"httpGet": {"host": "z"}}}}],
                        "initContainers": [{"name": "b", "readinessProbe": {"httpGet": {"host": "y"}}}],
                    }),
                    Some("probe or lifecycle host (containers \"a\", \"b\" use probe or lifecycle hosts \"y\", \"z\")"),
                ),
            ],
        );
    }
}

//! Services and what is behind them, ingresses, network policies.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::table::cell::{Cell, Row, first_of, joined, text};
use crate::table::{Kinds, labels};

/// How many addresses or ports a cell shows.
const SHOWN_MAX: usize = 3;

pub(super) const KINDS: Kinds = &[
    (
        "/services",
        &[
            Cell::Name,
            Cell::Text("/spec/type"),
            Cell::TextOr("/spec/clusterIPs/0", "<none>"),
            Cell::Made(external_ip),
            Cell::Made(service_ports),
            Cell::Age,
            Cell::Made(|row| labels::labels(row.at("/spec/selector"))),
        ],
    ),
    ("/endpoints", &[Cell::Name, Cell::Made(endpoints), Cell::Age]),
    (
        "discovery.k8s.io/endpointslices",
        &[Cell::Name, Cell::Text("/addressType"), Cell::Made(slice_ports), Cell::Made(slice_addresses), Cell::Age],
    ),
    (
        "networking.k8s.io/ingresses",
        &[
            Cell::Name,
            Cell::TextOr("/spec/ingressClassName", "<none>"),
            Cell::Made(ingress_hosts),
            Cell::Made(load_balancer),
            Cell::Made(|row| if row.count("/spec/tls") > 0 { "80, 443" } else { "80" }.to_owned()),
            Cell::Age,
        ],
    ),
    (
        "networking.k8s.io/ingressclasses",
        &[Cell::Made(class_name), Cell::Text("/spec/controller"), Cell::Made(class_parameters), Cell::Age],
    ),
    (
        "networking.k8s.io/networkpolicies",
        &[Cell::Name, Cell::Made(|row| labels::selector(row.at("/spec/podSelector"))), Cell::Age],
    ),
    ("networking.k8s.io/servicecidrs", &[Cell::Name, Cell::Joined("/spec/cidrs", ""), Cell::Age]),
    ("networking.k8s.io/ipaddresses", &[Cell::Name, Cell::Made(parent), Cell::Age]),
];

fn external_ip(row: &Row<'_>) -> String {
    let own = joined(row.list_at("/spec/externalIPs"), "");
    match row.text("/spec/type") {
        "ClusterIP" | "NodePort" if own.is_empty() => "<none>".to_owned(),
        "ClusterIP" | "NodePort" => own,
        "LoadBalancer" => {
            let all: Vec<String> = [load_balancer(row), own].into_iter().filter(|ips| !ips.is_empty()).collect();
            if all.is_empty() { "<pending>".to_owned() } else { all.join(",") }
        }
        "ExternalName" => row.text("/spec/externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

/// The addresses of a load balancer, sorted.
fn load_balancer(row: &Row<'_>) -> String {
    let addresses: BTreeSet<&str> = row
        .list_at("/status/loadBalancer/ingress")
        .iter()
        .filter_map(|ingress| {
            [text(ingress, "ip"), text(ingress, "hostname")].into_iter().find(|text| !text.is_empty())
        })
        .collect();
    addresses.into_iter().collect::<Vec<_>>().join(",")
}

fn service_ports(row: &Row<'_>) -> String {
    let ports: Vec<String> = row
        .list_at("/spec/ports")
        .iter()
        .map(|port| {
            let number = |field: &str| port.get(field).and_then(Value::as_i64).unwrap_or_default();
            match number("nodePort") {
                1.. => format!("{}:{}/{}", number("port"), number("nodePort"), text(port, "protocol")),
                _ => format!("{}/{}", number("port"), text(port, "protocol")),
            }
        })
        .collect();
    if ports.is_empty() { "<none>".to_owned() } else { ports.join(",") }
}

fn endpoints(row: &Row<'_>) -> String {
    let subsets = row.list_at("/subsets");
    if subsets.is_empty() {
        return "<none>".to_owned();
    }
    let elements =
        |subset: &'_ Value, field: &str| subset.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut all = Vec::new();
    for subset in subsets {
        let (addresses, ports) = (elements(subset, "addresses"), elements(subset, "ports"));
        let ips = || addresses.iter().map(|address| text(address, "ip"));
        if ports.is_empty() {
            all.extend(ips().map(str::to_owned));
        }
        for port in ports.iter().map(|port| port.get("port").and_then(Value::as_i64).unwrap_or_default()) {
            all.extend(
                ips().map(|ip| if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }),
            );
        }
    }
    first_of(&all, SHOWN_MAX, ",")
}

fn slice_ports(row: &Row<'_>) -> String {
    let ports: Vec<String> = row
        .list_at("/ports")
        .iter()
        .map(|port| match (port.get("port").and_then(Value::as_i64), port.get("name").and_then(Value::as_str)) {
            (Some(number), _) => number.to_string(),
            (None, Some(name)) => name.to_owned(),
            (None, None) => "*".to_owned(),
        })
        .collect();
    or_unset(first_of(&ports, SHOWN_MAX, ","))
}

fn slice_addresses(row: &Row<'_>) -> String {
    let addresses: Vec<String> = row
        .list_at("/endpoints")
        .iter()
        .filter_map(|endpoint| endpoint.get("addresses").and_then(Value::as_array))
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    or_unset(first_of(&addresses, SHOWN_MAX, ","))
}

fn or_unset(text: String) -> String {
    if text.is_empty() { "<unset>".to_owned() } else { text }
}

/// Unlike the others, this counts all rules, whether they have a host or not.
fn ingress_hosts(row: &Row<'_>) -> String {
    let rules = row.list_at("/spec/rules");
    let hosts: Vec<&str> = rules.iter().map(|rule| text(rule, "host")).filter(|host| !host.is_empty()).collect();
    let shown = hosts.iter().take(SHOWN_MAX).copied().collect::<Vec<_>>().join(",");
    let last_shown = rules.iter().position(|rule| hosts.get(SHOWN_MAX - 1) == Some(&text(rule, "host")));
    match last_shown {
        _ if hosts.is_empty() => "*".to_owned(),
        Some(index) if index + 1 < rules.len() => format!("{shown} + {} more...", rules.len() - SHOWN_MAX),
        _ => shown,
    }
}

fn class_name(row: &Row<'_>) -> String {
    let name = row.text("/metadata/name");
    let annotation = row.text("/metadata/annotations/ingressclass.kubernetes.io~1is-default-class");
    if annotation == "true" { format!("{name} (default)") } else { name.to_owned() }
}

fn class_parameters(row: &Row<'_>) -> String {
    let Some(parameters) = row.at("/spec/parameters") else { return "<none>".to_owned() };
    let group = parameters.get("apiGroup").and_then(Value::as_str).map(|group| format!(".{group}")).unwrap_or_default();
    format!("{}{group}/{}", text(parameters, "kind"), text(parameters, "name"))
}

fn parent(row: &Row<'_>) -> String {
    let Some(parent) = row.at("/spec/parentRef") else { return "<none>".to_owned() };
    let [group, resource, namespace, name] =
        ["group", "resource", "namespace", "name"].map(|field| text(parent, field));
    let resource = if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
    let parts = [resource.to_lowercase(), namespace.to_owned(), name.to_owned()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
}

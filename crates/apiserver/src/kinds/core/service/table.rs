//! The cells of Services: `printService` of `pkg/printers/internalversion/printers.go`.

use serde_json::Value;

use crate::kinds::shared::endpoint_address::load_balancer;
use crate::table::{Cell, TableRow, cell, labels};

/// The cells of Services.
pub(crate) const CELLS: &[Cell] = &[
    Cell::Name,
    Cell::Text("/spec/type"),
    Cell::TextOr("/spec/clusterIPs/0", "<none>"),
    Cell::Made(external_ip),
    Cell::Made(service_ports),
    Cell::Age,
    Cell::Made(|row| labels::labels(row.at("/spec/selector"))),
];

fn external_ip(row: &TableRow<'_>) -> String {
    let own = cell::joined(row.list_at("/spec/externalIPs"), "");
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

fn service_ports(row: &TableRow<'_>) -> String {
    let ports: Vec<String> = row
        .list_at("/spec/ports")
        .iter()
        .map(|port| {
            let number = |field: &str| port.get(field).and_then(Value::as_i64).unwrap_or_default();
            match number("nodePort") {
                1.. => format!("{}:{}/{}", number("port"), number("nodePort"), cell::text(port, "protocol")),
                _ => format!("{}/{}", number("port"), cell::text(port, "protocol")),
            }
        })
        .collect();
    if ports.is_empty() { "<none>".to_owned() } else { ports.join(",") }
}

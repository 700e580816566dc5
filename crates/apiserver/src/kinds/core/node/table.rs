//! The cells of Nodes: `printNode` of `pkg/printers/internalversion/printers.go`.

use serde_json::Value;

use crate::table::{Cell, TableRow, cell};
use std::collections::BTreeSet;

const UNKNOWN: &str = "<unknown>";

/// The cells of Nodes.
pub(crate) const CELLS: &[Cell] = &[
    Cell::Name,
    Cell::Made(node_status),
    Cell::Made(node_roles),
    Cell::Age,
    Cell::Text("/status/nodeInfo/kubeletVersion"),
    Cell::Made(|row| node_address(row, "InternalIP")),
    Cell::Made(|row| node_address(row, "ExternalIP")),
    Cell::TextOr("/status/nodeInfo/osImage", UNKNOWN),
    Cell::Made(kernel),
    Cell::TextOr("/status/nodeInfo/containerRuntimeVersion", UNKNOWN),
];

fn node_status(row: &TableRow<'_>) -> String {
    let ready = match row.condition("/status/conditions", "Ready").map(|condition| cell::text(condition, "status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    let is_cordoned = row.at("/spec/unschedulable").and_then(Value::as_bool) == Some(true);
    if is_cordoned { format!("{ready},SchedulingDisabled") } else { ready.to_owned() }
}

fn node_roles(row: &TableRow<'_>) -> String {
    let labels = row.at("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    let roles: BTreeSet<&str> = labels
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None if key == "kubernetes.io/role" => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    if roles.is_empty() { "<none>".to_owned() } else { roles.into_iter().collect::<Vec<_>>().join(",") }
}

fn node_address(row: &TableRow<'_>, kind: &str) -> String {
    let address = row.list_at("/status/addresses").iter().find(|address| cell::text(address, "type") == kind);
    address.map_or("<none>", |address| cell::text(address, "address")).to_owned()
}

fn kernel(row: &TableRow<'_>) -> String {
    let kernel =
        Some(row.text("/status/nodeInfo/kernelVersion")).filter(|kernel| !kernel.is_empty()).unwrap_or(UNKNOWN);
    match row.text("/status/nodeInfo/architecture") {
        "" => kernel.to_owned(),
        architecture => format!("{kernel} ({architecture})"),
    }
}

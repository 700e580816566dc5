//! Namespaces, nodes, events, and the small kinds that applications use.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::table::Kinds;
use crate::table::cell::{Cell, Row, text};

const UNKNOWN: &str = "<unknown>";

pub(super) const KINDS: Kinds = &[
    ("/namespaces", &[Cell::Name, Cell::Text("/status/phase"), Cell::Age]),
    ("/serviceaccounts", &[Cell::Name, Cell::Age]),
    ("/secrets", &[Cell::Name, Cell::Text("/type"), Cell::Count("/data"), Cell::Age]),
    (
        "/configmaps",
        &[Cell::Name, Cell::Value(|row| (row.count("/data") + row.count("/binaryData")).into()), Cell::Age],
    ),
    (
        "/nodes",
        &[
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
        ],
    ),
    ("/events", EVENT),
    ("events.k8s.io/events", EVENT),
    (
        "/resourcequotas",
        &[Cell::Name, Cell::Made(|row| quota(row, false)), Cell::Made(|row| quota(row, true)), Cell::Age],
    ),
    (
        "/componentstatuses",
        &[Cell::Name, Cell::Made(health), Cell::Text("/conditions/0/message"), Cell::Text("/conditions/0/error")],
    ),
    ("coordination.k8s.io/leases", &[Cell::Name, Cell::Text("/spec/holderIdentity"), Cell::Age]),
    ("node.k8s.io/runtimeclasses", &[Cell::Name, Cell::Text("/handler"), Cell::Age]),
    (
        "scheduling.k8s.io/priorityclasses",
        &[
            Cell::Name,
            Cell::Int("/value"),
            Cell::Bool("/globalDefault", false),
            Cell::Age,
            Cell::Text("/preemptionPolicy"),
        ],
    ),
];

const EVENT: &[Cell] = &[
    Cell::Made(last_seen),
    Cell::Text("/type"),
    Cell::Text("/reason"),
    Cell::Made(|row| {
        let (kind, name) = (involved(row, "kind").to_lowercase(), involved(row, "name"));
        if name.is_empty() { kind } else { format!("{kind}/{name}") }
    }),
    Cell::Made(|row| involved(row, "fieldPath").to_owned()),
    Cell::Made(event_source),
    Cell::Made(|row| first(row, &["/message", "/note"]).trim().to_owned()),
    Cell::Made(first_seen),
    Cell::Value(event_count),
    Cell::Name,
];

fn node_status(row: &Row<'_>) -> String {
    let ready = match row.condition("/status/conditions", "Ready").map(|condition| text(condition, "status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    let is_cordoned = row.at("/spec/unschedulable").and_then(Value::as_bool) == Some(true);
    if is_cordoned { format!("{ready},SchedulingDisabled") } else { ready.to_owned() }
}

fn node_roles(row: &Row<'_>) -> String {
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

fn node_address(row: &Row<'_>, kind: &str) -> String {
    let address = row.list_at("/status/addresses").iter().find(|address| text(address, "type") == kind);
    address.map_or("<none>", |address| text(address, "address")).to_owned()
}

fn kernel(row: &Row<'_>) -> String {
    let kernel =
        Some(row.text("/status/nodeInfo/kernelVersion")).filter(|kernel| !kernel.is_empty()).unwrap_or(UNKNOWN);
    match row.text("/status/nodeInfo/architecture") {
        "" => kernel.to_owned(),
        architecture => format!("{kernel} ({architecture})"),
    }
}

/// The first text that is there. Events have two APIs with different names for the same fields.
fn first<'a>(row: &Row<'a>, paths: &[&str]) -> &'a str {
    paths.iter().map(|path| row.text(path)).find(|text| !text.is_empty()).unwrap_or_default()
}

fn involved<'a>(row: &Row<'a>, field: &str) -> &'a str {
    first(row, &[&format!("/involvedObject/{field}"), &format!("/regarding/{field}")])
}

fn first_seen(row: &Row<'_>) -> String {
    since_first(row, &["/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime"])
}

fn last_seen(row: &Row<'_>) -> String {
    if row.at("/series").is_some() {
        return row.since("/series/lastObservedTime");
    }
    since_first(
        row,
        &["/lastTimestamp", "/deprecatedLastTimestamp", "/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime"],
    )
}

fn since_first(row: &Row<'_>, paths: &[&str]) -> String {
    paths.iter().find(|path| row.at(path).is_some()).map_or_else(|| UNKNOWN.to_owned(), |path| row.since(path))
}

fn event_count(row: &Row<'_>) -> Value {
    let counts = ["/series/count", "/count", "/deprecatedCount"].map(|path| row.int(path));
    // An event of the new API that happened once has no count.
    let count = if row.at("/series").is_some() { counts[0] } else { counts[1].max(counts[2]).max(1) };
    count.into()
}

fn event_source(row: &Row<'_>) -> String {
    let component = first(
        row,
        &["/source/component", "/deprecatedSource/component", "/reportingComponent", "/reportingController"],
    );
    match first(row, &["/source/host", "/deprecatedSource/host", "/reportingInstance"]) {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    }
}

/// Used and hard amounts, limits apart from all others: `pods: 1/10, requests.cpu: 0/2`.
fn quota(row: &Row<'_>, limits: bool) -> String {
    let hard = row.at("/status/hard").and_then(Value::as_object).into_iter().flatten();
    let used = row.at("/status/used");
    let amounts: Vec<String> = hard
        .filter(|(resource, _)| resource.starts_with("limits.") == limits)
        .map(|(resource, hard)| {
            let used = used.and_then(|used| used.get(resource)).and_then(Value::as_str).unwrap_or("0");
            format!("{resource}: {used}/{}", hard.as_str().unwrap_or("0"))
        })
        .collect();
    amounts.join(", ")
}

fn health(row: &Row<'_>) -> String {
    match row.condition("/conditions", "Healthy").map(|condition| text(condition, "status")) {
        Some("True") => "Healthy",
        Some(_) => "Unhealthy",
        None => "Unknown",
    }
    .to_owned()
}

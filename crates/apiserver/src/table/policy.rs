//! Scaling, disruption, access, admission, certificates, extension, flow control and device claims.

use serde_json::Value;

use crate::table::cell::{Cell, Row, first_of, int_or_string, text};
use crate::table::{Kinds, duration, labels};

const NONE: &str = "<none>";
const UNSET: &str = "<unset>";

pub(super) const KINDS: Kinds = &[
    (
        "autoscaling/horizontalpodautoscalers",
        &[
            Cell::Name,
            Cell::Made(|row| {
                format!("{}/{}", row.text("/spec/scaleTargetRef/kind"), row.text("/spec/scaleTargetRef/name"))
            }),
            Cell::Made(metrics),
            Cell::Made(|row| row.at("/spec/minReplicas").map_or_else(|| UNSET.to_owned(), Value::to_string)),
            Cell::Int("/spec/maxReplicas"),
            Cell::Int("/status/currentReplicas"),
            Cell::Age,
        ],
    ),
    (
        "policy/poddisruptionbudgets",
        &[
            Cell::Name,
            Cell::Made(|row| row.at("/spec/minAvailable").map_or_else(|| "N/A".to_owned(), int_or_string)),
            Cell::Made(|row| row.at("/spec/maxUnavailable").map_or_else(|| "N/A".to_owned(), int_or_string)),
            Cell::Int("/status/disruptionsAllowed"),
            Cell::Age,
        ],
    ),
    ("rbac.authorization.k8s.io/rolebindings", BINDING),
    ("rbac.authorization.k8s.io/clusterrolebindings", BINDING),
    ("admissionregistration.k8s.io/mutatingwebhookconfigurations", &[Cell::Name, Cell::Count("/webhooks"), Cell::Age]),
    (
        "admissionregistration.k8s.io/validatingwebhookconfigurations",
        &[Cell::Name, Cell::Count("/webhooks"), Cell::Age],
    ),
    (
        "admissionregistration.k8s.io/validatingadmissionpolicies",
        &[Cell::Name, Cell::Count("/spec/validations"), Cell::Made(param_kind), Cell::Age],
    ),
    (
        "admissionregistration.k8s.io/mutatingadmissionpolicies",
        &[Cell::Name, Cell::Count("/spec/mutations"), Cell::Made(param_kind), Cell::Age],
    ),
    ("admissionregistration.k8s.io/validatingadmissionpolicybindings", POLICY_BINDING),
    ("admissionregistration.k8s.io/mutatingadmissionpolicybindings", POLICY_BINDING),
    (
        "certificates.k8s.io/certificatesigningrequests",
        &[
            Cell::Name,
            Cell::Age,
            Cell::TextOr("/spec/signerName", NONE),
            Cell::Text("/spec/username"),
            Cell::Made(|row| {
                let seconds = row.at("/spec/expirationSeconds").and_then(Value::as_i64);
                seconds.map_or_else(|| NONE.to_owned(), duration::human)
            }),
            Cell::Made(certificate_status),
        ],
    ),
    ("certificates.k8s.io/clustertrustbundles", &[Cell::Name, Cell::TextOr("/spec/signerName", NONE)]),
    (
        "certificates.k8s.io/podcertificaterequests",
        &[
            Cell::Name,
            Cell::Text("/spec/podName"),
            Cell::Text("/spec/serviceAccountName"),
            Cell::Text("/spec/nodeName"),
            Cell::Text("/spec/signerName"),
            Cell::Made(|row| last_condition(row, &["Issued", "Denied", "Failed"], "Pending")),
            Cell::Made(|row| labels::labels(row.at("/spec/unverifiedUserAnnotations"))),
        ],
    ),
    (
        "apiextensions.k8s.io/customresourcedefinitions",
        &[
            Cell::Name,
            Cell::Text("/spec/scope"),
            Cell::Made(served_versions),
            Cell::Text("/metadata/creationTimestamp"),
            Cell::Text("/spec/group"),
            Cell::Text("/spec/names/kind"),
            Cell::Joined("/spec/names/shortNames", ""),
            Cell::Value(|row| {
                let established = row.condition("/status/conditions", "Established");
                established.is_some_and(|condition| text(condition, "status") == "True").into()
            }),
        ],
    ),
    ("apiregistration.k8s.io/apiservices", &[Cell::Name, Cell::Made(service), Cell::Made(available), Cell::Age]),
    (
        "flowcontrol.apiserver.k8s.io/flowschemas",
        &[
            Cell::Name,
            Cell::Text("/spec/priorityLevelConfiguration/name"),
            Cell::Int("/spec/matchingPrecedence"),
            Cell::TextOr("/spec/distinguisherMethod/type", NONE),
            Cell::Age,
            Cell::Made(|row| {
                row.condition("/status/conditions", "Dangling").map_or("?", |it| text(it, "status")).to_owned()
            }),
        ],
    ),
    (
        "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations",
        &[
            Cell::Name,
            Cell::Text("/spec/type"),
            Cell::Value(|row| or_none(row, "/spec/limited/nominalConcurrencyShares")),
            Cell::Value(|row| or_none(row, "/spec/limited/limitResponse/queuing/queues")),
            Cell::Value(|row| or_none(row, "/spec/limited/limitResponse/queuing/handSize")),
            Cell::Value(|row| or_none(row, "/spec/limited/limitResponse/queuing/queueLengthLimit")),
            Cell::Age,
        ],
    ),
    ("resource.k8s.io/deviceclasses", &[Cell::Name, Cell::Age]),
    ("resource.k8s.io/resourceclaimtemplates", &[Cell::Name, Cell::Age]),
    ("resource.k8s.io/resourceclaims", &[Cell::Name, Cell::Made(claim_state), Cell::Age]),
    (
        "resource.k8s.io/resourceslices",
        &[
            Cell::Name,
            Cell::Text("/spec/nodeName"),
            Cell::Text("/spec/driver"),
            Cell::Text("/spec/pool/name"),
            Cell::Age,
        ],
    ),
    (
        "resource.k8s.io/devicetaintrules",
        &[
            Cell::Name,
            Cell::Text("/spec/taint/key"),
            Cell::Text("/spec/taint/value"),
            Cell::Text("/spec/taint/effect"),
            Cell::Made(|row| {
                let path = "/spec/taint/timeAdded";
                if row.at(path).is_some() { row.since(path) } else { String::new() }
            }),
            Cell::Age,
        ],
    ),
    (
        "storagemigration.k8s.io/storageversionmigrations",
        &[
            Cell::Name,
            Cell::Made(|row| match row.text("/spec/resource/group") {
                "" => row.text("/spec/resource/resource").to_owned(),
                group => format!("{}.{group}", row.text("/spec/resource/resource")),
            }),
            Cell::Made(|row| {
                let is_true = |condition: &&Value| text(condition, "status") == "True";
                let known = ["Running", "Failed", "Succeeded"];
                let mut conditions =
                    row.list_at("/status/conditions").iter().filter(is_true).map(|it| text(it, "type"));
                conditions.rfind(|kind| known.contains(kind)).unwrap_or("Unknown").to_owned()
            }),
        ],
    ),
];

const BINDING: &[Cell] = &[
    Cell::Name,
    Cell::Made(|row| format!("{}/{}", row.text("/roleRef/kind"), row.text("/roleRef/name"))),
    Cell::Age,
    Cell::Made(|row| subjects(row, "User")),
    Cell::Made(|row| subjects(row, "Group")),
    Cell::Made(|row| subjects(row, "ServiceAccount")),
];

const POLICY_BINDING: &[Cell] = &[Cell::Name, Cell::Text("/spec/policyName"), Cell::Made(param), Cell::Age];

fn subjects(row: &Row<'_>, kind: &str) -> String {
    let of_kind = row.list_at("/subjects").iter().filter(|subject| text(subject, "kind") == kind);
    let names = of_kind.map(|subject| match kind {
        "ServiceAccount" => format!("{}/{}", text(subject, "namespace"), text(subject, "name")),
        _ => text(subject, "name").to_owned(),
    });
    names.collect::<Vec<_>>().join(", ")
}

/// Current and target of each metric: `cpu: 10%/80%`.
fn metrics(row: &Row<'_>) -> String {
    const SHOWN_MAX: usize = 2;
    // The first version of the API knows one metric only.
    if let Some(target) = row.at("/spec/targetCPUUtilizationPercentage") {
        let current = row.at("/status/currentCPUUtilizationPercentage");
        return format!(
            "cpu: {}/{target}%",
            current.map_or_else(|| "<unknown>".to_owned(), |current| format!("{current}%"))
        );
    }
    let statuses = row.list_at("/status/currentMetrics");
    let all: Vec<String> = row
        .list_at("/spec/metrics")
        .iter()
        .enumerate()
        .map(|(index, metric)| one_metric(metric, statuses.get(index)))
        .collect();
    if all.is_empty() { NONE.to_owned() } else { first_of(&all, SHOWN_MAX, ", ") }
}

fn one_metric(metric: &Value, status: Option<&Value>) -> String {
    let source = match text(metric, "type") {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    let target = |field: &str| metric.pointer(&format!("/{source}/target/{field}"));
    let current = |field: &str| status.and_then(|status| status.pointer(&format!("/{source}/current/{field}")));
    let amount = |value: Option<&Value>| value.map_or_else(|| "<unknown>".to_owned(), int_or_string);
    let percent = |value: Option<&Value>, otherwise: &str| {
        value.map_or_else(|| otherwise.to_owned(), |percent| format!("{percent}%"))
    };
    let name = metric.pointer(&format!("/{source}/name")).and_then(Value::as_str).unwrap_or_default();
    let averages = || format!("{}/{}", amount(current("averageValue")), amount(target("averageValue")));
    match (source, target("averageValue").is_some()) {
        ("resource" | "containerResource", true) => format!("{name}: {}", averages()),
        ("resource" | "containerResource", false) => {
            let current = percent(current("averageUtilization"), "<unknown>");
            format!("{name}: {current}/{}", percent(target("averageUtilization"), "<auto>"))
        }
        ("pods", _) => averages(),
        (_, true) => format!("{} (avg)", averages()),
        (_, false) => format!("{}/{}", amount(current("value")), amount(target("value"))),
    }
}

fn param_kind(row: &Row<'_>) -> String {
    row.at("/spec/paramKind")
        .map_or_else(|| UNSET.to_owned(), |kind| format!("{}/{}", text(kind, "apiVersion"), text(kind, "kind")))
}

fn param(row: &Row<'_>) -> String {
    let (namespace, name) = (row.text("/spec/paramRef/namespace"), row.text("/spec/paramRef/name"));
    match (name, namespace) {
        ("", _) => row.at("/spec/paramRef/selector").map_or_else(|| UNSET.to_owned(), |it| labels::selector(Some(it))),
        (name, "") => format!("*/{name}"),
        (name, namespace) => format!("{namespace}/{name}"),
    }
}

fn certificate_status(row: &Row<'_>) -> String {
    let has = |kind: &str| row.condition("/status/conditions", kind).is_some();
    let decision = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    };
    let failed = if has("Failed") { ",Failed" } else { "" };
    let issued = if row.text("/status/certificate").is_empty() { "" } else { ",Issued" };
    format!("{decision}{failed}{issued}")
}

fn last_condition(row: &Row<'_>, kinds: &[&str], otherwise: &str) -> String {
    let mut conditions = row.list_at("/status/conditions").iter().map(|condition| text(condition, "type"));
    conditions.rfind(|kind| kinds.contains(kind)).unwrap_or(otherwise).to_owned()
}

fn served_versions(row: &Row<'_>) -> String {
    let is = |version: &Value, field: &str| version.get(field).and_then(Value::as_bool) == Some(true);
    let served = row.list_at("/spec/versions").iter().filter(|version| is(version, "served"));
    let mut versions: Vec<String> = served
        .map(|version| format!("{}{}", text(version, "name"), if is(version, "storage") { "(storage)" } else { "" }))
        .collect();
    versions.sort_unstable();
    versions.join(",")
}

fn service(row: &Row<'_>) -> String {
    row.at("/spec/service").map_or_else(
        || "Local".to_owned(),
        |service| format!("{}/{}", text(service, "namespace"), text(service, "name")),
    )
}

fn available(row: &Row<'_>) -> String {
    let Some(condition) = row.condition("/status/conditions", "Available") else { return "Unknown".to_owned() };
    match (text(condition, "status"), text(condition, "reason")) {
        (status @ "True", _) | (status, "") => status.to_owned(),
        (status, reason) => format!("{status} ({reason})"),
    }
}

fn or_none(row: &Row<'_>, path: &str) -> Value {
    row.at(path).cloned().unwrap_or_else(|| NONE.into())
}

fn claim_state(row: &Row<'_>) -> String {
    let is_allocated = row.at("/status/allocation").is_some();
    let states = [
        (row.is_terminating(), "deleted"),
        (!is_allocated && !row.is_terminating(), "pending"),
        (is_allocated, "allocated"),
        (is_allocated && row.count("/status/reservedFor") > 0, "reserved"),
    ];
    states.iter().filter(|(holds, _)| *holds).map(|(_, state)| *state).collect::<Vec<_>>().join(",")
}

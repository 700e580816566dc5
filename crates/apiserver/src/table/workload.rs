//! What runs pods: deployments, sets, jobs.

use serde_json::Value;

use crate::table::Kinds;
use crate::table::cell::{Cell, Row, seconds_of, text};
use crate::table::{duration, labels};

const CONTAINERS: Cell = Cell::Joined("/spec/template/spec/containers", "name");
const IMAGES: Cell = Cell::Joined("/spec/template/spec/containers", "image");
const SELECTOR: Cell = Cell::Made(|row| labels::selector(row.at("/spec/selector")));
const READY_OF_REPLICAS: Cell =
    Cell::Made(|row| format!("{}/{}", row.int("/status/readyReplicas"), row.int("/spec/replicas")));

pub(super) const KINDS: Kinds = &[
    (
        "apps/deployments",
        &[
            Cell::Name,
            READY_OF_REPLICAS,
            Cell::Int("/status/updatedReplicas"),
            Cell::Int("/status/availableReplicas"),
            Cell::Age,
            CONTAINERS,
            IMAGES,
            Cell::Made(|row| labels::raw_selector(row.at("/spec/selector"))),
        ],
    ),
    (
        "apps/replicasets",
        &[
            Cell::Name,
            Cell::Int("/spec/replicas"),
            Cell::Int("/status/replicas"),
            Cell::Int("/status/readyReplicas"),
            Cell::Age,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ],
    ),
    (
        "/replicationcontrollers",
        &[
            Cell::Name,
            Cell::Int("/spec/replicas"),
            Cell::Int("/status/replicas"),
            Cell::Int("/status/readyReplicas"),
            Cell::Age,
            CONTAINERS,
            IMAGES,
            Cell::Made(|row| labels::labels(row.at("/spec/selector"))),
        ],
    ),
    ("apps/statefulsets", &[Cell::Name, READY_OF_REPLICAS, Cell::Age, CONTAINERS, IMAGES]),
    (
        "apps/daemonsets",
        &[
            Cell::Name,
            Cell::Int("/status/desiredNumberScheduled"),
            Cell::Int("/status/currentNumberScheduled"),
            Cell::Int("/status/numberReady"),
            Cell::Int("/status/updatedNumberScheduled"),
            Cell::Int("/status/numberAvailable"),
            Cell::Made(|row| labels::labels(row.at("/spec/template/spec/nodeSelector"))),
            Cell::Age,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ],
    ),
    ("apps/controllerrevisions", &[Cell::Name, Cell::Made(controller), Cell::Int("/revision"), Cell::Age]),
    (
        "batch/jobs",
        &[
            Cell::Name,
            Cell::Made(job_status),
            Cell::Made(completions),
            Cell::Made(job_duration),
            Cell::Age,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ],
    ),
    (
        "batch/cronjobs",
        &[
            Cell::Name,
            Cell::Text("/spec/schedule"),
            Cell::TextOr("/spec/timeZone", "<none>"),
            Cell::Made(suspended),
            Cell::Count("/status/active"),
            Cell::Made(last_schedule),
            Cell::Age,
            Cell::Joined("/spec/jobTemplate/spec/template/spec/containers", "name"),
            Cell::Joined("/spec/jobTemplate/spec/template/spec/containers", "image"),
            Cell::Made(|row| labels::selector(row.at("/spec/jobTemplate/spec/selector"))),
        ],
    ),
    (
        "/podtemplates",
        &[
            Cell::Name,
            Cell::Joined("/template/spec/containers", "name"),
            Cell::Joined("/template/spec/containers", "image"),
            Cell::Made(|row| labels::labels(row.at("/template/metadata/labels"))),
        ],
    ),
];

/// The conditions of a job that are its status, by rank; a deletion ranks after the second.
const JOB_ENDED: [&str; 2] = ["Complete", "Failed"];
const JOB_UNDER_WAY: [&str; 3] = ["Suspended", "FailureTarget", "SuccessCriteriaMet"];

fn job_status(row: &Row<'_>) -> String {
    let holds = |kind: &&&str| {
        row.condition("/status/conditions", kind).is_some_and(|condition| text(condition, "status") == "True")
    };
    let terminating = row.is_terminating().then_some(&"Terminating");
    let status = JOB_ENDED.iter().find(holds).or(terminating).or_else(|| JOB_UNDER_WAY.iter().find(holds));
    status.map_or("Running", |status| *status).to_owned()
}

fn completions(row: &Row<'_>) -> String {
    let succeeded = row.int("/status/succeeded");
    match (row.at("/spec/completions").and_then(Value::as_i64), row.int("/spec/parallelism")) {
        (Some(completions), _) => format!("{succeeded}/{completions}"),
        (None, parallelism @ 2..) => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

fn job_duration(row: &Row<'_>) -> String {
    let at = |path| seconds_of(row.text(path));
    at("/status/startTime").map_or_else(String::new, |start| {
        duration::human(at("/status/completionTime").unwrap_or(row.now.unix()) - start)
    })
}

fn suspended(row: &Row<'_>) -> String {
    match row.at("/spec/suspend").and_then(Value::as_bool) {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    }
    .to_owned()
}

fn last_schedule(row: &Row<'_>) -> String {
    let path = "/status/lastScheduleTime";
    if row.at(path).is_some() { row.since(path) } else { "<none>".to_owned() }
}

/// The controller of an object: `statefulset.apps/web`.
fn controller(row: &Row<'_>) -> String {
    let is_controller = |owner: &&Value| owner.get("controller").and_then(Value::as_bool) == Some(true);
    let Some(owner) = row.list_at("/metadata/ownerReferences").iter().find(is_controller) else {
        return "<none>".to_owned();
    };
    let kind = text(owner, "kind").to_lowercase();
    match text(owner, "apiVersion").split_once('/') {
        Some((group, _)) => format!("{kind}.{}/{}", group.to_lowercase(), text(owner, "name")),
        None => format!("{kind}/{}", text(owner, "name")),
    }
}

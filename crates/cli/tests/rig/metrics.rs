//! The families of metrics: those that the Go program has with all controllers at work are recorded in `tests/data/metrics.tsv`.

use std::collections::{BTreeMap, BTreeSet};

/// What upstream shows and we do not: `docs/controller-manager.md` says why of each.
const NOT_HERE: [&str; 17] = [
    "aggregator_",
    "apiserver_",
    "cardinality_enforcement_unexpected_categorizations_total",
    "disabled_metrics_total",
    "go_",
    "hidden_metrics_total",
    "registered_metrics_total",
    "rest_client_exec_plugin_",
    "rest_client_transport_",
    // Only where there is a limit: with --kube-api-qps.
    "rest_client_rate_limiter_duration_seconds",
    // They follow from the object and its status.
    "statefulset_controller_statefulset_",
    // Counted when they first happen, if ever; upstream shows some at zero.
    "endpoint_slice_controller_changes",
    "horizontal_pod_autoscaler_controller_desired_replicas",
    "selinux_warning_controller_selinux_volume_conflict",
    "volume_operation_total_seconds",
    // Who asked, and whether it was in a cache: it depends on how often the page was looked at.
    "authentication_",
    "authorization_",
];

/// Passes that were skipped because a cache was stale: ours are parked.
const SKIPPED: &str = "_stale_sync_skips_total";
/// Whose help says something else, because it counts something else: ours is the whole version, where it is a number.
const OTHER_HELP: &str = "informer_store_resource_version";
/// Fewer would be a page that could not be read.
const COMPARED_MIN: usize = 30;

/// A family of metrics, without its figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Family {
    help: String,
    kind: String,
    labels: BTreeSet<String>,
    buckets: BTreeSet<String>,
}

/// Reads a page.
pub(crate) fn families(page: &str) -> BTreeMap<String, Family> {
    let mut found: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    for line in page.lines() {
        if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            current = name.to_owned();
            found.entry(current.clone()).or_default().help = help.to_owned();
        } else if let Some((_, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            found.entry(current.clone()).or_default().kind = kind.to_owned();
        } else if let Some((_, rest)) = line.split_once('{') {
            let family = found.entry(current.clone()).or_default();
            for (name, value) in rest.split("\",").filter_map(|pair| pair.split_once("=\"")) {
                if name == "le" {
                    family.buckets.insert(value.split('"').next().unwrap_or_default().to_owned());
                } else {
                    family.labels.insert(name.to_owned());
                }
            }
        }
    }
    found
}

/// What was recorded of the Go program.
pub(crate) fn recorded() -> BTreeMap<String, Family> {
    let list = |text: &str| text.split(',').filter(|item| !item.is_empty()).map(str::to_owned).collect();
    let row = |row: &str| {
        let columns: Vec<_> = row.split('\t').collect();
        let help = columns[4].replace("\\t", "\t");
        let family = Family { help, kind: columns[1].into(), labels: list(columns[2]), buckets: list(columns[3]) };
        (columns[0].to_owned(), family)
    };
    include_str!("../data/metrics.tsv").lines().skip(1).map(row).collect()
}

/// The wanted families that a page lacks or has otherwise.
pub(crate) fn differences(wanted: &BTreeMap<String, Family>, page: &BTreeMap<String, Family>) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut same = 0;
    for (name, wanted) in wanted {
        let is_left_out = NOT_HERE.iter().any(|prefix| name.starts_with(prefix)) || name.ends_with(SKIPPED);
        match page.get(name) {
            None if is_left_out => {}
            None => wrong.push(format!("{name} is not there")),
            Some(family) if family == wanted || name == OTHER_HELP => same += 1,
            Some(family) => wrong.push(format!("{name}: it is {family:?}, and should be {wanted:?}")),
        }
    }
    if same < COMPARED_MIN {
        wrong.push(format!("only {same} metrics were compared"));
    }
    wrong
}

//! The requests of a manager to kube-apiserver, by verb and resource.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::bench::table::Table;

/// Verbs of which only the sum is shown: garbage collector and namespace controller use them once per resource there is.
const SUMMED: [&str; 3] = ["deletecollection", "list", "watch"];

/// The namespace of the load, as the benchmark `manager` names it. The one that it deletes is another.
const LOAD: &str = "bench-work";

/// The requests of a manager.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Audit {
    /// For the load: roll-out, status changes, cascade.
    pub(super) load: Calls,
    /// At its start, while it is idle, and for a namespace that is deleted.
    pub(super) rest: Calls,
}

/// The number of calls, by verb and resource.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Calls(BTreeMap<(String, String), usize>);

// === impl Audit ===

impl Audit {
    /// One JSON object per line; a line that was truncated by the end of the server is ignored.
    pub(super) fn read(log: &str) -> Self {
        let mut audit = Self::default();
        for event in log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            let Some(verb) = event["verb"].as_str() else { continue };
            let about = &event["objectRef"];
            let calls = if about["namespace"] == LOAD { &mut audit.load } else { &mut audit.rest };
            *calls.0.entry((verb.to_owned(), resource(about))).or_default() += 1;
        }
        audit
    }
}

// === impl Calls ===

impl Calls {
    /// Both sides of every call, the most frequent first, and the sum.
    pub(super) fn beside(&self, peer: &Self, name: &str) -> Table {
        let ours = self.summed();
        let peers = peer.summed();
        let mut all: Vec<_> = ours.keys().chain(peers.keys()).collect();
        let times = |calls: &BTreeMap<String, usize>, call: &str| calls.get(call).copied().unwrap_or_default();
        all.sort_by_key(|call| (std::cmp::Reverse(times(&ours, call).max(times(&peers, call))), *call));
        all.dedup();
        let rows = all.into_iter().map(|call| row(call, times(&ours, call), times(&peers, call)));
        let sum = |calls: &BTreeMap<String, usize>| calls.values().sum();
        let rows = rows.chain([row("all", sum(&ours), sum(&peers))]);
        let header = ["API calls", "steersman", name, "difference"].map(str::to_owned);
        Table::plain(header.to_vec(), rows.collect())
    }

    fn summed(&self) -> BTreeMap<String, usize> {
        let mut sums = BTreeMap::new();
        for ((verb, resource), times) in &self.0 {
            let resource = if SUMMED.contains(&verb.as_str()) { "(all resources)" } else { resource };
            *sums.entry(format!("{verb} {resource}")).or_default() += times;
        }
        sums
    }
}

/// As kubectl names it, with its group; discovery has none.
fn resource(reference: &Value) -> String {
    let Some(resource) = reference["resource"].as_str() else { return "(discovery)".to_owned() };
    let group = reference["apiGroup"].as_str().map(|group| format!(".{group}")).unwrap_or_default();
    let part = reference["subresource"].as_str().map(|part| format!("/{part}")).unwrap_or_default();
    format!("{resource}{group}{part}")
}

fn row(call: &str, ours: usize, peer: usize) -> Vec<String> {
    let difference = match ours.abs_diff(peer) {
        0 => "0".to_owned(),
        more if ours > peer => format!("+{more}"),
        less => format!("−{less}"),
    };
    vec![call.to_owned(), ours.to_string(), peer.to_string(), difference]
}

#[cfg(test)]
mod tests {
    use super::Audit;

    const OURS: &str = r#"
{"verb":"create","objectRef":{"resource":"pods","namespace":"a"}}
{"verb":"create","objectRef":{"resource":"pods","namespace":"b"}}
{"verb":"create","objectRef":{"resource":"pods","namespace":"bench-work"}}
{"verb":"update","objectRef":{"resource":"deployments","apiGroup":"apps","subresource":"status"}}
{"verb":"list","objectRef":{"resource":"pods"}}
{"verb":"get","requestURI":"/api"}
{"verb":"cre"#;
    const PEER: &str = r#"
{"verb":"create","objectRef":{"resource":"pods"}}
{"verb":"update","objectRef":{"resource":"deployments","apiGroup":"apps","subresource":"status"}}
{"verb":"patch","objectRef":{"resource":"nodes"}}
{"verb":"list","objectRef":{"resource":"pods"}}
{"verb":"list","objectRef":{"resource":"secrets"}}"#;

    #[test]
    fn calls_are_counted_by_verb_and_resource_and_shown_side_by_side() {
        let ours = Audit::read(OURS);
        let peer = Audit::read(PEER);
        assert_eq!(
            ours.load.beside(&peer.load, "peer").to_string(),
            "| API calls   | steersman | peer | difference |\n\
             |-------------|----------:|-----:|-----------:|\n\
             | create pods |         1 |    0 |         +1 |\n\
             | all         |         1 |    0 |         +1 |\n"
        );
        assert_eq!(
            ours.rest.beside(&peer.rest, "peer").to_string(),
            "| API calls                      | steersman | peer | difference |\n\
             |--------------------------------|----------:|-----:|-----------:|\n\
             | create pods                    |         2 |    1 |         +1 |\n\
             | list (all resources)           |         1 |    2 |         −1 |\n\
             | get (discovery)                |         1 |    0 |         +1 |\n\
             | patch nodes                    |         0 |    1 |         −1 |\n\
             | update deployments.apps/status |         1 |    1 |          0 |\n\
             | all                            |         5 |    5 |          0 |\n"
        );
    }
}

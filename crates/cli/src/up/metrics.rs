//! The source of `kubectl top`: the metrics of simulated nodes, for the API server.

use serde_json::Value;
use steersman_apiserver::aggregated::{Aggregated, AggregatedVersion};
use steersman_nodes::Metrics;
use steersman_nodes::metrics::GroupVersion;

/// The metrics of nodes that are built after the server.
#[derive(Clone, Default)]
pub(super) struct NodeMetrics(pub(super) Metrics);

// === impl NodeMetrics ===

impl Aggregated for NodeMetrics {
    fn versions(&self) -> Vec<AggregatedVersion> {
        let version = |held: GroupVersion| AggregatedVersion {
            group: held.group.to_owned(),
            version: held.version.to_owned(),
            resources: held.resources,
        };
        self.0.versions().into_iter().map(version).collect()
    }

    fn get(&self, path: &str, query: &str) -> (u16, Value) {
        self.0.get(path, query)
    }
}

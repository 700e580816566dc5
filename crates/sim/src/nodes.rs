//! The nodes of a world, with all that simulated nodes can have: metrics, volumes, attachments, devices.

use std::sync::Arc;

use serde_json::Value;
use steersman_apiserver::aggregated::{Aggregated, AggregatedVersion};
use steersman_base::Clock;
use steersman_nodes::metrics::GroupVersion;
use steersman_nodes::{AttacherOptions, DevicesOptions, Metrics, Nodes, NodesOptions, ProvisionerOptions};
use steersman_runtime::{Manager, ManagerOptions};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::line::Line;
use crate::plan::Options;

/// The metrics of nodes that are built after the server.
struct NodeMetrics(Metrics);

/// Returns the metrics APIs, for the server.
pub(crate) fn metrics_apis(metrics: &Metrics) -> Arc<dyn Aggregated> {
    Arc::new(NodeMetrics(metrics.clone()))
}

/// Starts the nodes of a world; they run as long as it does.
///
/// # Panics
/// There are more nodes than addresses.
pub(crate) fn start(line: &Line, clock: &Clock, metrics: Metrics, of: &Options, world: &mut JoinSet<()>) -> Nodes {
    let options = ManagerOptions::default().clock(clock.clone());
    let manager = Manager::new(line.client(None), options).expect("nothing is shared with another manager");
    let labels = [("role", ""), ("disk", "ssd")];
    let labels = labels.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let options = NodesOptions {
        labels,
        metrics: of.furnished.then_some(metrics),
        provisioner: of.furnished.then(ProvisionerOptions::default),
        attacher: of.furnished.then(AttacherOptions::default),
        devices: of.furnished.then(DevicesOptions::default),
        ..NodesOptions::count(of.nodes)
    };
    let nodes = Nodes::build(&manager.context(), options).expect("a few nodes have addresses");
    world.spawn(async move {
        let _ = manager.run(CancellationToken::new()).await;
    });
    nodes
}

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

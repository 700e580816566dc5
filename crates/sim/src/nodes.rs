//! The nodes of a world, with all that simulated nodes can have: metrics, volumes, attachments, devices.

use steersman_base::Clock;
use steersman_controllers::node_ipam;
use steersman_nodes::{AttacherOptions, DevicesOptions, Metrics, Nodes, NodesOptions, ProvisionerOptions};
use steersman_runtime::{Manager, ManagerOptions};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::line::Line;
use crate::plan::Options;

/// Starts the nodes of a world; they run as long as it does.
///
/// # Panics
/// There are more nodes than addresses.
pub(crate) fn start(line: &Line, clock: &Clock, metrics: Metrics, of: &Options, world: &mut JoinSet<()>) -> Nodes {
    let options = ManagerOptions::default().clock(clock.clone()).without_metrics();
    let manager = Manager::new(line.client(None), options).expect("nothing is shared with another manager");
    let labels = [("role", ""), ("disk", "ssd")];
    let labels = labels.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let options = NodesOptions::count(of.nodes)
        .labels(labels)
        .pod_ranges(!of.furnished || !of.runs(&node_ipam::DESCRIPTOR))
        .metrics(of.furnished.then_some(metrics))
        .provisioner(of.furnished.then(ProvisionerOptions::default))
        .attacher(of.furnished.then(AttacherOptions::default))
        .devices(of.furnished.then(DevicesOptions::default));
    let nodes = Nodes::build(&manager.context(), options).expect("a few nodes have addresses");
    world.spawn(async move {
        let _ = manager.run(CancellationToken::new()).await;
    });
    nodes
}

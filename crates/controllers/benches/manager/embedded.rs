//! Everything in one process: `steersman up`.

use std::path::PathBuf;

use crate::api::Api;
use crate::managers::{ours_on, steersman};
use crate::process::{Process, Scratch};
use crate::sizes::{Sizes, Workloads};
use crate::steps::{self, Cluster};
use crate::workloads::{Steps, until_nodes_ready};
use crate::{report, report_memory, report_time};

const COLLECTOR: &str = "garbage-collector-controller";
/// All that are on by default.
pub(crate) const ALL: &str = "*";

/// A running `steersman up`.
pub(crate) struct Up {
    pub(crate) process: Process,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) api: Api,
}

/// Without nodes, as beside the Go manager, whose rig has none; and then with nodes.
pub(crate) async fn clusters(sizes: &Sizes) {
    let scratch = Scratch::new();
    let mut up = Up::start(&scratch, 0, ALL).await;
    let idle = up.process.usage();
    report_memory("memory, idle", idle.resident_bytes);
    report_memory("memory, idle, heap and stacks", idle.private_bytes);
    let cluster = Cluster::prepare(up.api.clone(), sizes).await;
    up.process.quiet().await;
    report_time("roll-out, wall", cluster.roll_out().await);
    up.process.quiet().await;
    report_time("status changes, wall", cluster.change_statuses().await);
    up.process.quiet().await;
    report_time("cascade delete, wall", cluster.cascade().await);
    up.process.quiet().await;
    cluster.fill_namespace().await;
    up.process.quiet().await;
    report_time("namespace delete, wall", cluster.delete_namespace().await);
    report_memory("memory, peak of the run", up.process.usage().peak_bytes);
    up.process.end().await;

    let mut up = Up::start(&scratch, sizes.nodes, ALL).await;
    let cluster = Cluster::prepare(up.api.clone(), sizes).await;
    cluster.add_services().await;
    up.process.quiet().await;
    report_time("running and in EndpointSlices, wall", cluster.run_all().await);
    up.process.end().await;
}

/// What the garbage collector adds to a manager, in a process of its own so that the API server's memory is not counted.
pub(crate) async fn graph(sizes: &Sizes) {
    let scratch = Scratch::new();
    let up = Up::start(&scratch, 0, "none").await;
    let mut manager = ours_on(&up.kubeconfig, COLLECTOR, &scratch);
    manager.quiet().await;
    let empty = manager.usage().resident_bytes;
    manager.end().await;

    steps::fill_graph(&up.api, sizes.graph).await;
    let mut manager = ours_on(&up.kubeconfig, COLLECTOR, &scratch);
    report_time("ownership graph, process start to all quiet", manager.quiet().await);
    let usage = manager.usage();
    report_time("ownership graph, CPU", usage.cpu);
    report_memory("ownership graph, memory", usage.resident_bytes.saturating_sub(empty));
    manager.end().await;
    up.process.end().await;
}

/// Jobs, sets and CronJobs. Each step has a cluster of its own, so that none finds what another left.
pub(crate) async fn workloads(sizes: &Workloads) {
    let scratch = Scratch::new();

    let mut up = Up::start(&scratch, sizes.nodes, ALL).await;
    let steps = Steps::prepare(up.api.clone(), sizes).await;
    up.process.quiet().await;
    let (took, writes) = steps.job().await;
    report_time("Indexed Job, wall", took);
    report("Indexed Job, completions per status write", sizes.completions as f64 / writes.max(1) as f64, "");
    up.process.quiet().await;
    report_time("StatefulSets, wall", steps.sets().await);
    up.process.end().await;

    // So many nodes renew their leases that the process is never quiet.
    let up = Up::launch(&scratch, sizes.daemons, ALL).await;
    let steps = Steps::prepare(up.api.clone(), sizes).await;
    until_nodes_ready(&up.api, sizes.daemons).await;
    report_time("DaemonSet, wall", steps.daemons(sizes.daemons).await);
    up.process.end().await;

    let up = Up::start(&scratch, 0, ALL).await;
    let steps = Steps::prepare(up.api.clone(), sizes).await;
    steps.add_cron_jobs().await;
    report_time("CronJobs, wall", steps.cron_jobs().await);
    up.process.end().await;
}

// === impl Up ===

impl Up {
    /// Ready, and quiet.
    pub(crate) async fn start(scratch: &Scratch, nodes: usize, controllers: &str) -> Self {
        let mut up = Self::launch(scratch, nodes, controllers).await;
        up.process.quiet().await;
        up
    }

    /// Ready.
    pub(crate) async fn launch(scratch: &Scratch, nodes: usize, controllers: &str) -> Self {
        let kubeconfig = scratch.file(&format!("up-{nodes}.kubeconfig"));
        let args = [
            "up".to_owned(),
            "--ephemeral".to_owned(),
            format!("--nodes={nodes}"),
            format!("--controllers={controllers}"),
            "--port=0".to_owned(),
            format!("--kubeconfig-out={}", kubeconfig.display()),
        ];
        let process = Process::start(&steersman(), &args, scratch);
        let api = Api::connect(&kubeconfig).await;
        Self { process, kubeconfig, api }
    }
}

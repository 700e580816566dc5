//! A manager on the rig's kube-apiserver.

use std::time::Duration;

use crate::api::Api;
use crate::autoscalers;
use crate::managers::{ALL, Manager, Rig, WORKLOADS, steersman};
use crate::measured::{AuditLog, Measured};
use crate::process::{Process, Scratch};
use crate::sizes::{Sizes, Workloads};
use crate::steps::{self, Cluster};
use crate::workloads::Steps;
use crate::{report_memory, report_of, report_time};

/// For kube-apiserver to write the ends of watches into the audit log.
const AUDIT_FLUSH: Duration = Duration::from_secs(1);
/// For kube-apiserver to calm down between two managers, and to drop the first one's watches.
const PAUSE: Duration = Duration::from_secs(3);

/// Longer than kube-apiserver needs for the first byte of 30,000 pods: until then a manager only seems to be done.
const LONG_LIST: Duration = Duration::from_secs(6);

/// One manager from its start to its end.
pub(crate) async fn work(sizes: &Sizes, manager: Manager) {
    let scratch = Scratch::new();
    let (cluster, mut measured) = idle(sizes, manager, &scratch).await;
    measured.begin();
    tokio::time::sleep(sizes.idle).await;
    measured.used("idle");

    deployments(&cluster, &mut measured).await;
    cluster.fill_namespace().await;
    measured.process.quiet().await;
    measured.begin();
    let took = cluster.delete_namespace().await;
    measured.finish("namespace delete", took).await;
    end(measured).await;
    tokio::time::sleep(AUDIT_FLUSH).await;
}

/// As [`work`], without the idle minute and the namespace.
pub(crate) async fn load(sizes: &Sizes, manager: Manager) {
    let scratch = Scratch::new();
    let (cluster, mut measured) = idle(sizes, manager, &scratch).await;
    report_time("start, CPU", measured.process.usage().cpu);
    deployments(&cluster, &mut measured).await;
    end(measured).await;
}

/// A manager that has started on a prepared cluster and is quiet; its memory is reported.
async fn idle<'a>(sizes: &'a Sizes, manager: Manager, scratch: &Scratch) -> (Cluster<'a>, Measured) {
    let rig = Rig::around_us();
    let cluster = Cluster::prepare(Api::connect(&rig.admin()).await, sizes).await;
    let mut measured = Measured::new(manager.start(&rig, ALL, scratch));
    measured.process.quiet().await;
    let idle = measured.process.usage();
    report_memory("memory, idle", idle.resident_bytes);
    report_memory("memory, idle, heap and stacks", idle.private_bytes);
    (cluster, measured)
}

/// The end of a manager; the most memory that it had is reported.
async fn end(mut measured: Measured) {
    report_memory("memory, peak of the run", measured.process.usage().peak_bytes);
    measured.process.end().await;
}

/// Roll-out, status changes and cascade.
async fn deployments(cluster: &Cluster<'_>, measured: &mut Measured) {
    measured.begin();
    let took = cluster.roll_out().await;
    measured.finish("roll-out", took).await;

    measured.begin();
    let took = cluster.change_statuses().await;
    measured.finish("status changes", took).await;

    measured.begin();
    let took = cluster.cascade().await;
    measured.finish("cascade delete", took).await;
}

/// As [`work`], with our simulated nodes: a cluster whose pods run.
pub(crate) async fn running(sizes: &Sizes, manager: Manager) {
    let scratch = Scratch::new();
    let rig = Rig::around_us();
    let mut nodes = simulated_nodes(&rig, sizes.nodes, &scratch);
    let cluster = Cluster::prepare(Api::connect(&rig.admin()).await, sizes).await;
    cluster.add_services().await;
    let mut process = manager.start(&rig, ALL, &scratch);
    process.quiet().await;
    nodes.quiet().await;
    report_time("running and in EndpointSlices, wall", cluster.run_all().await);
    process.end().await;
    nodes.end().await;
}

/// A full cluster on which each manager starts in turn. Ours is the first: what there is still to write, it writes.
pub(crate) async fn restart(sizes: &Sizes) {
    let scratch = Scratch::new();
    let rig = Rig::around_us();
    let api = Api::connect(&rig.admin()).await;
    steps::fill(&api, &sizes.full).await;
    let audit = AuditLog::of_rig();
    for manager in [Manager::Ours, Manager::Go] {
        tokio::time::sleep(PAUSE).await;
        let before = audit.calls().unwrap_or_default();
        let mut process = manager.start(&rig, ALL, &scratch);
        let took = process.quiet_for(LONG_LIST).await;
        let usage = process.usage();
        report_of(manager, "restart, wall until quiet", took.as_secs_f64(), "s");
        report_of(manager, "restart, CPU", usage.cpu.as_secs_f64(), "s");
        report_of(manager, "restart, memory, peak", usage.peak_bytes as f64 / 1e6, "MB");
        report_of(manager, "restart, memory, once quiet", usage.resident_bytes as f64 / 1e6, "MB");
        process.end().await;
        tokio::time::sleep(AUDIT_FLUSH).await;
        if let Some(calls) = audit.calls() {
            report_of(manager, "restart, API calls", (calls - before) as f64, "calls");
        }
    }
}

/// Jobs, sets and CronJobs, with our simulated nodes.
pub(crate) async fn workloads(sizes: &Workloads, manager: Manager) {
    let scratch = Scratch::new();
    let rig = Rig::around_us();
    let mut nodes = simulated_nodes(&rig, sizes.nodes, &scratch);
    let steps = Steps::prepare(Api::connect(&rig.admin()).await, sizes).await;
    let mut measured = Measured::new(manager.start(&rig, WORKLOADS, &scratch));
    measured.process.quiet().await;
    nodes.quiet().await;

    measured.begin();
    let (took, _) = steps.job().await;
    measured.finish("Indexed Job", took).await;

    measured.begin();
    let took = steps.sets().await;
    measured.finish("StatefulSets", took).await;

    measured.begin();
    steps.add_cron_jobs().await;
    let took = steps.cron_jobs().await;
    measured.finish("CronJobs", took).await;
    steps.remove_cron_jobs().await;
    measured.process.quiet().await;

    // Last: a scheduler would put the pods of others there.
    steps.add_nodes().await;
    measured.process.quiet().await;
    measured.begin();
    let took = steps.daemons(sizes.nodes + sizes.daemons).await;
    measured.finish("DaemonSet", took).await;

    // These have nodes of their own, and a scheduler.
    nodes.end().await;
    autoscalers::on_rig(&rig, sizes, &mut measured).await;

    end(measured).await;
    tokio::time::sleep(AUDIT_FLUSH).await;
}

/// Our simulated nodes, on a rig.
pub(crate) fn simulated_nodes(rig: &Rig, count: usize, scratch: &Scratch) -> Process {
    let args = ["nodes".to_owned(), format!("--kubeconfig={}", rig.admin().display()), format!("--count={count}")];
    Process::start(&steersman(), &args, scratch)
}

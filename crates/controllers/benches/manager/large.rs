//! Both managers, one after the other, on one large cluster.

use std::time::{Duration, Instant};

use crate::api::{Api, Call, until_within};
use crate::load;
use crate::managers::{ALL, Manager, Rig};
use crate::population::Population;
use crate::process::{Process, Scratch, Server};
use crate::report_of;

/// For kube-apiserver to calm down, and to drop the watches of the manager before.
const PAUSE: Duration = Duration::from_secs(10);
/// For a manager to lead with all its caches.
const PATIENCE: Duration = Duration::from_secs(300);
/// A manager has started when it takes no more than this of a core for so long; heartbeats go on.
const CALM_FOR: Duration = Duration::from_secs(5);
const BUSY_PERCENT_MAX: u32 = 30;
const STEADY: Duration = Duration::from_secs(60);

pub(crate) async fn both(population: Population) {
    let scratch = Scratch::new();
    let rig = Rig::around_us();
    let api = Api::connect(&rig.admin()).await;
    let heartbeats = population.fill(&api, &rig, &scratch).await;
    // Ours is the first: what there is still to write, it writes.
    for manager in [Manager::Ours, Manager::Go] {
        tokio::time::sleep(PAUSE).await;
        start(manager, &api, &rig, &scratch).await.end().await;
    }
    heartbeats.abort();
}

async fn start(manager: Manager, api: &Api, rig: &Rig, scratch: &Scratch) -> Process {
    let server = Server::of_rig(&rig.file(""));
    let witnesses = Witnesses::prepare(api, manager).await;
    // Between two heartbeats of each node: what the server has to do anyhow.
    let before = server.cpu();
    tokio::time::sleep(PAUSE).await;
    let idle = (server.cpu() - before).as_secs_f64() / PAUSE.as_secs_f64();

    let before = server.cpu();
    let since = Instant::now();
    let mut process = manager.start_elected(rig, ALL, scratch);
    witnesses.until_served().await;
    report_of(manager, "start to caches synced and leading, wall", since.elapsed().as_secs_f64(), "s");
    process.calm(CALM_FOR, BUSY_PERCENT_MAX).await;
    let usage = process.usage();
    let served = (server.cpu() - before).as_secs_f64() - idle * since.elapsed().as_secs_f64();
    report_of(manager, "start, CPU", usage.cpu.as_secs_f64(), "s");
    report_of(manager, "start, API server's CPU", served.max(0.0), "s");
    report_of(manager, "start, memory, peak", usage.peak_bytes as f64 / 1e6, "MB");

    tokio::time::sleep(STEADY).await;
    let steady = process.usage();
    report_of(manager, "steady for a minute, CPU", (steady.cpu - usage.cpu).as_secs_f64(), "s");
    report_of(manager, "steady, memory", steady.resident_bytes as f64 / 1e6, "MB");
    process
}

/// Objects by which one sees from outside that a manager leads and has its caches.
struct Witnesses<'a> {
    api: &'a Api,
    namespace: &'static str,
}

// === impl Witnesses ===

impl<'a> Witnesses<'a> {
    /// A ConfigMap whose owner is gone, a Deployment and a Service. No lease is left that one would have to wait for.
    async fn prepare(api: &'a Api, manager: Manager) -> Self {
        let namespace = if manager == Manager::Ours { "bench-witness-ours" } else { "bench-witness-go" };
        api.create_namespace(namespace).await;
        let maps = load::core(namespace, "configmaps");
        let dead = "00000000-0000-4000-8000-ffffffffffff";
        api.send(Call::create(&maps, &load::owned_map("gone", dead, 0))).await;
        api.send(Call::create(&load::deployments(namespace), &load::deployment(0, 1))).await;
        api.send(Call::create(&load::core(namespace, "services"), &load::service(0))).await;
        let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager";
        if api.is_there(lease).await {
            api.send(Call::delete(lease.to_owned())).await;
        }
        Self { api, namespace }
    }

    /// The garbage collector deletes only when it has the metadata of every resource; the others have their own caches.
    async fn until_served(&self) {
        let map = format!("{}/gone-0", load::core(self.namespace, "configmaps"));
        let pods = load::pods(self.namespace);
        let slices = load::slices(self.namespace);
        until_within(PATIENCE, "a manager that leads", || async {
            self.api.count(&pods).await > 0 && self.api.count(&slices).await > 0 && !self.api.is_there(&map).await
        })
        .await;
    }
}

//! Whole managers: `steersman controller-manager`, and on the rig kube-controller-manager with the same controllers.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use steersman_runtime::connection;

use crate::process::{Process, STEERSMAN, Up, temporary};
use crate::{Side, millis, report};

const STARTS: usize = 5;
/// After the start, before idle counts.
const CALM: Duration = Duration::from_secs(5);
const IDLE: Duration = Duration::from_secs(30);
/// For a standby to fill its caches.
const STANDBY: Duration = Duration::from_secs(4);
/// The default lease lasts 15 s, and a standby tries every 2 s.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Managers of one side on one server.
struct Managers<'a> {
    side: Side,
    kubeconfig: &'a Path,
    client: Client,
    namespace: String,
    sets: usize,
}

/// A start over TLS; each start finds a ReplicaSet without its pod.
pub(crate) async fn on_ours() {
    let up = Up::start();
    let mut managers = Managers::new(Side::Ours, up.kubeconfig()).await;
    let mut best = Duration::MAX;
    for _ in 0..STARTS {
        let (manager, took) = managers.start_to_first_pod().await;
        best = best.min(took);
        manager.terminate();
        manager.ended().await;
    }
    report(Side::Ours, "manager start to first pod, steersman up over TLS", millis(best), "ms");
}

pub(crate) async fn on_rig(kubeconfig: &Path) {
    for side in [Side::Ours, Side::Peer] {
        let mut managers = Managers::new(side, kubeconfig).await;
        let (first, took) = managers.start_to_first_pod().await;
        report(side, "manager start to first pod, kube-apiserver", millis(took), "ms");

        tokio::time::sleep(CALM).await;
        let before = first.processor_time();
        let start = Instant::now();
        tokio::time::sleep(IDLE).await;
        let share = (first.processor_time() - before).as_secs_f64() / start.elapsed().as_secs_f64();
        report(side, "manager idle: memory", first.resident_bytes() as f64 / 1e6, "MB");
        report(side, "manager idle: memory without mapped files", first.anonymous_bytes() as f64 / 1e6, "MB");
        report(side, "manager idle: CPU", share * 100.0, "%");

        let second = managers.start();
        tokio::time::sleep(STANDBY).await;
        let start = Instant::now();
        first.terminate();
        managers.next_pod().await;
        report(side, "fail-over to next pod, leader ends", start.elapsed().as_secs_f64(), "s");
        first.ended().await;

        let third = managers.start();
        tokio::time::sleep(STANDBY).await;
        let start = Instant::now();
        let mut second = second;
        second.kill();
        managers.next_pod().await;
        report(side, "fail-over to next pod, leader killed", start.elapsed().as_secs_f64(), "s");
        drop(third);
    }
}

// === impl Managers ===

impl<'a> Managers<'a> {
    async fn new(side: Side, kubeconfig: &'a Path) -> Self {
        let options = connection::Options::default().kubeconfig(kubeconfig);
        let client = connection::connect(options).await.expect("a client");
        let namespace = format!("bench-managers-{side:?}").to_lowercase();
        let object = serde_json::from_value(json!({"metadata": {"name": namespace}})).expect("a namespace");
        Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &object).await.expect("a namespace");
        Self { side, kubeconfig, client, namespace, sets: 0 }
    }

    fn start(&self) -> Process {
        let mut command = match self.side {
            Side::Ours => {
                let mut command = Command::new(STEERSMAN);
                command.arg("controller-manager");
                command
            }
            Side::Peer => {
                let bin = std::env::var_os("STEERSMAN_RIG_BIN").expect("the rig says where its binaries are");
                Command::new(Path::new(&bin).join("kube-controller-manager"))
            }
        };
        let controllers: Vec<_> = steersman_controllers::ALL.iter().map(|descriptor| descriptor.name).collect();
        let certificates = temporary("-certificates");
        command
            .arg(format!("--kubeconfig={}", self.kubeconfig.display()))
            .arg(format!("--controllers={}", controllers.join(",")))
            .arg(format!("--leader-elect-resource-name={}", self.namespace))
            .arg(format!("--secure-port={}", free_port()))
            .arg(format!("--cert-dir={}", certificates.display()));
        Process::start(&mut command)
    }

    /// Starts a manager that has something to do: one pod.
    async fn start_to_first_pod(&mut self) -> (Process, Duration) {
        let name = self.create_set().await;
        let start = Instant::now();
        let manager = self.start();
        self.pod_of(&name).await;
        (manager, start.elapsed())
    }

    /// Something new to do, and that it is done.
    async fn next_pod(&mut self) {
        let name = self.create_set().await;
        self.pod_of(&name).await;
    }

    async fn create_set(&mut self) -> String {
        self.sets += 1;
        let name = format!("set-{}", self.sets);
        let labels = json!({"set": format!("set-{}", self.sets)});
        let containers = json!([{"name": "main", "image": "example/none"}]);
        let template = json!({"metadata": {"labels": labels}, "spec": {"containers": containers}});
        let spec = json!({"replicas": 1, "selector": {"matchLabels": labels}, "template": template});
        let object = serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).expect("a set");
        let sets = Api::<ReplicaSet>::namespaced(self.client.clone(), &self.namespace);
        sets.create(&PostParams::default(), &object).await.expect("the set is made");
        name
    }

    async fn pod_of(&self, set: &str) {
        let pods = Api::<Pod>::namespaced(self.client.clone(), &self.namespace);
        let of_set = ListParams::default().labels(&format!("set={set}"));
        let there = async {
            while pods.list(&of_set).await.expect("a list").items.is_empty() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        tokio::time::timeout(PATIENCE, there).await.expect("somebody makes the pod");
    }
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its address").port()
}

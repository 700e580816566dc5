//! The steps that every cluster runs. A step returns how long it took until the cluster reached the wanted state.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::api::{Api, Call, until};
use crate::load;
use crate::sizes::{Full, Sizes};

/// Where the Deployments are.
const WORK: &str = "bench-work";
/// The namespace that is deleted.
const MIXED: &str = "bench-mixed";

/// A cluster with a namespace for the Deployments.
pub(crate) struct Cluster<'a> {
    api: Api,
    sizes: &'a Sizes,
}

// === impl Cluster ===

impl<'a> Cluster<'a> {
    pub(crate) async fn prepare(api: Api, sizes: &'a Sizes) -> Self {
        api.create_namespace(WORK).await;
        Self { api, sizes }
    }

    /// Each Deployment that will be gets its Service.
    pub(crate) async fn add_services(&self) {
        let path = load::core(WORK, "services");
        let calls = (0..self.sizes.deployments).map(|at| Call::create(&path, &load::service(at)));
        self.api.send_all(calls.collect()).await;
    }

    /// Deployments are made; over when all their pods exist.
    pub(crate) async fn roll_out(&self) -> Duration {
        let calls = self.deployments();
        let since = Instant::now();
        self.api.send_all(calls).await;
        self.api.until_count(&load::pods(WORK), self.sizes.pods()).await;
        since.elapsed()
    }

    /// Deployments with Services are made; over when all their pods run and are ready in EndpointSlices.
    pub(crate) async fn run_all(&self) -> Duration {
        let calls = self.deployments();
        let since = Instant::now();
        self.api.send_all(calls).await;
        self.until_ready(self.sizes.pods()).await;
        // Looked at only now: all slices are a large answer.
        until("all pods in EndpointSlices", || async {
            let slices = self.api.get(&load::slices(WORK)).await;
            let endpoints = list(&slices["items"]).flat_map(|slice| list(&slice["endpoints"]));
            endpoints.filter(|endpoint| endpoint["conditions"]["ready"] == true).count() == self.sizes.pods()
        })
        .await;
        since.elapsed()
    }

    /// Every pod becomes ready, and then unready; over when the Deployments say so, each time.
    pub(crate) async fn change_statuses(&self) -> Duration {
        let pods = self.api.get(&load::pods(WORK)).await;
        let names: Vec<_> = list(&pods["items"]).map(|pod| text(&pod["metadata"]["name"])).collect();
        let mut took = Duration::ZERO;
        for (ready, wanted) in [(true, names.len()), (false, 0)] {
            let calls = names.iter().enumerate().map(|(at, name)| {
                Call::patch(format!("{}/{name}/status", load::pods(WORK)), &load::pod_status(at, ready))
            });
            let calls = calls.collect();
            let since = Instant::now();
            self.api.send_all(calls).await;
            self.until_ready(wanted).await;
            took += since.elapsed();
        }
        took
    }

    /// The Deployments are deleted; over when nothing that they owned is left.
    pub(crate) async fn cascade(&self) -> Duration {
        let path = load::deployments(WORK);
        let names = (0..self.sizes.deployments).map(load::deployment_name);
        let calls = names.map(|name| Call::delete(format!("{path}/{name}"))).collect();
        let since = Instant::now();
        self.api.send_all(calls).await;
        self.api.until_count(&load::pods(WORK), 0).await;
        self.api.until_count(&load::replica_sets(WORK), 0).await;
        since.elapsed()
    }

    /// A namespace full of different things is made, and is there when this returns.
    pub(crate) async fn fill_namespace(&self) {
        self.api.create_namespace(MIXED).await;
        self.api.send_all(load::mixed(MIXED, &self.sizes.mixed)).await;
    }

    /// That namespace is deleted; over when it is gone.
    pub(crate) async fn delete_namespace(&self) -> Duration {
        let path = format!("/api/v1/namespaces/{MIXED}");
        let since = Instant::now();
        self.api.send(Call::delete(path.clone())).await;
        self.api.until_gone(&path).await;
        since.elapsed()
    }

    fn deployments(&self) -> Vec<Call> {
        let path = load::deployments(WORK);
        let replicas = self.sizes.replicas;
        (0..self.sizes.deployments).map(|at| Call::create(&path, &load::deployment(at, replicas))).collect()
    }

    async fn until_ready(&self, wanted: usize) {
        until(&format!("{wanted} pods ready, by the status of their Deployments"), || async {
            let deployments = self.api.get(&load::deployments(WORK)).await;
            let ready = list(&deployments["items"]).filter_map(|one| one["status"]["readyReplicas"].as_u64());
            ready.sum::<u64>() == wanted as u64
        })
        .await;
    }
}

/// ReplicaSets with all their pods, and large ConfigMaps: what a manager finds when it restarts.
pub(crate) async fn fill(api: &Api, full: &Full) {
    for number in 0..full.namespaces {
        let namespace = format!("bench-full-{number}");
        api.create_namespace(&namespace).await;
        let sets = load::replica_sets(&namespace);
        let pods = load::pods(&namespace);
        let mut calls = Vec::new();
        for at in 0..full.sets_per_namespace {
            let name = format!("set-{at}");
            let set = api.send(Call::create(&sets, &load::replica_set(&name, full.pods_per_set))).await;
            let uid = text(&set["metadata"]["uid"]);
            let status = load::replica_set_status(full.pods_per_set);
            calls.push(Call::patch(format!("{sets}/{name}/status"), &status));
            calls.extend((0..full.pods_per_set).map(|at| Call::create(&pods, &load::owned_pod(&name, &uid, at))));
        }
        let maps = load::core(&namespace, "configmaps");
        calls.extend((0..full.config_maps / full.namespaces).map(|at| Call::create(&maps, &load::large_map(at))));
        api.send_all(calls).await;
    }
}

/// ConfigMaps that own ConfigMaps.
pub(crate) async fn fill_graph(api: &Api, (objects, owners): (usize, usize)) {
    const NAMESPACE: &str = "bench-graph";
    api.create_namespace(NAMESPACE).await;
    let path = load::core(NAMESPACE, "configmaps");
    for at in 0..owners {
        let name = format!("owner-{at}");
        let owner = api.send(Call::create(&path, &serde_json::json!({"metadata": {"name": name}}))).await;
        let uid = text(&owner["metadata"]["uid"]);
        let owned = (0..objects / owners - 1).map(|at| Call::create(&path, &load::owned_map(&name, &uid, at)));
        api.send_all(owned.collect()).await;
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

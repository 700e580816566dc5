//! What operators and accidents do to nodes: drains, lost zones, rolling upgrades.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use parking_lot::Mutex;
use serde_json::json;
use steersman_base::MicroTime;
use steersman_testing::objects::{self, WorkloadBuilder as _};
use steersman_testing::{Builder, Failure, NodesOptions, TestCluster, expect, expect_eq};

use crate::scenarios::disruption::{budget, evict, until_counts};
use crate::scenarios::node_lifecycle::{
    LEASES, UNREACHABLE, condition, impatience, moving_set_after, node_of, node_says, pods_of, ready_on,
};
use crate::scenarios::support::controllers::{self, Controller};

scenarios! {
    a_drain_waits_for_the_budget_and_its_pods_come_up_elsewhere on maintained alone,
    a_lost_zone_is_tainted_at_the_rate_and_nothing_is_evicted_while_all_are_lost on two_zones alone,
    a_rolling_upgrade_of_the_nodes_keeps_the_budget on maintained alone,
}

const MAINTAINED: &[Controller] = &[
    controllers::DEPLOYMENT,
    controllers::REPLICA_SET,
    controllers::DISRUPTION,
    controllers::NODE_LIFECYCLE,
    controllers::TAINT_EVICTION,
];
const MOVING: &[Controller] = &[controllers::NODE_LIFECYCLE, controllers::TAINT_EVICTION, controllers::REPLICA_SET];

/// Between two taints of a zone.
const EVERY: Duration = Duration::from_secs(2);
/// The delay with which a watch may send a write, on the rig.
const LATE: Duration = Duration::from_millis(500);
/// Longer than all nodes of a zone take to be lost, shorter than it takes to see that nothing happens.
const TOLERATED: i64 = 6;
const UPGRADED: &str = "v1.38.0";

/// A cluster of three nodes, whose pods have a budget.
pub(crate) fn maintained() -> Builder {
    let nodes = NodesOptions::count(3).lease_duration(LEASES);
    TestCluster::builder().controllers(MAINTAINED).options(impatience()).nodes_with(nodes)
}

/// A cluster of three nodes in each of two zones.
pub(crate) fn two_zones() -> Builder {
    let nodes = NodesOptions::count(6).lease_duration(LEASES).zones(["a", "b"]);
    let options = impatience().eviction_rate(1.0 / EVERY.as_secs_f64());
    TestCluster::builder().controllers(MOVING).options(options).nodes_with(nodes)
}

/// A node is cordoned, and its pods are evicted. While the budget allows nothing, nothing happens to them; when it allows one, they
/// go one after the other, each when another one is ready elsewhere.
pub(crate) async fn a_drain_waits_for_the_budget_and_its_pods_come_up_elsewhere(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    run_web(cluster, 4).await?;
    until_counts(cluster, [4, 4, 4, 0]).await?;
    let watched = Available::of(cluster).await?;
    let ready = ready_on(cluster, "web").await?;
    let on = |node: &str| ready.iter().filter(|(other, _)| other == node).count();
    let names = cluster.nodes().names();
    let Some(node) = names.iter().max_by_key(|node| on(node)) else { return Err(Failure::new("no node")) };
    expect(on(node) == 2, "two of four pods are on one of three nodes", &ready)?;

    cordon(cluster, node, true).await?;
    let taints = async || taints(cluster, node).await;
    cluster.until_eq("it is tainted", taints, vec!["node.kubernetes.io/unschedulable:NoSchedule".to_owned()]).await?;
    for (_, pod) in ready.iter().filter(|(other, _)| other == node.as_str()) {
        let refused = evict(cluster, pod).await.err().map(|error| error.to_string()).unwrap_or_default();
        expect(refused.contains("disruption budget"), "the budget holds the eviction back", &refused)?;
    }
    cluster.settle().await?;
    expect_eq("no pod has moved", &ready_on(cluster, "web").await?, &ready)?;

    allow_one(cluster, 3).await?;
    drain(cluster, node).await?;
    let now = async || ready_on(cluster, "web").await;
    let is_elsewhere = |now: &Vec<(String, String)>| now.len() == 4 && now.iter().all(|(other, _)| other != &**node);
    cluster.until_right("four pods are ready elsewhere", now, is_elsewhere).await?;
    expect(watched.lowest() == Some(3), "never fewer than the budget demands", &watched.lowest())?;

    cordon(cluster, node, false).await?;
    cluster.until_eq("the taint is removed", taints, Vec::<String>::new()).await?;
    let more = Patch::Merge(json!({ "spec": { "replicas": 6 } }));
    cluster.api::<Deployment>().patch("web", &PatchParams::default(), &more).await?;
    let is_back = |now: &Vec<(String, String)>| now.len() == 6 && now.iter().any(|(other, _)| other == &**node);
    cluster.until_right("the node gets pods again", now, is_back).await.map(drop)
}

/// Every node in turn is cordoned, drained, silent, back with a new version, and uncordoned.
pub(crate) async fn a_rolling_upgrade_of_the_nodes_keeps_the_budget(cluster: &TestCluster) -> Result<(), Failure> {
    run_web(cluster, 4).await?;
    allow_one(cluster, 3).await?;
    let watched = Available::of(cluster).await?;
    let nodes = cluster.nodes();
    for node in &nodes.names() {
        let says = async || Ok((node_says(cluster, node).await?.0, version(cluster, node).await?));
        let before = version(cluster, node).await?;
        drain(cluster, node).await?;
        nodes.stop_heartbeats(node)?;
        cluster.until_eq("it is away", says, ("Unknown".to_owned(), before)).await?;
        nodes.upgrade(node, UPGRADED)?;
        nodes.resume(node)?;
        cluster.until_eq("it is back, and new", says, ("True".to_owned(), UPGRADED.to_owned())).await?;
        cordon(cluster, node, false).await?;
        let taints = async || taints(cluster, node).await;
        cluster.until_eq("it has no taints", taints, Vec::<String>::new()).await?;
    }
    until_counts(cluster, [4, 4, 3, 1]).await?;
    expect(watched.lowest() == Some(3), "never fewer than the budget demands", &watched.lowest())
}

/// A zone dies whole: its nodes are tainted one after the other, and its pods move to the other zone, which goes on. When that dies,
/// too, nothing is evicted, and the taints that evict are removed. When all are back, everything is where it was.
pub(crate) async fn a_lost_zone_is_tainted_at_the_rate_and_nothing_is_evicted_while_all_are_lost(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    cluster.create(moving_set_after("web", 6, TOLERATED)).await?;
    let ready = async || ready_on(cluster, "web").await;
    cluster.until_right("six pods are ready", ready, |ready: &Vec<_>| ready.len() == 6).await?;
    let nodes = cluster.nodes();
    let (zone_a, zone_b): (Vec<_>, Vec<_>) =
        nodes.names().into_iter().enumerate().partition(|(number, _)| number % 2 == 0);
    let [zone_a, zone_b] =
        [zone_a, zone_b].map(|zone| zone.into_iter().map(|(_, name)| name.to_string()).collect::<Vec<_>>());
    let evictions = Evictions::of(cluster).await?;

    zone_a.iter().try_for_each(|node| nodes.stop_heartbeats(node))?;
    cluster.until_eq("the zone is tainted", async || Ok(evictions.count()), 3).await?;
    expect_eq("whose nodes", &evictions.names(), &zone_a.iter().cloned().collect())?;
    evictions.expect_apart(EVERY - LATE)?;
    let in_b = |ready: &Vec<(String, String)>| ready.len() == 6 && ready.iter().all(|(node, _)| zone_b.contains(node));
    let before = cluster.until_right("six pods are ready in the other zone", ready, in_b).await?;
    for node in &zone_b {
        expect_eq(node, &node_says(cluster, node).await?, &("True".into(), "KubeletReady".into(), BTreeSet::new()))?;
    }

    zone_b.iter().try_for_each(|node| nodes.stop_heartbeats(node))?;
    let all = async || {
        let mut all = BTreeSet::new();
        for node in zone_a.iter().chain(&zone_b) {
            let (status, _, effects) = node_says(cluster, node).await?;
            all.insert((status, effects));
        }
        Ok(all)
    };
    let lost = BTreeSet::from([("Unknown".to_owned(), BTreeSet::from(["NoSchedule".to_owned()]))]);
    cluster.until_eq("all are lost, and no taint evicts", all, lost).await?;
    // The nodes of the second zone were not all lost in the same moment.
    let so_far = evictions.count();
    expect(so_far <= 5, "hardly any of the second zone was tainted", &evictions.all())?;
    cluster.advance(crate::LONG).await;
    let left = pods_of(cluster, "web").await?;
    let left: BTreeSet<_> = left.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).map(name_of).collect();
    let want: BTreeSet<_> = before.iter().map(|(_, pod)| pod.clone()).collect();
    expect_eq("the pods that are there", &left, &want)?;

    zone_a.iter().chain(&zone_b).try_for_each(|node| nodes.resume(node))?;
    let well = BTreeSet::from([("True".to_owned(), BTreeSet::new())]);
    cluster.until_eq("all are well", all, well).await?;
    cluster.until_eq("the same pods are ready", ready, before).await?;
    expect_eq("evictions", &evictions.count(), &so_far)
}

/// Runs a Deployment, and a budget that allows no eviction.
async fn run_web(cluster: &TestCluster, replicas: i32) -> Result<(), Failure> {
    cluster.create(objects::deployment("web").replicas(replicas)).await?;
    let ready = async || Ok(ready_on(cluster, "web").await?.len());
    cluster.until_eq("all pods are ready", ready, usize::try_from(replicas).unwrap_or_default()).await?;
    cluster.create(budget(json!({ "minAvailable": replicas }))).await?;
    Ok(())
}

/// Lowers the budget, and waits until it allows an eviction.
async fn allow_one(cluster: &TestCluster, available: i32) -> Result<(), Failure> {
    let lower = Patch::Merge(json!({ "spec": { "minAvailable": available } }));
    cluster.api::<PodDisruptionBudget>().patch("web", &PatchParams::default(), &lower).await?;
    until_counts(cluster, [available + 1, available + 1, available, 1]).await
}

/// Cordons or uncordons a node, as `kubectl cordon` does.
pub(crate) async fn cordon(cluster: &TestCluster, node: &str, cordoned: bool) -> Result<(), Failure> {
    let patch = Patch::Merge(json!({ "spec": { "unschedulable": cordoned } }));
    Api::<Node>::all(cluster.client()).patch(node, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Cordons a node and evicts its pods until none is left, as `kubectl drain` does.
pub(crate) async fn drain(cluster: &TestCluster, node: &str) -> Result<(), Failure> {
    cordon(cluster, node, true).await?;
    let evict_all = async || {
        let pods = pods_of(cluster, "web").await?;
        let on_node: Vec<&Pod> = pods.iter().filter(|pod| node_of(pod) == node).collect();
        for pod in on_node.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()) {
            match evict(cluster, &name_of(pod)).await {
                // It has to wait, is gone, or is another one by now.
                Err(kube::Error::Api(status)) if [404, 409, 429].contains(&status.code) => {}
                outcome => outcome?,
            }
        }
        Ok(on_node.len())
    };
    cluster.until_eq(&format!("{node} is drained"), evict_all, 0).await
}

fn name_of(pod: &Pod) -> String {
    pod.metadata.name.clone().unwrap_or_default()
}

async fn taints(cluster: &TestCluster, node: &str) -> Result<Vec<String>, Failure> {
    let node = Api::<Node>::all(cluster.client()).get(node).await?;
    let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
    Ok(taints.iter().map(|taint| format!("{}:{}", taint.key, taint.effect)).collect())
}

async fn version(cluster: &TestCluster, node: &str) -> Result<String, Failure> {
    let status = Api::<Node>::all(cluster.client()).get(node).await?.status.unwrap_or_default();
    Ok(status.node_info.map(|info| info.kubelet_version).unwrap_or_default())
}

/// How many pods of `web` were available at the least, since this was started with all of them.
#[derive(Clone, Default)]
struct Available(Arc<Mutex<Option<usize>>>);

// === impl Available ===

impl Available {
    /// Records from now on.
    async fn of(cluster: &TestCluster) -> Result<Self, Failure> {
        let pods = cluster.api::<Pod>();
        let of_web = ListParams::default().labels("app=web");
        let list = pods.list(&of_web).await?;
        let is_available = |pod: &Pod| {
            let ready = condition(pod, "Ready").0;
            ready == "True" && pod.metadata.deletion_timestamp.is_none()
        };
        let mut available: BTreeMap<String, bool> = list.iter().map(|pod| (name_of(pod), is_available(pod))).collect();
        let version = list.metadata.resource_version.unwrap_or_default();
        let lowest = Self::default();
        let recorded = lowest.clone();
        tokio::spawn(async move {
            let params = WatchParams::default().labels("app=web");
            let Ok(events) = pods.watch(&params, &version).await else { return };
            let mut events = events.boxed();
            while let Ok(Some(event)) = events.try_next().await {
                match event {
                    WatchEvent::Added(pod) | WatchEvent::Modified(pod) => {
                        available.insert(name_of(&pod), is_available(&pod));
                    }
                    WatchEvent::Deleted(pod) => drop(available.remove(&name_of(&pod))),
                    _ => continue,
                }
                let count = available.values().filter(|is| **is).count();
                let mut lowest = recorded.0.lock();
                *lowest = Some(lowest.map_or(count, |lowest| lowest.min(count)));
            }
        });
        Ok(lowest)
    }

    fn lowest(&self) -> Option<usize> {
        *self.0.lock()
    }
}

/// When each node got the taint that evicts: by the clock of the cluster.
#[derive(Clone, Default)]
pub(crate) struct Evictions(Arc<Mutex<Vec<(MicroTime, String)>>>);

// === impl Evictions ===

impl Evictions {
    /// Records from now on.
    pub(crate) async fn of(cluster: &TestCluster) -> Result<Self, Failure> {
        let seen = Self::default();
        let nodes: Api<Node> = Api::all(cluster.client());
        let clock = cluster.clock().clone();
        let recorded = seen.clone();
        let list = nodes.list(&ListParams::default()).await?;
        let mut version = list.metadata.resource_version.unwrap_or_default();
        tokio::spawn(async move {
            let mut tainted = BTreeSet::new();
            // A watch ends after a while, and goes on where it was.
            while let Ok(events) = nodes.watch(&WatchParams::default(), &version).await {
                let mut events = events.boxed();
                while let Ok(Some(event)) = events.try_next().await {
                    let (WatchEvent::Added(node) | WatchEvent::Modified(node)) = event else { continue };
                    version = node.metadata.resource_version.clone().unwrap_or_default();
                    let name = node.metadata.name.unwrap_or_default();
                    let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
                    let evicts = taints.iter().any(|taint| taint.key == UNREACHABLE && taint.effect == "NoExecute");
                    if !evicts {
                        tainted.remove(&name);
                    } else if tainted.insert(name.clone()) {
                        recorded.0.lock().push((clock.now_micros(), name));
                    }
                }
            }
        });
        Ok(seen)
    }

    pub(crate) fn all(&self) -> Vec<(MicroTime, String)> {
        self.0.lock().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().len()
    }

    fn names(&self) -> BTreeSet<String> {
        self.0.lock().iter().map(|(_, name)| name.clone()).collect()
    }

    /// Never more evictions than the rate allows: between any two, one interval or more.
    pub(crate) fn expect_apart(&self, every: Duration) -> Result<(), Failure> {
        for pair in self.all().windows(2) {
            let apart = pair[1].0.since(pair[0].0);
            expect(apart + Duration::from_micros(1) >= every, "evictions are apart", &(apart, pair))?;
        }
        Ok(())
    }
}

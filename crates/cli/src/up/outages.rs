//! The third act of `steersman up --demo`: nodes that are drained, lost, and lost with their zone.

use std::collections::BTreeSet;

use futures::TryStreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{DeleteParams, EvictParams, ListParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::super::CommandError;
use super::act::{Act, Changes, changed, follow, refused, say};
use super::demo::ZONES;
use super::outages_story::{Change, Outages};
use super::story::Line;
use super::workloads::{first_sentence, follow_budgets, follow_pods, workload};
use super::workloads_story;

const NAME: &str = "site";
const IMAGE: &str = "example/site:1";
const LABELS: &str = "app=site";
const PODS: usize = 4;
/// The taints of a cordoned node, and of one that is lost.
const CORDONED: &str = "unschedulable:NoSchedule";
const EVICTS: &str = "unreachable:NoExecute";

/// The third act.
pub(super) struct ThirdAct(Act<Outages>);

// === impl ThirdAct ===

impl ThirdAct {
    /// Plays it.
    ///
    /// # Errors
    /// Something did not happen; the error says what.
    pub(super) async fn play(client: Client, begun: Instant) -> Result<(), CommandError> {
        let mut act = Self::new(client, begun).await.map_err(refused)?;
        act.drain_a_node().await?;
        act.lose_a_node().await?;
        act.lose_a_zone().await?;
        act.lose_every_zone().await?;
        act.clean_up().await
    }

    async fn new(client: Client, begun: Instant) -> Result<Self, kube::Error> {
        let nodes = Api::<Node>::all(client.clone());
        let known = nodes.list(&ListParams::default()).await?.items;
        let nodes = follow(nodes, "", |event| changed(event).map(|node| Change::Node(Box::new(node))));
        let (nodes, pods, budgets) =
            futures::try_join!(nodes, follow_pods(&client, LABELS), follow_budgets(&client, LABELS))?;
        let changes = [nodes, of_workloads(pods), of_workloads(budgets)];
        Ok(Self(Act::new(client, begun, Outages::of(&known), changes)))
    }

    async fn drain_a_node(&mut self) -> Result<(), CommandError> {
        say("\n10. A node is drained: its pods leave one after the other, as their budget allows:\n");
        self.0.you("create deployment/site, and a budget: three of four pods stay available");
        self.0.create::<Deployment>(site()).await?;
        self.until("four pods", |it| it.workloads.is_ready(NAME, PODS, IMAGE)).await?;
        let budget = json!({
            "metadata": { "name": NAME, "labels": { "app": NAME } },
            "spec": { "minAvailable": 3, "selector": { "matchLabels": { "app": NAME } } },
        });
        self.0.create::<PodDisruptionBudget>(budget).await?;
        self.until("a budget that allows one eviction", |it| it.workloads.allows(1)).await?;
        let node = self.0.state.busiest(NAME);
        self.0.you(format!("cordon {node}"));
        self.patch_node(&node, json!({ "spec": { "unschedulable": true } })).await?;
        self.until("a node that takes no pods", |it| it.is_tainted(&node, CORDONED)).await?;
        for pod in self.0.state.workloads.on(NAME, &node) {
            self.evict(&pod).await?;
        }
        let left = [node.clone()];
        self.until("four pods elsewhere", |it| it.workloads.has_moved(NAME, PODS, &left)).await?;
        self.0.you(format!("uncordon {node}, which is as new"));
        self.patch_node(&node, json!({ "spec": { "unschedulable": false } })).await?;
        self.until("a node that takes pods", |it| it.is_well(&node)).await
    }

    /// Evicts a pod when its budget allows it.
    async fn evict(&mut self, pod: &str) -> Result<(), CommandError> {
        loop {
            self.0.you(format!("evict pod/{pod}"));
            self.0.state.workloads.shown(pod);
            match self.0.api::<Pod>().evict(pod, &EvictParams::default()).await {
                Err(kube::Error::Api(status)) if status.code == 429 => {
                    self.0.print(&Line::new("API server", format!("refuses: {}", first_sentence(&status.message))));
                }
                outcome => return outcome.map(drop).map_err(refused),
            }
            // It may allow one by now, as far as the watches showed.
            self.until("a budget that allows nothing", |it| it.workloads.allows(0)).await?;
            self.until("a budget that allows one eviction", |it| it.workloads.allows(1)).await?;
        }
    }

    async fn lose_a_node(&mut self) -> Result<(), CommandError> {
        say("\n11. A node is lost. When it has been silent for six seconds, its pods are replaced elsewhere:\n");
        let node = self.0.state.busiest(NAME);
        let lost = [node.clone()];
        self.cut_off(&lost).await?;
        self.until("a node whose pods are evicted", |it| it.is_tainted(&node, EVICTS)).await?;
        self.until("four pods elsewhere", |it| it.workloads.has_moved(NAME, PODS, &lost)).await?;
        say("\n    It is back, and finds out that its pods are deleted:\n");
        self.connect(&lost).await?;
        let is_done = |it: &Outages| it.is_well(&node) && it.workloads.is_ready(NAME, PODS, IMAGE);
        self.until("a node that takes pods, and no pod that leaves", is_done).await
    }

    async fn lose_a_zone(&mut self) -> Result<(), CommandError> {
        say("\n12. A zone is lost with all its nodes. They are emptied one after the other:\n");
        let lost = self.0.state.nodes_of(ZONES[0]);
        self.cut_off(&lost).await?;
        let is_done = |it: &Outages| {
            lost.iter().all(|node| it.is_tainted(node, EVICTS)) && it.workloads.has_moved(NAME, PODS, &lost)
        };
        self.until("four pods in the other zone", is_done).await
    }

    async fn lose_every_zone(&mut self) -> Result<(), CommandError> {
        say("\n13. The other zone is lost, too. Now it is likely the network, and nothing is evicted any more:\n");
        let rest = self.0.state.nodes_of(ZONES[1]);
        let pods: BTreeSet<String> = rest.iter().flat_map(|node| self.0.state.workloads.on(NAME, node)).collect();
        self.cut_off(&rest).await?;
        self.until("no taint that evicts", Outages::are_lost_and_spared).await?;
        say("\n    All of them are back, and the same pods go on:\n");
        let all = ZONES.map(|zone| self.0.state.nodes_of(zone)).concat();
        self.connect(&all).await?;
        let is_done = |it: &Outages| it.are_well() && it.workloads.is_ready(NAME, PODS, IMAGE);
        self.until("all nodes and four pods ready", is_done).await?;
        let now: BTreeSet<String> = self.0.state.workloads.pods(NAME).into_iter().collect();
        if now == pods {
            return Ok(());
        }
        Err(CommandError(format!("nothing should have been evicted, but there were {pods:?}, and are {now:?}")))
    }

    async fn clean_up(&mut self) -> Result<(), CommandError> {
        say("\n14. Everything is deleted again:\n");
        self.0.state.workloads.deleted_by("garbage-collector");
        self.0.you("delete all of it");
        let how = DeleteParams::background();
        self.0.api::<PodDisruptionBudget>().delete(NAME, &how).await.map_err(refused)?;
        self.0.api::<Deployment>().delete(NAME, &how).await.map_err(refused)?;
        self.until("nothing left of it", |it| it.workloads.is_empty()).await
    }

    async fn cut_off(&self, nodes: &[String]) -> Result<(), CommandError> {
        self.0.you(format!("cut {} off", nodes.join(" and ")));
        self.silence(nodes, &json!("true")).await
    }

    async fn connect(&self, nodes: &[String]) -> Result<(), CommandError> {
        self.0.you(format!("connect {} again", nodes.join(" and ")));
        self.silence(nodes, &Value::Null).await
    }

    /// Sets or removes the annotation that silences simulated nodes.
    async fn silence(&self, nodes: &[String], value: &Value) -> Result<(), CommandError> {
        let annotation = format!("{}silent", steersman_nodes::view::PREFIX);
        for node in nodes {
            self.patch_node(node, json!({ "metadata": { "annotations": { &annotation: value } } })).await?;
        }
        Ok(())
    }

    async fn patch_node(&self, node: &str, patch: Value) -> Result<(), CommandError> {
        let nodes = Api::<Node>::all(self.0.client());
        nodes.patch(node, &PatchParams::default(), &Patch::Merge(patch)).await.map_err(refused)?;
        Ok(())
    }

    async fn until(&mut self, what: &str, is_done: impl Fn(&Outages) -> bool) -> Result<(), CommandError> {
        self.0.until(what, is_done).await
    }
}

/// Changes of workloads, as changes of this act.
fn of_workloads(changes: Changes<workloads_story::Change>) -> Changes<Change> {
    Box::pin(changes.map_ok(|change| change.map(Change::Workload)))
}

/// A Deployment whose pods tolerate the loss of their node for two seconds.
fn site() -> Value {
    let tolerated = |key: &str| {
        json!({
            "key": format!("node.kubernetes.io/{key}"), "operator": "Exists", "effect": "NoExecute",
            "tolerationSeconds": 2,
        })
    };
    let mut site = workload(NAME, IMAGE);
    site["spec"]["replicas"] = json!(PODS);
    site["spec"]["template"]["spec"]["tolerations"] = json!([tolerated("unreachable"), tolerated("not-ready")]);
    site
}

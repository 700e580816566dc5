//! The users of a world: they use the server directly, and accept refusals.

mod objects;
mod others;
#[cfg(feature = "chaos")]
mod real;
mod workloads;

use std::collections::BTreeMap;

use http::{Method, Request, header};
use http_body_util::BodyExt as _;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use steersman_apiserver::ApiServer;
use steersman_nodes::Nodes;
use tower::Service as _;

use crate::faults::{About, Faults};
use crate::line::about;
use crate::plan::{
    Edit, Fault, How, NAMESPACES, OWNERS, Operation, OwnerKind, Propagation, RULE, RULES, Verb, home_of,
};
use crate::record::Actor;
use crate::server::{ASKED_BY, Recorder};

use objects::{HOLD, LOST, definition_of_cakes, path_of, pods_in};

/// The users of the cluster.
pub(crate) struct Users {
    door: Door,
    counts: Mutex<BTreeMap<&'static str, u64>>,
}

/// The server that they use.
enum Door {
    /// That of a simulated world.
    Simulated { server: ApiServer, recorder: Recorder, faults: Faults },
    /// A real one, which may be away for a while.
    #[cfg(feature = "chaos")]
    Real(kube::Client),
}

const STRATEGIC: &str = "application/strategic-merge-patch+json";
const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json";
/// More than are kept of those that have ended.
const RUN_AT_ONCE: usize = 4;

// === impl Users ===

impl Users {
    pub(crate) fn new(server: &ApiServer, recorder: &Recorder, faults: &Faults) -> Self {
        let server = server.clone();
        let recorder = recorder.clone();
        let faults = faults.clone();
        Self { door: Door::Simulated { server, recorder, faults }, counts: Mutex::default() }
    }

    /// The users of a real cluster.
    #[cfg(feature = "chaos")]
    pub(crate) fn of(client: kube::Client) -> Self {
        Self { door: Door::Real(client), counts: Mutex::default() }
    }

    /// How often each operation was done: those that the server accepted.
    pub(crate) fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.counts.lock().clone()
    }

    /// The objects that exist at the start; with the driver of volumes, if there is everything.
    pub(crate) async fn furnish(&self, everything: bool) {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        self.ask(Method::POST, path, JSON, &definition_of_cakes()).await;
        for namespace in 0..NAMESPACES.len() {
            self.create_namespace(namespace).await;
        }
        if everything {
            for (plural, object) in [("csidrivers", objects::driver()), ("storageclasses", objects::class())] {
                self.ask(Method::POST, &format!("/apis/storage.k8s.io/v1/{plural}"), JSON, &object).await;
            }
            let path = format!("/apis/resource.k8s.io/v1/namespaces/{}/resourceclaimtemplates", NAMESPACES[0]);
            self.ask(Method::POST, &path, JSON, &objects::claim_template()).await;
        }
        for (plural, object) in objects::bystanders() {
            self.ask(Method::POST, &format!("/api/v1/namespaces/{}/{plural}", NAMESPACES[0]), JSON, &object).await;
        }
    }

    /// Does something.
    pub(crate) async fn perform(&self, operation: &Operation, nodes: &Nodes) {
        let is_done = self.attempt(operation, nodes).await;
        match &self.door {
            Door::Simulated { recorder, .. } => {
                recorder.note(format_args!("{} {operation:?}", if is_done { "done:" } else { "refused:" }));
            }
            #[cfg(feature = "chaos")]
            Door::Real(_) => {}
        }
        if is_done {
            *self.counts.lock().entry(operation.name()).or_default() += 1;
        }
    }

    /// What would keep a world from healing is taken away.
    pub(crate) async fn tidy_up(&self, nodes: &Nodes, everything: bool) {
        for name in nodes.names() {
            let _ = nodes.resume(&name);
            self.cordon(&name, false).await;
            self.label_node(&name, false).await;
            self.taint_node(&name, None).await;
        }
        // Pods would be evicted, and made anew, for ever.
        if everything {
            self.ask(Method::DELETE, &format!("{RULES}/{RULE}"), JSON, &json!({})).await;
        }
        let is_there = |kind: OwnerKind| everything || !kind.is_furnished();
        for (owner, of) in OWNERS.iter().enumerate().filter(|(_, of)| is_there(of.kind)) {
            self.release(owner).await;
            match of.kind {
                OwnerKind::Deployment | OwnerKind::DaemonSet => {
                    self.edit(owner, &[Edit::NeverReady(false)]).await;
                }
                // Nobody but a user ends a pod that is never ready: <https://github.com/kubernetes/kubernetes/issues/67250>.
                OwnerKind::StatefulSet => {
                    self.edit(owner, &[Edit::NeverReady(false)]).await;
                    self.delete_never_ready(owner).await;
                }
                // Two autoscalers with the same pods and other bounds would never agree.
                OwnerKind::Autoscaler => {
                    self.edit(owner, &[Edit::Scales(home_of(owner))]).await;
                }
                // What a quota refuses is missing for ever.
                OwnerKind::Quota => {
                    self.edit(owner, &[objects::no_limit()]).await;
                }
                // What is due is started for ever.
                OwnerKind::CronJob => {
                    self.edit(owner, &[Edit::Suspended(true)]).await;
                }
                _ => {}
            }
        }
    }

    async fn attempt(&self, operation: &Operation, nodes: &Nodes) -> bool {
        match operation {
            Operation::Create { owner, changes } => self.create(*owner, changes).await,
            // If there is nothing to change, it is created.
            Operation::Edit { owner, changes } => {
                self.edit(*owner, changes).await || self.create(*owner, changes).await
            }
            Operation::Undo { owner } => self.undo(*owner).await,
            Operation::Delete { owner, policy } => self.delete(*owner, *policy).await,
            Operation::Recreate { owner, policy, changes } => {
                self.delete(*owner, *policy).await;
                self.create(*owner, changes).await
            }
            Operation::Relabel { owner, pick } => match self.pick_pod(*owner, *pick).await {
                Some(pod) => self.label_pod(&pod, LOST).await,
                None => false,
            },
            Operation::Adopt { owner, pick } => self.adopt(*owner, *pick).await,
            Operation::DeletePod { owner, pick, now } => match self.pick_pod(*owner, *pick).await {
                Some(pod) => {
                    let options = if *now { json!({"gracePeriodSeconds": 0}) } else { json!({}) };
                    self.ask(Method::DELETE, &path_of_pod(&pod), JSON, &options).await.is_some()
                }
                None => false,
            },
            Operation::Evict { owner, pick } => match self.pick_pod(*owner, *pick).await {
                Some(pod) => self.evict(&pod).await,
                None => false,
            },
            Operation::FailPod { owner, pick } => match self.pick_pod(*owner, *pick).await {
                Some(pod) => self.fail_pod(&pod).await,
                None => false,
            },
            Operation::Hold { owner } => {
                let patch = json!({"metadata": {"finalizers": [HOLD]}});
                self.ask(Method::PATCH, &path_of(*owner), MERGE, &patch).await.is_some()
            }
            Operation::Release { owner } => self.release(*owner).await,
            Operation::DeleteNamespace { namespace } => {
                let path = format!("/api/v1/namespaces/{}", NAMESPACES[*namespace]);
                self.ask(Method::DELETE, &path, JSON, &json!({})).await.is_some()
            }
            Operation::CreateNamespace { namespace } => self.create_namespace(*namespace).await,
            Operation::DeleteKept { namespace, account } => {
                let kept = if *account { "serviceaccounts/default" } else { "configmaps/kube-root-ca.crt" };
                let path = format!("/api/v1/namespaces/{}/{kept}", NAMESPACES[*namespace]);
                self.ask(Method::DELETE, &path, JSON, &json!({})).await.is_some()
            }
            Operation::RunPods { namespace, pick } => self.run_pods(*namespace, *pick).await,
            Operation::RemoveNode { node }
            | Operation::SilenceNode { node }
            | Operation::ResumeNode { node }
            | Operation::Drain { node }
            | Operation::Uncordon { node }
            | Operation::LabelNode { node, .. }
            | Operation::TaintNode { node, .. } => match nodes.names().get(*node) {
                Some(name) => self.attempt_node(operation, nodes, name).await,
                None => false,
            },
            Operation::Request { how, path, body } => match how {
                How::Create => self.ask(Method::POST, path, JSON, body).await.is_some(),
                How::Patch => self.ask(Method::PATCH, path, MERGE, body).await.is_some(),
                How::Delete => self.ask(Method::DELETE, path, JSON, &json!({})).await.is_some(),
            },
        }
    }

    /// Attempts an operation on the node of this name.
    async fn attempt_node(&self, operation: &Operation, nodes: &Nodes, name: &str) -> bool {
        match operation {
            Operation::RemoveNode { .. } => nodes.remove(name).is_ok(),
            Operation::SilenceNode { .. } => nodes.stop_heartbeats(name).is_ok(),
            Operation::ResumeNode { .. } => nodes.resume(name).is_ok(),
            Operation::Drain { .. } => self.drain(name).await,
            Operation::Uncordon { .. } => self.cordon(name, false).await,
            Operation::LabelNode { slow, .. } => self.label_node(name, *slow).await,
            Operation::TaintNode { ends_pods, .. } => self.taint_node(name, *ends_pods).await,
            _ => false,
        }
    }

    async fn run_pods(&self, namespace: usize, pick: usize) -> bool {
        let mut is_done = false;
        for number in 0..RUN_AT_ONCE {
            let pod = objects::ending_pod(pick, number);
            is_done |= self.ask(Method::POST, &pods_in(namespace), JSON, &pod).await.is_some();
        }
        is_done
    }

    async fn create_namespace(&self, namespace: usize) -> bool {
        let object = json!({"metadata": {"name": NAMESPACES[namespace]}});
        self.ask(Method::POST, "/api/v1/namespaces", JSON, &object).await.is_some()
    }

    async fn create(&self, owner: usize, changes: &[Edit]) -> bool {
        // A user creates the namespace first.
        self.create_namespace(OWNERS[owner].namespace).await;
        let collection = objects::collection_of(owner);
        let Some(made) = self.ask(Method::POST, &collection, JSON, &objects::object_of(owner, changes)).await else {
            return false;
        };
        for change in changes {
            match change {
                Edit::Children(count) => drop(self.grow(owner, &made, *count).await),
                Edit::Demand(value) => drop(self.demand(owner, *value).await),
                _ => {}
            }
        }
        if OWNERS[owner].kind == OwnerKind::External {
            let count =
                changes.iter().find_map(|change| if let Edit::Addresses(count) = change { Some(*count) } else { None });
            self.write_endpoints(owner, count.unwrap_or(1)).await;
        }
        if OWNERS[owner].kind == OwnerKind::Account {
            let secrets = format!("/api/v1/namespaces/{}/secrets", NAMESPACES[OWNERS[owner].namespace]);
            self.ask(Method::POST, &secrets, JSON, &objects::token_secret(owner)).await;
        }
        true
    }

    async fn edit(&self, owner: usize, changes: &[Edit]) -> bool {
        for change in changes {
            match change {
                Edit::Children(count) => {
                    let Some(made) = self.ask(Method::GET, &path_of(owner), JSON, &Value::Null).await else {
                        return false;
                    };
                    return self.grow(owner, &made, *count).await;
                }
                Edit::SharedWith(other) => return self.share(owner, *other).await,
                Edit::Addresses(count) => return self.write_endpoints(owner, *count).await,
                Edit::Rules(number) => return self.write_rules(owner, *number).await,
                Edit::Demand(value) => return self.demand(owner, *value).await,
                Edit::Approved(approved) => return self.decide(owner, *approved).await,
                _ => {}
            }
        }
        let patch = objects::patch_of(owner, changes);
        self.ask(Method::PATCH, &path_of(owner), STRATEGIC, &patch).await.is_some()
    }

    /// More objects that belong to an owner, and some that belong to these.
    async fn grow(&self, owner: usize, made: &Value, count: u32) -> bool {
        let maps = format!("/api/v1/namespaces/{}/configmaps", NAMESPACES[OWNERS[owner].namespace]);
        let mut is_done = OWNERS[owner].kind == OwnerKind::Account;
        for child in 0..count {
            let name = format!("{}-{child}", OWNERS[owner].name);
            let object = objects::owned_map(&name, &objects::reference_to(owner, made, child % 2 == 0));
            let Some(made) = self.ask(Method::POST, &maps, JSON, &object).await else { continue };
            is_done = true;
            let reference = objects::reference("v1", "ConfigMap", &made, child % 2 == 1);
            self.ask(Method::POST, &maps, JSON, &objects::owned_map(&format!("{name}-leaf"), &reference)).await;
        }
        is_done
    }

    /// The first object of a tree belongs to another owner, too.
    async fn share(&self, owner: usize, other: usize) -> bool {
        let one = OWNERS[owner];
        let other_one = OWNERS[other];
        let path = format!("/api/v1/namespaces/{}/configmaps/{}-0", NAMESPACES[one.namespace], one.name);
        if one.namespace != other_one.namespace {
            return false;
        }
        let (Some(child), Some(made)) = (
            self.ask(Method::GET, &path, JSON, &Value::Null).await,
            self.ask(Method::GET, &path_of(other), JSON, &Value::Null).await,
        ) else {
            return false;
        };
        let mut references = child["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        let reference = objects::reference_to(other, &made, false);
        if references.iter().any(|held| held["uid"] == reference["uid"]) {
            return false;
        }
        references.push(reference);
        let patch = json!({"metadata": {"ownerReferences": references}});
        self.ask(Method::PATCH, &path, MERGE, &patch).await.is_some()
    }

    /// The template of the revision before, as `kubectl rollout undo` finds it.
    async fn undo(&self, owner: usize) -> bool {
        let Some(deployment) = self.ask(Method::GET, &path_of(owner), JSON, &Value::Null).await else { return false };
        let sets = format!("/apis/apps/v1/namespaces/{}/replicasets", NAMESPACES[OWNERS[owner].namespace]);
        let Some(sets) = self.ask(Method::GET, &sets, JSON, &Value::Null).await else { return false };
        let uid = &deployment["metadata"]["uid"];
        let is_owned = |set: &&Value| {
            let owners = set["metadata"]["ownerReferences"].as_array();
            owners.is_some_and(|owners| owners.iter().any(|owner| owner["uid"] == *uid))
        };
        let revision = |set: &Value| {
            let text = set["metadata"]["annotations"]["deployment.kubernetes.io/revision"].as_str();
            text.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0)
        };
        let mut owned: Vec<&Value> = sets["items"].as_array().into_iter().flatten().filter(is_owned).collect();
        owned.sort_by_key(|set| std::cmp::Reverse(revision(set)));
        let Some(before) = owned.get(1) else { return false };
        let mut template = before["spec"]["template"].clone();
        if let Some(labels) = template["metadata"]["labels"].as_object_mut() {
            labels.remove("pod-template-hash");
        }
        let patch = json!([{"op": "replace", "path": "/spec/template", "value": template}]);
        self.ask(Method::PATCH, &path_of(owner), "application/json-patch+json", &patch).await.is_some()
    }

    async fn delete(&self, owner: usize, policy: Propagation) -> bool {
        let policy = match policy {
            Propagation::Background => "Background",
            Propagation::Foreground => "Foreground",
            Propagation::Orphan => "Orphan",
        };
        self.ask(Method::DELETE, &path_of(owner), JSON, &json!({"propagationPolicy": policy})).await.is_some()
    }

    async fn release(&self, owner: usize) -> bool {
        let Some(object) = self.ask(Method::GET, &path_of(owner), JSON, &Value::Null).await else { return false };
        let finalizers = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        let left: Vec<Value> = finalizers.iter().filter(|finalizer| **finalizer != HOLD).cloned().collect();
        if left.len() == finalizers.len() {
            return false;
        }
        let patch = json!({"metadata": {"finalizers": left}});
        self.ask(Method::PATCH, &path_of(owner), MERGE, &patch).await.is_some()
    }

    async fn adopt(&self, owner: usize, pick: usize) -> bool {
        let lost = self.pods(OWNERS[owner].namespace, LOST).await;
        if let Some(pod) = lost.get(pick % lost.len().max(1)) {
            return self.label_pod(pod, OWNERS[owner].name).await;
        }
        let pods = pods_in(OWNERS[owner].namespace);
        self.ask(Method::POST, &pods, JSON, &objects::bare_pod(owner, pick)).await.is_some()
    }

    async fn drain(&self, node: &str) -> bool {
        if !self.cordon(node, true).await {
            return false;
        }
        let path = format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{node}");
        let pods = self.ask(Method::GET, &path, JSON, &Value::Null).await.unwrap_or_default();
        for pod in pods["items"].as_array().into_iter().flatten() {
            self.evict(pod).await;
        }
        true
    }

    async fn cordon(&self, node: &str, unschedulable: bool) -> bool {
        let patch = json!({"spec": {"unschedulable": if unschedulable { json!(true) } else { Value::Null }}});
        self.ask(Method::PATCH, &format!("/api/v1/nodes/{node}"), MERGE, &patch).await.is_some()
    }

    async fn pods(&self, namespace: usize, app: &str) -> Vec<Value> {
        let path = format!("{}?labelSelector=app%3D{app}", pods_in(namespace));
        let pods = self.ask(Method::GET, &path, JSON, &Value::Null).await.unwrap_or_default();
        pods["items"].as_array().cloned().unwrap_or_default()
    }

    async fn pick_pod(&self, owner: usize, pick: usize) -> Option<Value> {
        let pods = self.pods(OWNERS[owner].namespace, OWNERS[owner].name).await;
        pods.get(pick % pods.len().max(1)).cloned()
    }

    async fn label_pod(&self, pod: &Value, app: &str) -> bool {
        let patch = json!({"metadata": {"labels": {"app": app}}});
        self.ask(Method::PATCH, &path_of_pod(pod), MERGE, &patch).await.is_some()
    }

    /// Asks the server. None if it refuses.
    async fn ask(&self, method: Method, path: &str, content_type: &str, body: &Value) -> Option<Value> {
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        match &self.door {
            Door::Simulated { server, faults, .. } => {
                let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, content_type);
                let request = request.body(Body::from(bytes)).ok()?;
                let (verb, resource) = about(request.method(), request.uri());
                if is_refused(faults, verb, resource) {
                    return None;
                }
                let mut server = server.clone();
                let answer = ASKED_BY.scope((Actor::User, None), async move { server.call(request).await }).await;
                let Ok(answer) = answer;
                let is_success = answer.status().is_success();
                let Ok(bytes) = answer.into_body().collect().await;
                is_success.then(|| serde_json::from_slice(&bytes.to_bytes()).unwrap_or_default())
            }
            #[cfg(feature = "chaos")]
            Door::Real(client) => real::ask(client, &method, path, content_type, &bytes).await,
        }
    }
}

/// Quotas and webhooks refuse users, too.
fn is_refused(faults: &Faults, verb: Verb, resource: String) -> bool {
    let about = About { manager: None, controller: None, verb, resource };
    faults.open(&about).any(|window| match window.fault {
        Fault::QuotaRefuses => verb == Verb::Create && about.resource == "pods",
        // By the time, because users have no chance of their own.
        Fault::WebhookRefuses(count) => verb.writes() && faults.now().is_multiple_of(u64::from(count.max(1))),
        _ => false,
    })
}

fn path_of_pod(pod: &Value) -> String {
    let text = |name: &str| pod["metadata"][name].as_str().unwrap_or_default().to_owned();
    format!("/api/v1/namespaces/{}/pods/{}", text("namespace"), text("name"))
}

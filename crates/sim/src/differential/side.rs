//! One of the two clusters: an API server of its own, simulated nodes, and a manager, ours or Go's.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::{Method, Request};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Value, json};
use steersman_runtime::__internal::process::dies_with_parent;
use steersman_testing::nodes::{AttacherOptions, DevicesOptions, NodesOptions, ProvisionerOptions};
use steersman_testing::rig::{Process, Rig, Setup, free_port, programs};
use steersman_testing::{Failure, TestCluster};
use tokio::time::{Instant, sleep};

use super::audit::Tail;
use super::compare::{self, Events, State};
use super::load::{Act, Step, collection_of};
use super::normal::Normal;
use crate::chaos::managers::Kind;

/// What a cluster is started with.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Our program; its first argument is `controller-manager`.
    pub program: PathBuf,
    /// Where the rig keeps its files, and where logs stay.
    pub scratch: PathBuf,
    /// Another list of controllers than all of them.
    pub controllers: Option<String>,
}

/// A cluster.
pub struct Side {
    /// Whose manager it has.
    pub kind: Kind,
    /// The manager.
    pub manager: Process,
    cluster: TestCluster,
    rig: Rig,
    tail: Tail,
    log: PathBuf,
}

/// Everything that a cluster has.
#[derive(Debug)]
pub struct Dump {
    /// The objects, normalised.
    pub state: State,
    /// The events, normalised.
    pub events: Events,
    /// Both as they are.
    pub raw: Vec<Value>,
}

/// The answer to one request of a user.
pub type Answer = (String, u16);

const NODES: usize = 4;
const LOOK_EVERY: Duration = Duration::from_millis(200);
const LEADS_WITHIN: Duration = Duration::from_secs(90);
/// The most objects in one answer.
const PAGE: usize = 500;
/// Periods that would otherwise be waited for, the same for both managers; and no limit of requests, which would be another
/// wait.
const FLAGS: [&str; 12] = [
    "--node-monitor-period=2s",
    "--node-monitor-grace-period=17s",
    "--kube-api-qps=1000",
    "--kube-api-burst=1000",
    "--horizontal-pod-autoscaler-sync-period=2s",
    "--horizontal-pod-autoscaler-cpu-initialization-period=1s",
    "--horizontal-pod-autoscaler-initial-readiness-delay=1s",
    "--horizontal-pod-autoscaler-downscale-stabilization=1s",
    "--resource-quota-sync-period=20s",
    "--bind-address=127.0.0.1",
    "--v=1",
    "--leader-elect-retry-period=1s",
];
/// Resources that are not compared: heartbeats, what the server computes, what has no state, and what is compared otherwise.
const SKIPPED: [&str; 6] =
    ["events", "leases", "componentstatuses", "apiservices", "flowschemas", "prioritylevelconfigurations"];
/// Objects of the metrics API have no state.
const SKIPPED_GROUPS: &str = "metrics.k8s.io";

// === impl Dump ===

impl Dump {
    /// Returns how many objects and kinds of events there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        u64::try_from(self.state.values().map(Vec::len).sum::<usize>() + self.events.len()).unwrap_or(u64::MAX)
    }
}

// === impl Side ===

impl Side {
    /// Starts an API server with all that the 49 controllers need, nodes, and a manager.
    ///
    /// # Errors
    /// Something does not start in time.
    pub async fn start(kind: Kind, setting: &Setting) -> Result<Self, Failure> {
        let name = name(kind);
        std::fs::create_dir_all(&setting.scratch)?;
        let directory = setting.scratch.display().to_string();
        let rig = Rig::start(&directory, &format!("rig-{name}"), Setup::ALL_CONTROLLERS.auditing_requests()).await?;
        let nodes = NodesOptions::count(NODES)
            .zones(["east", "west"])
            .provisioner(ProvisionerOptions::default())
            .attacher(AttacherOptions::default().delay(Duration::from_millis(100)))
            .devices(DevicesOptions::default());
        let cluster =
            TestCluster::builder().nodes_with(nodes).metrics().manager_options(|options| options.namespace = None);
        let cluster = cluster.start_on(rig.kubeconfig()).await?;
        let log = setting.scratch.join(format!("{name}.log"));
        let _ = std::fs::remove_file(&log);
        let manager = start_manager(kind, setting, &rig, &log)?;
        let tail = Tail::new(rig.scratch().join("audit.log"));
        let mut side = Self { kind, manager, cluster, rig, tail, log };
        side.leads().await?;
        side.tail.follow()?;
        Ok(side)
    }

    async fn leads(&mut self) -> Result<(), Failure> {
        let began = Instant::now();
        let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager";
        while self.ask(Method::GET, lease, &Value::Null).await?.0 != 200 {
            if began.elapsed() > LEADS_WITHIN {
                return Err(Failure::new(format!(
                    "{} does not take its lease: {}",
                    name(self.kind),
                    self.log.display()
                )));
            }
            sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// Sends one request as the administrator: a patch is a merge patch. Returns code and answer.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn ask(&self, method: Method, path: &str, body: &Value) -> Result<(u16, Value), Failure> {
        let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let bytes = if body.is_null() { Vec::new() } else { serde_json::to_vec(body)? };
        let request = Request::builder().method(method).uri(path).header("content-type", kind);
        let response = self.cluster.client().send(request.body(Body::from(bytes))?).await?;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await?.to_bytes();
        Ok((code, serde_json::from_slice(&bytes).unwrap_or_default()))
    }

    /// Does all of a step. Returns the answers.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn perform(&self, step: &Step) -> Result<Vec<Answer>, Failure> {
        let mut answers = Vec::new();
        for act in step {
            answers.extend(self.act(act).await?);
        }
        Ok(answers)
    }

    async fn act(&self, act: &Act) -> Result<Vec<Answer>, Failure> {
        let (method, path, body) = match act {
            Act::Create(object) => (Method::POST, collection_of(object), object.clone()),
            Act::Patch(path, patch) => (Method::PATCH, path.clone(), patch.clone()),
            Act::Post(path, body) => (Method::POST, path.clone(), body.clone()),
            Act::Delete(path, options) => (Method::DELETE, path.clone(), options.clone()),
            Act::DeletePods { namespace, selector, count } => {
                return self.delete_pods(namespace, selector, *count).await;
            }
            Act::Metric { namespace, value } => {
                self.cluster.metrics().set_external(namespace, "queue", &[], value)?;
                return Ok(Vec::new());
            }
            Act::Heartbeats { node, are_sent } => {
                let name = self.node(*node);
                let nodes = self.cluster.nodes();
                if *are_sent {
                    nodes.resume(&name)?;
                } else {
                    nodes.stop_heartbeats(&name)?;
                }
                return Ok(Vec::new());
            }
        };
        let path = self.resolved_text(&path);
        let body = self.resolved(body).await?;
        let (code, answer) = self.ask(method.clone(), &path, &body).await?;
        let name = body["metadata"]["name"].as_str().unwrap_or_default();
        if code >= 400 {
            eprintln!("{}: {method} {path} {name}: {code} {}", self::name(self.kind), answer["message"]);
        }
        Ok(vec![(Normal::new().text(&format!("{method} {path} {name}")), code)])
    }

    async fn delete_pods(&self, namespace: &str, selector: &str, count: usize) -> Result<Vec<Answer>, Failure> {
        let path = format!("/api/v1/namespaces/{namespace}/pods?labelSelector={selector}");
        let (_, list) = self.ask(Method::GET, &path, &Value::Null).await?;
        let pods = list["items"].as_array().cloned().unwrap_or_default();
        let names = pods.iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        let mut names: Vec<String> =
            names.filter_map(|pod| Some(pod["metadata"]["name"].as_str()?.to_owned())).collect();
        names.sort();
        let mut answers = Vec::new();
        for name in names.iter().take(count) {
            let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
            let (code, _) = self.ask(Method::DELETE, &path, &json!({})).await?;
            answers.push((format!("DELETE pods of {namespace} with {selector}"), code));
        }
        Ok(answers)
    }

    fn node(&self, number: usize) -> String {
        self.cluster.nodes().names().get(number).map(ToString::to_string).unwrap_or_default()
    }

    fn resolved_text(&self, text: &str) -> String {
        match text.split_once("$node:") {
            Some((before, number)) => format!("{before}{}", self.node(number.parse().unwrap_or(0))),
            None => text.to_owned(),
        }
    }

    /// Puts names of nodes and uids into the places that stand for them.
    async fn resolved(&self, value: Value) -> Result<Value, Failure> {
        Ok(match value {
            Value::String(text) => match text.strip_prefix("$uid:") {
                Some(path) => self.ask(Method::GET, path, &Value::Null).await?.1["metadata"]["uid"].clone(),
                None => Value::from(self.resolved_text(&text)),
            },
            Value::Array(items) => {
                let mut resolved = Vec::new();
                for item in items {
                    resolved.push(Box::pin(self.resolved(item)).await?);
                }
                Value::Array(resolved)
            }
            Value::Object(fields) => {
                let mut resolved = serde_json::Map::new();
                for (name, field) in fields {
                    resolved.insert(name, Box::pin(self.resolved(field)).await?);
                }
                Value::Object(resolved)
            }
            other => other,
        })
    }

    /// Waits until nobody has written for a while, or until a bound is reached. Returns whether it became quiet.
    ///
    /// # Errors
    /// The audit log cannot be read.
    pub async fn quiet(&mut self, quiet_for: Duration, within: Duration) -> Result<bool, Failure> {
        let began = Instant::now();
        loop {
            self.tail.follow()?;
            if began.max(self.tail.written()).elapsed() >= quiet_for {
                return Ok(true);
            }
            if began.elapsed() >= within {
                return Ok(false);
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// The requests of the manager so far.
    #[must_use]
    pub fn tail(&self) -> &Tail {
        &self.tail
    }

    /// Returns every object and every event.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn dump(&self) -> Result<Dump, Failure> {
        let normal = Normal::new();
        let mut state = State::new();
        let mut raw = Vec::new();
        for (resource, path) in self.resources().await? {
            for object in self.list(&path).await? {
                raw.push(object.clone());
                compare::add(&mut state, &normal, &resource, object);
            }
        }
        let mut events = Events::new();
        for event in self.list("/api/v1/events").await? {
            compare::add_event(&mut events, &normal, &event);
            raw.push(event);
        }
        Ok(Dump { state, events, raw })
    }

    /// All objects of a collection, page by page.
    async fn list(&self, path: &str) -> Result<Vec<Value>, Failure> {
        let mut items = Vec::new();
        let mut next = String::new();
        loop {
            let (_, page) =
                self.ask(Method::GET, &format!("{path}?limit={PAGE}&continue={next}"), &Value::Null).await?;
            items.extend(page["items"].as_array().cloned().unwrap_or_default());
            match page["metadata"]["continue"].as_str() {
                Some(token) if !token.is_empty() => token.clone_into(&mut next),
                _ => return Ok(items),
            }
        }
    }

    /// Every resource that can be listed, under its first version.
    async fn resources(&self) -> Result<Vec<(String, String)>, Failure> {
        let mut versions = vec!["/api/v1".to_owned()];
        let (_, groups) = self.ask(Method::GET, "/apis", &Value::Null).await?;
        for group in groups["groups"].as_array().into_iter().flatten() {
            for version in group["versions"].as_array().into_iter().flatten() {
                let text = version["groupVersion"].as_str().unwrap_or_default();
                if !text.contains(SKIPPED_GROUPS) {
                    versions.push(format!("/apis/{text}"));
                }
            }
        }
        let mut found: Vec<(String, String)> = Vec::new();
        for version in versions {
            let group =
                version.strip_prefix("/apis/").and_then(|text| text.split_once('/')).map_or("", |(group, _)| group);
            let (_, list) = self.ask(Method::GET, &version, &Value::Null).await?;
            for resource in list["resources"].as_array().into_iter().flatten() {
                let name = resource["name"].as_str().unwrap_or_default();
                let is_listed = resource["verbs"].as_array().is_some_and(|verbs| verbs.contains(&json!("list")));
                let full = if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") };
                if is_listed && !SKIPPED.contains(&name) && !found.iter().any(|(known, _)| *known == full) {
                    found.push((full, format!("{version}/{name}")));
                }
            }
        }
        Ok(found)
    }

    /// Deletes what a sequence has left: its namespaces, and objects outside of them whose names begin with its own.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn clear(&self, sequence: &str) -> Result<(), Failure> {
        for (_, path) in self.resources().await? {
            for object in self.list(&path).await? {
                let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default();
                let is_of_it = text("name") == sequence || text("name").starts_with(&format!("{sequence}-"));
                if text("namespace").is_empty() && is_of_it {
                    self.ask(Method::DELETE, &format!("{path}/{}", text("name")), &json!({})).await?;
                }
            }
        }
        Ok(())
    }

    /// Copies the audit log to the directory that stays.
    ///
    /// # Errors
    /// It cannot be copied.
    pub fn keep_log(&self) -> Result<(), Failure> {
        let to = self.log.with_extension("audit.log");
        std::fs::copy(self.rig.scratch().join("audit.log"), to)?;
        Ok(())
    }
}

impl std::fmt::Debug for Side {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Side").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// Returns the name of a side, for logs.
#[must_use]
pub fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Ours => "ours",
        Kind::Go => "go",
    }
}

fn start_manager(kind: Kind, setting: &Setting, rig: &Rig, log: &Path) -> Result<Process, Failure> {
    let (program, first) = match kind {
        Kind::Ours => (setting.program.clone(), &["controller-manager"][..]),
        Kind::Go => (programs()?.join("kube-controller-manager"), &[][..]),
    };
    let mut flags = rig.manager_flags();
    if let Some(controllers) = &setting.controllers {
        // A second list would be added to the first.
        flags.retain(|flag| !flag.starts_with("--controllers="));
        flags.push(format!("--controllers={controllers}"));
    }
    let certificates = rig.scratch().join("certificates");
    flags.extend([format!("--secure-port={}", free_port()?), format!("--cert-dir={}", certificates.display())]);
    flags.extend(FLAGS.iter().map(ToString::to_string));
    Process::start(log, dies_with_parent(&program).args(first).args(flags))
}

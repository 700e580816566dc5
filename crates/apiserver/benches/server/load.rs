//! What is asked of a server. Each part uses a namespace of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::author;
use crate::client::{Connection, Target};

pub(crate) const PODS: usize = 10_000;
const CONNECTIONS: usize = 8;
const POD_CLIENTS: usize = 32;
const LISTS: usize = 7;
const MAP_CLIENTS: usize = 64;
/// Whichever comes first; a fast server's second is enough.
const MAPS_MAX: usize = 20_000;
const MAPS_TIME: Duration = Duration::from_secs(5);
const MAPS_WARM_UP: usize = 500;
/// Deployments that are applied in turns.
const DEPLOYMENTS: usize = 64;
const APPLIES_MAX: usize = 10_000;
/// Rounds of a new definition.
const DEFINITIONS: usize = 3;
const CUSTOM_TIMEOUT: Duration = Duration::from_secs(30);
const WATCHERS: usize = 1_000;
/// Streams of one connection, well under what both servers allow.
const WATCHERS_PER_CONNECTION: usize = 100;
const CHANGES: usize = 20;
/// Between changes, so that one does not meet the tail of another.
const PAUSE: Duration = Duration::from_millis(100);

/// Connections to a server that has our namespaces.
pub(crate) struct Load {
    connections: Vec<Connection>,
}

/// Method, path and body.
type Write = (Method, String, Bytes);

/// The best of some equal lists.
pub(crate) struct Lists {
    pub(crate) bytes: usize,
    pub(crate) best: Duration,
}

// === impl Load ===

impl Load {
    pub(crate) async fn new(target: &Target) -> Self {
        let mut connections = target.connections(CONNECTIONS).await;
        for name in ["bench-pods", "bench-maps", "bench-watch", "bench-author"] {
            connections[0].post("/api/v1/namespaces", body(&json!({"metadata": {"name": name}}))).await;
        }
        Self { connections }
    }

    pub(crate) async fn create_pods(&self) {
        let path = "/api/v1/namespaces/bench-pods/pods";
        let limit = Duration::from_secs(120);
        let (count, took) = self.write((0..PODS).map(|at| create(path, &pod(at))).collect(), POD_CLIENTS, limit).await;
        assert_eq!(count, PODS, "every pod is made in {limit:?}");
        eprintln!("{:.0} pods made per second by {POD_CLIENTS} clients", count as f64 / took.as_secs_f64());
    }

    pub(crate) async fn list_pods(&self) -> Lists {
        let mut connection = self.connections[0].clone();
        let mut lists = Lists { bytes: 0, best: Duration::MAX };
        for _ in 0..LISTS {
            let started = Instant::now();
            lists.bytes = connection.get("/api/v1/namespaces/bench-pods/pods").await;
            lists.best = lists.best.min(started.elapsed());
        }
        lists
    }

    /// Creates per second.
    pub(crate) async fn create_maps(&self) -> f64 {
        let path = "/api/v1/namespaces/bench-maps/configmaps";
        let writes = |prefix, count| (0..count).map(|at| create(path, &config_map(prefix, at))).collect();
        self.rate(writes("warm", MAPS_WARM_UP), writes("map", MAPS_MAX)).await
    }

    /// Applies of a Deployment of 5 KB per second: every one changes its images.
    pub(crate) async fn apply_deployments(&self) -> f64 {
        let path = "/apis/apps/v1/namespaces/bench-author/deployments";
        let writes = |count: usize| -> Vec<Write> {
            let apply = |at: usize| {
                let name = format!("web-{}", at % DEPLOYMENTS);
                let path = format!("{path}/{name}?fieldManager=bench&force=true");
                (Method::PATCH, path, body(&author::deployment(&name, at / DEPLOYMENTS)))
            };
            (0..count).map(apply).collect()
        };
        self.rate(writes(DEPLOYMENTS), writes(APPLIES_MAX)).await
    }

    /// The time from a definition to the answer about its first object, and creates of such objects per second.
    pub(crate) async fn create_custom(&self) -> (Duration, f64) {
        let mut connection = self.connections[0].clone();
        let mut best = Duration::MAX;
        for round in 0..DEFINITIONS {
            let plural = author::plural(round);
            let definition = body(&author::definition(&plural));
            let first = body(&author::custom(&plural, "first", 0));
            let path = author::path(&plural);
            let started = Instant::now();
            connection.post(author::DEFINITIONS, definition).await;
            while !connection.answer(Method::POST, &path, first.clone()).await.status().is_success() {
                assert!(started.elapsed() < CUSTOM_TIMEOUT, "{plural} are served in time");
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            best = best.min(started.elapsed());
        }
        let plural = author::plural(0);
        let path = author::path(&plural);
        let writes = |prefix: &str, count: usize| -> Vec<Write> {
            (0..count).map(|at| create(&path, &author::custom(&plural, &format!("{prefix}-{at}"), at))).collect()
        };
        (best, self.rate(writes("warm", MAPS_WARM_UP), writes("custom", APPLIES_MAX)).await)
    }

    /// Writes per second, after some to warm up.
    async fn rate(&self, warm_up: Vec<Write>, writes: Vec<Write>) -> f64 {
        self.write(warm_up, MAP_CLIENTS, MAPS_TIME).await;
        let (count, took) = self.write(writes, MAP_CLIENTS, MAPS_TIME).await;
        count as f64 / took.as_secs_f64()
    }

    /// Writes until there is nothing left to write or no time: how many, and how long it took.
    async fn write(&self, bodies: Vec<Write>, clients: usize, limit: Duration) -> (usize, Duration) {
        let bodies = Arc::new(bodies);
        let next = Arc::new(AtomicUsize::new(0));
        let started = Instant::now();
        let clients = (0..clients).map(|client| {
            let mut connection = self.connections[client % self.connections.len()].clone();
            let bodies = Arc::clone(&bodies);
            let next = Arc::clone(&next);
            tokio::spawn(async move {
                let mut count = 0;
                while started.elapsed() < limit {
                    let next = bodies.get(next.fetch_add(1, Ordering::Relaxed));
                    let Some((method, path, body)) = next else { break };
                    connection.write(method.clone(), path, body.clone()).await;
                    count += 1;
                }
                count
            })
        });
        let mut count = 0;
        for client in clients.collect::<Vec<_>>() {
            count += client.await.expect("a client ends well");
        }
        (count, started.elapsed())
    }

    /// How long it takes at best from a request that changes something until the last watcher has it.
    pub(crate) async fn watch(&self, target: &Target) -> Duration {
        let path = "/api/v1/namespaces/bench-watch/configmaps";
        let mut writer = self.connections[0].clone();
        let list = writer.json(path).await;
        let revision = list["metadata"]["resourceVersion"].as_str().expect("a list has a resource version");
        let watch = format!("{path}?watch=true&resourceVersion={revision}");

        let (arrived, mut arrivals) = mpsc::unbounded_channel();
        let connections = target.connections(WATCHERS / WATCHERS_PER_CONNECTION).await;
        for at in 0..WATCHERS {
            let mut connection = connections[at % connections.len()].clone();
            // The headers come when the watch is there.
            let response = connection.open(Method::GET, &watch, Bytes::new()).await;
            tokio::spawn(events(response.into_body(), arrived.clone()));
        }

        let mut took = Vec::with_capacity(CHANGES);
        for change in 0..CHANGES {
            tokio::time::sleep(PAUSE).await;
            let body = body(&config_map("change", change));
            let started = Instant::now();
            let post = writer.post(path, body);
            let all = async {
                let mut last = started;
                for _ in 0..WATCHERS {
                    last = last.max(arrivals.recv().await.expect("watchers live as long as we do"));
                }
                last
            };
            let ((), last) = tokio::join!(post, all);
            took.push(last - started);
        }
        took.sort();
        eprintln!("changes to {WATCHERS} watchers: median {:?}, worst {:?}", took[CHANGES / 2], took[CHANGES - 1]);
        took[0]
    }
}

/// Says when each event of a watch is there: one per line.
async fn events(mut body: Incoming, arrived: mpsc::UnboundedSender<Instant>) {
    while let Some(Ok(frame)) = body.frame().await {
        let lines = frame.data_ref().map_or(0, |data| data.iter().filter(|byte| **byte == b'\n').count());
        let now = Instant::now();
        for _ in 0..lines {
            // Nobody listens any more at the end.
            let _ = arrived.send(now);
        }
    }
}

fn body(value: &Value) -> Bytes {
    Bytes::from(value.to_string())
}

fn create(path: &str, object: &Value) -> Write {
    (Method::POST, path.to_owned(), body(object))
}

/// About 1 KB.
fn config_map(prefix: &str, at: usize) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": format!("{prefix}-{at}"), "labels": {"app": "web"}},
        "data": {"key": "x".repeat(900)},
    })
}

/// What a Deployment's pods look like; about 4 KB once its defaults are set.
fn pod(at: usize) -> Value {
    let env = |name: usize| json!({"name": format!("SETTING_{name}"), "value": format!("{name}-{}", "v".repeat(30))});
    let probe = json!({"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10});
    let container = |name: &str| {
        json!({
            "name": name,
            "image": format!("registry.example.com/team/{name}:1.{}", at % 10),
            "ports": [{"name": format!("{name}-http"), "containerPort": 8080}],
            "env": (0..10).map(env).collect::<Vec<_>>(),
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
            "readinessProbe": probe,
            "livenessProbe": probe,
            "volumeMounts": [{"name": "config", "mountPath": "/etc/config"}],
        })
    };
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": format!("web-{}-{at:05}", at / 100),
            "labels": {"app": "web", "tier": "front", "pod-template-hash": format!("{}", at / 100)},
            "annotations": {"example.com/checksum": "c".repeat(64)},
        },
        "spec": {
            "containers": [container("server"), container("sidecar")],
            "volumes": [{"name": "config", "configMap": {"name": "web"}}],
            "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "web", "effect": "NoSchedule"}],
        },
    })
}

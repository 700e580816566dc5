//! What an event costs that concerns nobody: from the bytes of a watch through reflector, delta FIFO and indexed store to
//! the ReplicaSet controller, which finds no owner of the pod and drops it. Processor time of the whole process, the server
//! included, which hands out bytes that were made before.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use kube::Client;
use kube::client::Body;
use serde_json::json;
use steersman_informer::Selection;
use steersman_model::corpus::protobuf::{envelope, put_bytes};
use steersman_model::corpus::{Corpus, to_protobuf};
use steersman_model::{Kind, PodView};
use steersman_runtime::{Build, Manager, ManagerOptions};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::process::processor_time;
use crate::{Side, report};

/// How many events a round has.
pub(crate) const COUNT: usize = 50_000;
/// The cluster's pods, each of which changes now and then.
const PODS: usize = 5_000;
const ROUNDS: usize = 3;
/// Above every version of the corpus.
const LIST_VERSION: usize = 9_000_000;
/// What a connection hands over at once, about; bursts are larger than this, single events smaller.
const CHUNK_BYTES: usize = 16 << 10;
/// Everything is over in seconds.
const PATIENCE: Duration = Duration::from_secs(120);

type Stream = UnsyncBoxBody<Bytes, Infallible>;

#[derive(Clone, Copy, Debug)]
enum Format {
    Json,
    Protobuf,
}

/// What the server sends: what there is, and on demand, what happens.
#[derive(Clone)]
struct Script {
    format: Format,
    begin: Vec<Bytes>,
    then: Vec<Bytes>,
    go: Arc<Notify>,
}

/// The best of some rounds, in both formats.
pub(crate) fn measure(count: usize) {
    for (format, name) in [(Format::Json, "JSON"), (Format::Protobuf, "protobuf")] {
        // Pods are about 7 KB.
        let script = Script::new(format, count);
        let best = (0..ROUNDS).map(|_| round(script.clone(), count)).min().unwrap_or_default();
        let each = best.as_secs_f64() * 1e6 / count as f64;
        report(Side::Ours, &format!("CPU per irrelevant pod event, {name}"), each, "µs");
    }
}

/// The processor time of all events.
fn round(script: Script, count: usize) -> Duration {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let go = Arc::clone(&script.go);
        let manager = Manager::new(script.client(), ManagerOptions::default().without_metrics()).expect("a manager");
        let descriptor =
            steersman_controllers::ALL.iter().find(|descriptor| descriptor.name == "replicaset-controller");
        let built = manager.build(descriptor.expect("there is a ReplicaSet controller"), None);
        assert_eq!(built, Build::Enabled);
        let stop = CancellationToken::new();
        let running = tokio::spawn({
            let manager = manager.clone();
            let stop = stop.clone();
            async move { manager.run(stop).await }
        });
        crate::controller::filled(&manager).await;
        let pods = manager.informers().existing::<PodView>(&PodView::RESOURCE, Selection::everything());
        let pods = pods.expect("the controller watches pods");
        assert_eq!(pods.lister().len(), PODS.min(count));
        let last = (LIST_VERSION + count).to_string();

        let before = processor_time("self");
        go.notify_one();
        let arrived = async {
            while pods.reached().is_none_or(|version| version.as_str() != last) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(PATIENCE, arrived).await.expect("the last event arrives");
        // The last burst is on its way from the store to the controller.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let took = processor_time("self") - before;
        stop.cancel();
        running.await.expect("a task").expect("an orderly end");
        took
    })
}

// === impl Script ===

impl Script {
    fn new(format: Format, count: usize) -> Self {
        let pods = PODS.min(count);
        let at = |index: usize, version: usize| {
            let pod = Corpus::new(1).pod(index);
            let old = format!("\"resourceVersion\":\"{}\"", 1_000_000 + index);
            pod.replacen(&old, &format!("\"resourceVersion\":\"{version}\""), 1)
        };
        let end = json!({"metadata": {
            "resourceVersion": LIST_VERSION.to_string(),
            "annotations": {"k8s.io/initial-events-end": "true"},
        }});
        let initial = (0..pods).map(|index| format.event("ADDED", &at(index, 1_000_000 + index)));
        let begin = initial.chain([format.event("BOOKMARK", &end.to_string())]);
        let changes = (0..count).map(|step| format.event("MODIFIED", &at(step % pods, LIST_VERSION + 1 + step)));
        Self { format, begin: chunks(begin), then: chunks(changes), go: Arc::new(Notify::new()) }
    }

    fn client(self) -> Client {
        let service = tower::service_fn(move |request: Request<Body>| {
            let answer = self.answer(&request);
            async move { Ok::<_, Infallible>(answer) }
        });
        Client::new(service, "default")
    }

    /// A streaming list that becomes a watch. Of everything but pods there is nothing.
    fn answer(&self, request: &Request<Body>) -> Response<Stream> {
        let query = request.uri().query().unwrap_or_default();
        assert!(query.contains("sendInitialEvents=true"), "one streaming list each: {}", request.uri());
        let (format, begin, then) = match request.uri().path().strip_suffix("/pods") {
            Some(_) => (self.format, self.begin.clone(), self.then.clone()),
            None => (Format::Json, vec![nothing(request.uri().path())], Vec::new()),
        };
        let go = Arc::clone(&self.go);
        let happens = !then.is_empty();
        let then = stream::once(async move {
            if happens {
                go.notified().await;
            }
            stream::iter(then)
        });
        let frames = stream::iter(begin).chain(then.flatten()).map(|bytes| Ok::<_, Infallible>(Frame::data(bytes)));
        let body = StreamBody::new(frames.chain(stream::pending())).boxed_unsync();
        Response::builder().header("content-type", format.content_type()).body(body).expect("a response")
    }
}

/// The end of an empty streaming list.
fn nothing(path: &str) -> Bytes {
    let (api_version, kind) = match path.rsplit('/').next() {
        Some("replicasets") => ("apps/v1", "ReplicaSet"),
        other => panic!("nobody asks for {other:?} here"),
    };
    let metadata = json!({"resourceVersion": "1", "annotations": {"k8s.io/initial-events-end": "true"}});
    let object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
    Bytes::from(format!("{}\n", json!({"type": "BOOKMARK", "object": object})))
}

/// As a connection hands them over: cut anywhere.
fn chunks(events: impl Iterator<Item = Vec<u8>>) -> Vec<Bytes> {
    let all = Bytes::from(events.flatten().collect::<Vec<_>>());
    (0..all.len()).step_by(CHUNK_BYTES).map(|at| all.slice(at..all.len().min(at + CHUNK_BYTES))).collect()
}

// === impl Format ===

impl Format {
    fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
        }
    }

    /// A watch event about a pod.
    fn event(self, event_type: &str, pod: &str) -> Vec<u8> {
        match self {
            Self::Json => {
                let object = pod.replacen('{', r#"{"kind":"Pod","apiVersion":"v1","#, 1);
                format!("{{\"type\":\"{event_type}\",\"object\":{object}}}\n").into_bytes()
            }
            Self::Protobuf => {
                let object = envelope("v1", "Pod", &to_protobuf("core.v1.Pod", pod));
                let mut raw = Vec::new();
                let mut event = Vec::new();
                put_bytes(&mut raw, 1, &object);
                put_bytes(&mut event, 1, event_type.as_bytes());
                put_bytes(&mut event, 2, &raw);
                let length = u32::try_from(event.len()).expect("an event is small").to_be_bytes();
                [&length[..], &event].concat()
            }
        }
    }
}

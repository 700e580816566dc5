//! A small API server in memory: it lists, watches and refuses, and remembers what it was asked.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures::channel::mpsc::{UnboundedSender, unbounded};
use futures::{StreamExt, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use http_body_util::combinators::UnsyncBoxBody;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};

#[derive(Clone, Default)]
pub(crate) struct Server(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    version: u64,
    resources: BTreeMap<String, Served>,
    asked: Vec<String>,
    standing_still: bool,
}

enum Served {
    Whole { api_version: String, kind: String, objects: BTreeMap<String, Value>, watchers: Vec<UnboundedSender<Bytes>> },
    Refused { code: u16, reason: &'static str },
}

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

// === impl Server ===

impl Server {
    pub(crate) fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let answer = server.answer(&request);
            async move { Ok::<_, Infallible>(answer) }
        });
        Client::new(service, "default")
    }

    /// Serves a collection, empty at first.
    pub(crate) fn serve(&self, path: &str, api_version: &str, kind: &str) {
        let served = Served::Whole {
            api_version: api_version.into(),
            kind: kind.into(),
            objects: BTreeMap::new(),
            watchers: Vec::new(),
        };
        self.0.lock().resources.insert(path.into(), served);
    }

    pub(crate) fn refuse(&self, path: &str, code: u16, reason: &'static str) {
        self.0.lock().resources.insert(path.into(), Served::Refused { code, reason });
    }

    /// Creates or updates `default/{name}`, with more fields if wanted; the answer is its version.
    pub(crate) fn put(&self, path: &str, name: &str, more: &Value) -> u64 {
        let mut state = self.0.lock();
        state.version += 1;
        let State { version, resources, standing_still, .. } = &mut *state;
        let version = *version;
        let Some(Served::Whole { api_version, kind, objects, watchers }) = resources.get_mut(path) else {
            panic!("{path} is not served")
        };
        let mut object = json!({ "apiVersion": api_version, "kind": kind, "metadata": {
            "name": name, "namespace": "default", "uid": format!("uid-{name}"), "resourceVersion": version.to_string(),
        } });
        object.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        let is_new = objects.insert(name.into(), object.clone()).is_none();
        let line = event(if is_new { "ADDED" } else { "MODIFIED" }, &object);
        if !*standing_still {
            watchers.retain(|watcher| watcher.unbounded_send(line.clone()).is_ok());
        }
        version
    }

    /// Watches say nothing any more, and stay open.
    pub(crate) fn stand_still(&self) {
        self.0.lock().standing_still = true;
    }

    /// What was asked for so far, as `path?…`, with ` as metadata` where only that was wanted.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.0.lock().asked.clone()
    }

    /// How many watches of a path are open.
    pub(crate) fn watches(&self, path: &str) -> usize {
        match self.0.lock().resources.get_mut(path) {
            Some(Served::Whole { watchers, .. }) => {
                watchers.retain(|watcher| !watcher.is_closed());
                watchers.len()
            }
            _ => 0,
        }
    }

    fn answer(&self, request: &Request<Body>) -> Answer {
        let accept = request.headers()["accept"].to_str().expect("text");
        let as_metadata = accept.contains("as=PartialObjectMetadata");
        let path = request.uri().path().replace("/namespaces/default", "");
        let query = request.uri().query().unwrap_or_default().to_owned();
        let mut state = self.0.lock();
        let what = match (query.contains("watch=true"), query.contains("limit=1")) {
            (true, _) => "watch",
            (false, true) => "version",
            (false, false) => "list",
        };
        let suffix = if as_metadata { " as metadata" } else { "" };
        state.asked.push(format!("{what} {path}{suffix}"));
        let version = state.version;
        let refused = Served::Refused { code: 404, reason: "NotFound" };
        match state.resources.entry(path).or_insert(refused) {
            Served::Refused { code, reason } => {
                let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": *code,
                    "reason": *reason, "message": format!("this is {reason}") });
                whole(*code, &status)
            }
            Served::Whole { api_version, kind, objects, .. } if what != "watch" => {
                let list = json!({ "apiVersion": api_version, "kind": format!("{kind}List"),
                    "metadata": { "resourceVersion": version.to_string() }, "items": objects.values().collect::<Vec<_>>() });
                whole(
                    200,
                    &if as_metadata {
                        json!({ "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList",
                    "metadata": list["metadata"], "items": metadata_of(objects) })
                    } else {
                        list
                    },
                )
            }
            Served::Whole { api_version, kind, objects, watchers } => {
                let shown: Vec<Value> =
                    if as_metadata { metadata_of(objects) } else { objects.values().cloned().collect() };
                let end = json!({ "apiVersion": api_version, "kind": kind, "metadata": {
                    "resourceVersion": version.to_string(), "annotations": { "k8s.io/initial-events-end": "true" } } });
                let is_first = query.contains("sendInitialEvents");
                let first: Vec<_> = if is_first {
                    shown.iter().map(|object| event("ADDED", object)).chain([event("BOOKMARK", &end)]).collect()
                } else {
                    Vec::new()
                };
                let (sender, receiver) = unbounded();
                watchers.push(sender);
                let lines = stream::iter(first).chain(receiver).map(|line| Ok(Frame::data(line)));
                respond(200, UnsyncBoxBody::new(StreamBody::new(lines)))
            }
        }
    }
}

fn metadata_of(objects: &BTreeMap<String, Value>) -> Vec<Value> {
    let partial = |object: &Value| json!({ "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": object["metadata"] });
    objects.values().map(partial).collect()
}

fn event(kind: &str, object: &Value) -> Bytes {
    format!("{}\n", json!({ "type": kind, "object": object })).into()
}

fn whole(code: u16, body: &Value) -> Answer {
    let frame = Frame::data(Bytes::from(body.to_string()));
    respond(code, UnsyncBoxBody::new(StreamBody::new(stream::iter([Ok(frame)]))))
}

fn respond(code: u16, body: UnsyncBoxBody<Bytes, Infallible>) -> Answer {
    Response::builder().status(code).header("content-type", "application/json").body(body).expect("a response")
}

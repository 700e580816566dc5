//! An embedded server whose requests are seen, and which may misbehave.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use steersman_apiserver::{ApiServer, Options};
use steersman_base::{Clock, Meta, Resource, Time};
use steersman_informer::__internal::consistency::Book;
use steersman_informer::InformerFactory;
use steersman_runtime::__internal::events::Broadcaster;
use steersman_runtime::decisions::Log;
use steersman_runtime::events::EventOptions;
use steersman_runtime::{WriteError, Writer};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tower::{BoxError, Service};

pub(crate) const PODS: Resource = Resource::namespaced("", "v1", "pods", "Pod");
pub(crate) const CONFIG_MAPS: Resource = Resource::namespaced("", "v1", "configmaps", "ConfigMap");
pub(crate) const NAMESPACES: Resource = Resource::cluster("", "v1", "namespaces", "Namespace");
pub(crate) const SETS: Resource = Resource::namespaced("apps", "v1", "replicasets", "ReplicaSet");

steersman_runtime::reasons! {
    /// Why these tests write.
    pub(crate) enum Why {
        /// It is a test.
        Test { number: u32 } => "test number {number}"
            event "Wrote" |object| "Wrote {object} in test {number}"
            or "FailedWrite" |error| "Error writing: {error}",
        /// It is a test without events.
        Silent => "nobody hears of it",
    }
}

/// What happens to a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fate {
    /// The server answers.
    Served,
    /// The server does it, and the answer is lost.
    ReplyLost,
    /// It does not reach the server.
    Lost,
    /// Nothing comes back, ever.
    Silence,
    /// The server refuses, perhaps saying after how many seconds to come back.
    Refused(u16, Option<u64>),
    /// The server says that the name exists; no read shows the object.
    Exists,
}

type Fates = Arc<Mutex<dyn FnMut(&str) -> Fate + Send>>;

/// A server, and what was asked of it.
#[derive(Clone)]
pub(crate) struct Seen {
    server: ApiServer,
    requests: Arc<Mutex<Vec<String>>>,
    bodies: Arc<Mutex<Vec<Value>>>,
    fates: Fates,
}

/// A server, and a writer that writes to it.
pub(crate) struct World {
    pub(crate) seen: Seen,
    /// A client to which nothing happens and whose requests nobody sees.
    pub(crate) client: kube::Client,
    pub(crate) clock: Clock,
    pub(crate) log: Log,
    pub(crate) writer: Writer,
    pub(crate) owner: Meta,
    pub(crate) recorder: steersman_runtime::events::Recorder,
    stop: CancellationToken,
    broadcaster: JoinHandle<()>,
}

// === impl Seen ===

impl Seen {
    /// What was asked, as `POST /api/v1/…`, events left out.
    pub(crate) fn writes(&self) -> Vec<String> {
        self.requests.lock().iter().filter(|request| !request.contains("/events")).cloned().collect()
    }

    /// The bodies that were sent, events left out.
    pub(crate) fn bodies(&self) -> Vec<Value> {
        self.bodies.lock().clone()
    }

    /// What was asked about events.
    pub(crate) fn event_requests(&self) -> Vec<String> {
        self.requests.lock().iter().filter(|request| request.contains("/events")).cloned().collect()
    }
}

impl Service<Request<Body>> for Seen {
    type Response = Response<UnsyncBoxBody<Bytes, BoxError>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), BoxError>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let line = format!("{} {}", request.method(), request.uri());
        self.requests.lock().push(line.clone());
        let fate = (self.fates.lock())(&line);
        let mut server = self.server.clone();
        let bodies = Arc::clone(&self.bodies);
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            if let Some(body) = serde_json::from_slice(&body).ok().filter(|_| !line.contains("/events")) {
                bodies.lock().push(body);
            }
            let request = Request::from_parts(head, Body::from(body.to_vec()));
            match fate {
                Fate::Silence => std::future::pending().await,
                Fate::Lost => return Err("the request was lost, on purpose".into()),
                Fate::Refused(..) | Fate::Exists => {
                    let (code, reason, retry_after) = match fate {
                        Fate::Refused(code, retry_after) => (code, "", retry_after),
                        _ => (409, "AlreadyExists", None),
                    };
                    let status = json!({
                        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
                        "message": format!("refused with {code}, on purpose"),
                    });
                    let mut answer = Response::builder().status(StatusCode::from_u16(code)?);
                    if let Some(seconds) = retry_after {
                        answer = answer.header(header::RETRY_AFTER, seconds);
                    }
                    let body = Full::new(Bytes::from(status.to_string())).map_err(|never| match never {});
                    return Ok(answer.body(body.boxed_unsync())?);
                }
                Fate::Served | Fate::ReplyLost => {}
            }
            let answer = server.call(request).await?;
            if matches!(fate, Fate::ReplyLost) {
                return Err("the reply was lost, on purpose".into());
            }
            Ok(answer.map(|body| body.map_err(|never| match never {}).boxed_unsync()))
        })
    }
}

// === impl World ===

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(|_| Fate::Served).await
    }

    pub(crate) async fn with(fates: impl FnMut(&str) -> Fate + Send + 'static) -> Self {
        Self::with_events(EventOptions::default(), fates).await
    }

    pub(crate) async fn with_events(events: EventOptions, fates: impl FnMut(&str) -> Fate + Send + 'static) -> Self {
        let clock = Clock::starting_at(Time::from_unix(1_794_744_000));
        let server = ApiServer::new(Options::default().clock(clock.clone()));
        let client = kube::Client::new(server.clone(), "default");
        let seen =
            Seen { server, requests: Arc::default(), bodies: Arc::default(), fates: Arc::new(Mutex::new(fates)) };
        let through = kube::Client::new(seen.clone(), "default");
        let broadcaster = Broadcaster::new(through.clone(), clock.clone(), events);
        let recorder = broadcaster.recorder();
        let stop = CancellationToken::new();
        let broadcaster = tokio::spawn(broadcaster.run(stop.clone()));
        let book = Book::new(&InformerFactory::new(client.clone()));
        let writer = Writer::new(through, book).bound_to("test-controller", SETS, recorder.clone());
        let owner = Meta { namespace: "default".into(), name: "web".into(), uid: "u-1".into(), ..Meta::default() };
        let log = Log::new(clock.clone());
        Self { seen, client, clock, log, writer, owner, recorder, stop, broadcaster }
    }

    /// The events that the server has: type, reason, text, count; by name.
    pub(crate) async fn events(&self) -> Vec<(String, String, String, i64)> {
        let request = Request::get("/api/v1/events").body(Vec::new()).unwrap();
        let list: Value = self.client.request(request).await.unwrap();
        let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
        let events = list["items"].as_array().unwrap().iter();
        events
            .map(|event| {
                (
                    text(event, "type"),
                    text(event, "reason"),
                    text(event, "message"),
                    event["count"].as_i64().unwrap_or(0),
                )
            })
            .collect()
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value, u16> {
        match self.client.request(Request::get(path).body(Vec::new()).unwrap()).await {
            Ok(object) => Ok(object),
            Err(kube::Error::Api(status)) => Err(status.code),
            Err(error) => panic!("{path}: {error}"),
        }
    }

    /// Stops the events, after the last of them is sent.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.broadcaster.await.unwrap();
    }
}

pub(crate) fn config_map(name: &str) -> Vec<u8> {
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}});
    body.to_string().into_bytes()
}

/// Time in which everything that is under way comes to an end.
pub(crate) async fn moment() {
    tokio::time::sleep(Duration::from_millis(100)).await;
}

/// The name of an outcome, for tables.
pub(crate) fn name<T>(outcome: &Result<T, WriteError>) -> String {
    match outcome {
        Ok(_) => "Ok".into(),
        Err(error) => format!("{error:?}").split(['(', ' ']).next().unwrap_or_default().to_owned(),
    }
}

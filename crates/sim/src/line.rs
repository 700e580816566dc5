//! The way from one process to the server: it is slow, loses and forges what the plan says, and notes what the process has
//! been shown.
//!
//! 1. Requests carry their author, so that the recorder knows it.
//! 2. A dead process sends and receives nothing more.
//! 3. A process that is frozen sends what it holds when it thaws: only then is the body of a request pulled.
//! 4. What a watch holds back arrives in order, and no later than the fault ends.

mod body;
mod past;
mod shown;

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use fastrand::Rng;
use futures::future::{BoxFuture, pending};
use http::{Method, Request, Response, StatusCode, Uri, header};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::json;
use steersman_apiserver::ApiServer;
use steersman_apiserver::Body as Answer;
use steersman_base::{Clock, Istr};
use tokio_util::sync::CancellationToken;
use tower::{BoxError, Service};

use crate::faults::{About, Faults};
use crate::plan::{Fault, Millis, Verb};
use crate::record::{Actor, Shown};
use crate::server::{ASKED_BY, Recorder};

use body::Carried;
use shown::Sight;

/// The connection from one process to the server. Clones share it.
#[derive(Clone)]
pub struct Line(Arc<Shared>);

struct Shared {
    server: ApiServer,
    recorder: Recorder,
    faults: Faults,
    clock: Clock,
    /// The number of the manager; none for nodes.
    manager: Option<usize>,
    /// The number of the manager's life, which no other has.
    life: usize,
    latency_max: Millis,
    random: Mutex<Rng>,
    sight: Mutex<Sight>,
    dead: CancellationToken,
    /// For how long the process is dead.
    away: Mutex<Millis>,
}

/// A line as one controller uses it.
#[derive(Clone)]
struct Lane {
    line: Line,
    controller: Option<Istr>,
}

/// A request that takes longer than this is late, in seconds.
const LATE_SECONDS: i64 = 1;
/// The name of a manager's own requests: informers, leases and events.
const MANAGER: &str = "manager";

// === impl Line ===

impl Line {
    /// A line for a manager, by its number and the number of its life, or for the nodes.
    #[must_use]
    pub fn new(
        server: &ApiServer,
        recorder: &Recorder,
        faults: &Faults,
        clock: &Clock,
        manager: Option<(usize, usize)>,
        latency_max: Millis,
        seed: u64,
    ) -> Self {
        Self(Arc::new(Shared {
            server: server.clone(),
            recorder: recorder.clone(),
            faults: faults.clone(),
            clock: clock.clone(),
            manager: manager.map(|(number, _)| number),
            life: manager.map_or(0, |(_, life)| life),
            latency_max,
            random: Mutex::new(Rng::with_seed(seed)),
            sight: Mutex::default(),
            dead: CancellationToken::new(),
            away: Mutex::new(0),
        }))
    }

    /// A client for a controller; or, without one, for what a manager does for all of them.
    #[must_use]
    pub fn client(&self, controller: Option<&str>) -> Client {
        Client::new(Lane { line: self.clone(), controller: controller.map(Istr::interned) }, "default")
    }

    /// Cancelled when the process dies.
    #[must_use]
    pub fn dead(&self) -> &CancellationToken {
        &self.0.dead
    }

    /// The process dies, for this time.
    pub fn kill(&self, away: Millis) {
        *self.0.away.lock() = away;
        self.0.dead.cancel();
    }

    /// Returns for how long the dead process is dead.
    #[must_use]
    pub fn away(&self) -> Millis {
        *self.0.away.lock()
    }

    async fn carry(self, controller: Option<Istr>, request: Request<Body>) -> Result<Response<Carried>, BoxError> {
        let shared = &*self.0;
        let (verb, resource) = about(request.method(), request.uri());
        let about =
            About { manager: shared.manager, controller: controller.as_deref().map(str::to_owned), verb, resource };
        let actor = match shared.manager {
            Some(_) => Actor::Controller { manager: shared.life, name: controller.unwrap_or_else(|| MANAGER.into()) },
            None => Actor::Node,
        };
        shared.recorder.aside(format_args!("? {actor} {} {}", request.method(), request.uri()));
        // The state at the time of the request, not at the time of the write. Reads are not checked.
        let judged = shared.manager.is_some() && verb.writes();
        let seen = judged.then(|| shared.sight.lock().now(shared.clock.now()));
        let asked = shared.clock.now();
        self.alive().await;
        let frozen = self.thawed().await;
        let seen = seen.map(|seen| match frozen {
            true => Arc::new(Shown { sent: Some(shared.clock.now()), ..Shown::clone(&seen) }),
            false => seen,
        });
        self.travel().await;
        let fate = self.fate(&about).await?;
        if let Fate::Refused(answer) = fate {
            return Ok(self.unwatched(*answer));
        }
        if let Fate::Early(code, after) = fate {
            let seen = seen.map(|seen| Arc::new(Shown { sent: Some(asked), ..Shown::clone(&seen) }));
            self.do_later(request, actor, seen, after).await?;
            return Ok(self.unwatched(refusal(code, "Timeout", "an error before it is done, on purpose", None)));
        }
        self.thawed().await;
        // One that was late on its way was sent when it was asked.
        let is_late = shared.clock.now() > asked.plus_seconds(LATE_SECONDS);
        let seen = seen.map(|seen| match seen.sent {
            None if is_late => Arc::new(Shown { sent: Some(asked), ..Shown::clone(&seen) }),
            _ => seen,
        });
        let stream = (verb == Verb::Watch).then(|| shown::stream_of(&request));
        let lists = controller_less_list(&about, &request);
        let is_initial = request.uri().query().is_some_and(|query| query.contains("sendInitialEvents=true"));
        let answer = match self.past(&about, lists || is_initial) {
            Some(revision) => past::answer(shared.server.clone(), request, revision, is_initial).await,
            None => {
                let mut server = shared.server.clone();
                ASKED_BY.scope((actor, seen), async move { server.call(request).await }).await?
            }
        };
        let is_done = about.verb.writes() && answer.status().is_success();
        // Telling is not doing: events and leases do not count as writes.
        let counts = is_done && !matches!(&*about.resource, "events" | "leases.coordination.k8s.io");
        if shared.manager.is_some()
            && counts
            && let Some(away) = shared.faults.dies_of_write(&about)
        {
            self.kill(away);
        }
        self.alive().await;
        if let Some(spoilt) = self.spoilt(&fate) {
            return spoilt;
        }
        self.travel().await;
        self.thawed().await;
        if answer.status() != StatusCode::OK {
            return Ok(self.unwatched(answer));
        }
        match stream {
            Some(stream) => Ok(answer.map(|inner| Carried::watch(&self, about, stream, is_initial, inner))),
            None if lists => {
                let stream = shown::stream_of_list(&about);
                Ok(answer.map(|inner| Carried::list(&self, about, stream, inner)))
            }
            None => Ok(self.unwatched(answer)),
        }
    }

    /// Has a request done later, of which all bytes have left the process now, whatever becomes of it.
    async fn do_later(
        &self,
        request: Request<Body>,
        actor: Actor,
        seen: Option<Arc<Shown>>,
        after: Millis,
    ) -> Result<(), BoxError> {
        let (head, body) = request.into_parts();
        let bytes = body.collect().await?.to_bytes();
        let request = Request::from_parts(head, Body::from(bytes));
        let mut server = self.0.server.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(after)).await;
            // Nobody waits for the answer.
            let _ = ASKED_BY.scope((actor, seen), async move { server.call(request).await }).await;
        });
        Ok(())
    }

    /// Returns what arrives in place of the answer to a request that was done, if anything does.
    fn spoilt(&self, fate: &Fate) -> Option<Result<Response<Carried>, BoxError>> {
        match fate {
            Fate::Lost(fault) => {
                self.0.faults.acted(*fault);
                Some(Err("the reply was lost, on purpose".into()))
            }
            Fate::Forged(fault, code) => {
                self.0.faults.acted(*fault);
                let text = "an error after it was done, on purpose";
                Some(Ok(self.unwatched(refusal(*code, "InternalError", text, None))))
            }
            Fate::Passes | Fate::Refused(_) | Fate::Early(..) => None,
        }
    }

    fn unwatched(&self, answer: Response<Answer>) -> Response<Carried> {
        answer.map(|inner| Carried::whole(self, inner))
    }

    /// Never, if the process is dead.
    async fn alive(&self) {
        if self.0.dead.is_cancelled() {
            pending::<()>().await;
        }
    }

    /// When the process is not frozen. Answers whether it was.
    async fn thawed(&self) -> bool {
        let mut frozen = false;
        while let Some(to) = self.0.faults.frozen_until(self.0.manager) {
            self.0.faults.acted(Fault::Frozen);
            tokio::time::sleep_until(self.0.faults.instant(to)).await;
            frozen = true;
        }
        self.alive().await;
        frozen
    }

    async fn travel(&self) {
        let time = self.0.random.lock().u64(..=self.0.latency_max);
        if time > 0 {
            tokio::time::sleep(Duration::from_millis(time)).await;
        }
    }

    fn one_in(&self, count: u32) -> bool {
        count <= 1 || self.0.random.lock().u32(..count) == 0
    }

    /// From which revision lists are answered, if not from the newest.
    fn past(&self, about: &About, lists: bool) -> Option<u64> {
        if !lists || about.controller.is_some() {
            return None;
        }
        let shared = &*self.0;
        shared.faults.open(about).find_map(|window| match window.fault {
            Fault::ListsFromThePast(ago) => {
                shared.faults.acted(window.fault);
                let at = window.from.saturating_sub(ago);
                Some(shared.recorder.revision_at(shared.faults.instant(at)))
            }
            _ => None,
        })
    }

    /// What becomes of a request. Waits as long as it has to.
    async fn fate(&self, about: &About) -> Result<Fate, BoxError> {
        let faults = &self.0.faults;
        let windows: Vec<_> = faults.open(about).cloned().collect();
        let is_lease = about.resource == "leases.coordination.k8s.io";
        let mut fate = Fate::Passes;
        for window in windows {
            let fault = window.fault;
            let refused = |code, reason, message, after| {
                faults.acted(fault);
                Ok(Fate::Refused(Box::new(refusal(code, reason, message, after))))
            };
            if self.0.manager.is_none() {
                // Nothing else happens to nodes.
                if let Fault::SlowKubelets(by) = fault
                    && about.verb.writes()
                    && about.resource == "pods"
                {
                    faults.acted(fault);
                    let due = faults.instant((faults.now() + by).min(window.to));
                    tokio::time::sleep_until(due).await;
                }
                continue;
            }
            match fault {
                Fault::ServerAway => {
                    faults.acted(fault);
                    return Err("the server is away, on purpose".into());
                }
                Fault::ServerSilent => {
                    faults.acted(fault);
                    tokio::time::sleep_until(faults.instant(window.to)).await;
                    return Err("the server did not answer, on purpose".into());
                }
                // The lease has faults of its own: leaders could not work otherwise.
                _ if is_lease => {}
                Fault::RequestsLost(count) if self.one_in(count) => {
                    faults.acted(fault);
                    return Err("the request was lost, on purpose".into());
                }
                Fault::NeverAnswered(count) if self.one_in(count) => {
                    faults.acted(fault);
                    pending::<()>().await;
                }
                Fault::AnsweredThenDone(code, after, count) if about.verb.writes() && self.one_in(count) => {
                    faults.acted(fault);
                    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::GATEWAY_TIMEOUT);
                    return Ok(Fate::Early(code, after));
                }
                Fault::RequestsLate(by) if about.verb.writes() => {
                    faults.acted(fault);
                    tokio::time::sleep_until(faults.instant((faults.now() + by).min(window.to))).await;
                }
                Fault::StatusHeld if about.verb == Verb::Status => {
                    faults.acted(fault);
                    tokio::time::sleep_until(faults.instant(window.to)).await;
                }
                Fault::Throttled(count) if self.one_in(count) => {
                    let message = "too many requests, on purpose";
                    return refused(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message, Some(1));
                }
                Fault::QuotaRefuses if about.verb == Verb::Create && about.resource == "pods" => {
                    let message = "pods is forbidden: exceeded quota: pods, on purpose";
                    return refused(StatusCode::FORBIDDEN, "Forbidden", message, None);
                }
                Fault::WebhookRefuses(count) if about.verb.writes() && self.one_in(count) => {
                    let message = "admission webhook \"no.example.com\" denied the request: on purpose";
                    return refused(StatusCode::FORBIDDEN, "Forbidden", message, None);
                }
                Fault::RepliesLost(count) if about.verb.writes() && self.one_in(count) => fate = Fate::Lost(fault),
                Fault::DoneThen(code, count) if about.verb.writes() && self.one_in(count) => {
                    fate = Fate::Forged(fault, StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR));
                }
                _ => {}
            }
        }
        Ok(fate)
    }
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Line").field("manager", &self.0.manager).finish_non_exhaustive()
    }
}

/// What becomes of a request.
enum Fate {
    Passes,
    /// It gets this response, and is not made.
    Refused(Box<Response<Answer>>),
    /// It gets this response now, and is made this much later.
    Early(StatusCode, Millis),
    /// It is made, and the response is lost.
    Lost(Fault),
    /// It is made, and the response is an error.
    Forged(Fault, StatusCode),
}

impl Service<Request<Body>> for Lane {
    type Response = Response<Carried>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Carried>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.line.clone().carry(self.controller.clone(), request))
    }
}

/// Whether it is a list with which a cache is filled.
fn controller_less_list(about: &About, request: &Request<Body>) -> bool {
    let is_later_page = request.uri().query().is_some_and(|query| query.contains("continue="));
    about.controller.is_none() && about.verb == Verb::List && !is_later_page
}

/// An answer that refuses.
fn refusal(code: StatusCode, reason: &str, message: &str, retry_after: Option<u64>) -> Response<Answer> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "code": code.as_u16(), "reason": reason, "message": message,
    });
    let mut answer = Response::new(Answer::whole(status.to_string()));
    *answer.status_mut() = code;
    answer.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    if let Some(seconds) = retry_after {
        answer.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    answer
}

/// What a request does, and to what.
#[must_use]
pub fn about(method: &Method, uri: &Uri) -> (Verb, String) {
    let mut parts = uri.path().split('/').filter(|part| !part.is_empty());
    let group = match parts.next() {
        Some("api") => {
            parts.next();
            ""
        }
        Some("apis") => {
            let group = parts.next().unwrap_or_default();
            parts.next();
            group
        }
        _ => return (Verb::Get, String::new()),
    };
    let mut rest: Vec<&str> = parts.collect();
    // `namespaces/x/pods` is about pods; `namespaces/x` and its two subresources are about the namespace.
    if rest.len() > 2 && rest[0] == "namespaces" && !matches!(rest[2], "status" | "finalize") {
        rest.drain(..2);
    }
    let Some(plural) = rest.first() else { return (Verb::Get, String::new()) };
    let resource = if group.is_empty() { (*plural).to_owned() } else { format!("{plural}.{group}") };
    let watches =
        uri.query().is_some_and(|query| query.split('&').any(|pair| pair == "watch=true" || pair == "watch=1"));
    let is_status = rest.get(2) == Some(&"status");
    let verb = match (method, rest.get(1)) {
        (&Method::GET, None) if watches => Verb::Watch,
        (&Method::GET, None) => Verb::List,
        (&Method::PUT | &Method::PATCH, Some(_)) if is_status => Verb::Status,
        (&Method::POST, _) => Verb::Create,
        (&Method::PUT, _) => Verb::Update,
        (&Method::PATCH, _) => Verb::Patch,
        (&Method::DELETE, _) => Verb::Delete,
        _ => Verb::Get,
    };
    (verb, resource)
}

//! The connection from one manager to the API server: an HTTP proxy on the loopback, which injects the faults of the
//! plan.
//!
//! 1. Requests without credentials go on with the certificate of the controller manager; those with a token keep it.
//! 2. Each request names its manager in the user agent, so that the audit log shows its author.
//! 3. What is late or held back on a watch arrives in order.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use futures::future::BoxFuture;
use futures::stream;
use http::{Request, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::json;
use steersman_runtime::connection::{Connection, Options};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tower::{BoxError, ServiceExt as _};

use super::{Problem, audit};
use crate::faults::{About, Faults};
use crate::line::about;
use crate::plan::{Fault, Verb, Window};

/// The faults of the storm, which begins when all are there.
pub type Weather = Arc<Mutex<Faults>>;

/// A running proxy. It stops when dropped.
#[derive(Debug)]
pub struct Proxy {
    /// Where it listens.
    pub address: SocketAddr,
    leads: Arc<Mutex<Option<Instant>>>,
    _tasks: JoinSet<()>,
}

struct Way {
    manager: usize,
    weather: Weather,
    random: Mutex<Rng>,
    /// With the certificate of the controller manager, and without credentials.
    own: Sender,
    bearer: Sender,
    leads: Arc<Mutex<Option<Instant>>>,
}

type Sender = steersman_runtime::__internal::connection::Transport;
type Answer = Response<UnsyncBoxBody<Bytes, Problem>>;

/// The fault of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Nothing.
    Passes,
    /// It is not sent, and the connection breaks at once.
    Refused,
    /// It is not sent, and the connection breaks at this instant.
    Swallowed(Instant),
    /// It is done, and the connection breaks.
    ReplyLost,
    /// It is done, and answered with this code.
    Falsified(u16),
}

/// The fault of a piece of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    /// It arrives at this instant.
    Due(Instant),
    /// Half of it arrives, and the connection breaks.
    Cut,
}

/// The polling period of an idle watch.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// What the path of the managers' lease ends with.
const LEASE: &str = "/leases/kube-controller-manager";

// === impl Proxy ===

impl Proxy {
    /// Starts the proxy of a manager, before the API server at `server`.
    ///
    /// # Errors
    /// The kubeconfig of the controller manager does not work, or no port is free.
    pub async fn start(
        manager: usize,
        kubeconfig: PathBuf,
        server: String,
        weather: Weather,
        seed: u64,
    ) -> Result<Self, Problem> {
        let options = Options::default().kubeconfig(kubeconfig).server(server);
        let connection = Connection::load(options).await?.without_user_agent();
        let leads = Arc::new(Mutex::new(None));
        let way = Arc::new(Way {
            manager,
            weather,
            random: Mutex::new(Rng::with_seed(seed ^ u64::try_from(manager).unwrap_or(0))),
            own: connection.transport().await?,
            bearer: connection.without_credentials().transport().await?,
            leads: Arc::clone(&leads),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                tokio::select! {
                    biased;
                    Some(_) = connections.join_next() => {}
                    accepted = listener.accept() => match accepted {
                        Ok((stream, _)) => { connections.spawn(serve(stream, Arc::clone(&way))); }
                        Err(_) => tokio::time::sleep(LOOK_EVERY).await,
                    }
                }
            }
        });
        Ok(Self { address, leads, _tasks: tasks })
    }

    /// When the manager last took or renewed the lease.
    #[must_use]
    pub fn renewed(&self) -> Option<Instant> {
        *self.leads.lock()
    }
}

async fn serve(stream: TcpStream, way: Arc<Way>) {
    let service = service_fn(move |request| {
        let way = Arc::clone(&way);
        // Boxed: the compiler does not see otherwise that it can be sent to another thread.
        let carried: BoxFuture<'static, Result<Answer, Problem>> = Box::pin(async move { way.carry(request).await });
        carried
    });
    // A connection that breaks is what this is for.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

fn told(error: impl Into<BoxError>) -> Problem {
    Problem::new(error.into().to_string())
}

// === impl Way ===

impl Way {
    /// An error breaks the connection.
    async fn carry(&self, request: Request<Incoming>) -> Result<Answer, Problem> {
        let (verb, resource) = about(request.method(), request.uri());
        let about = About { manager: Some(self.manager), controller: None, verb, resource };
        let renews = verb.writes() && request.uri().path().ends_with(LEASE);
        let faults = self.weather.lock().clone();
        let fate = fate(faults.open(&about), &about, &faults, |one_in| self.random.lock().u32(..one_in.max(1)) == 0);
        if let Fate::Swallowed(until) = fate {
            tokio::time::sleep_until(until).await;
        }
        if matches!(fate, Fate::Refused | Fate::Swallowed(_)) {
            return Err(Problem::new("the server is away"));
        }
        let sender = if request.headers().contains_key(header::AUTHORIZATION) { &self.bearer } else { &self.own };
        let (mut parts, body) = request.into_parts();
        // They are about the connection to us.
        for name in [header::HOST, header::CONNECTION, header::TRANSFER_ENCODING, header::CONTENT_LENGTH] {
            parts.headers.remove(name);
        }
        let agent = parts.headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
        let agent = format!("{agent} {}{}", audit::MANAGER, self.manager);
        parts.headers.insert(header::USER_AGENT, agent.parse().map_err(http::Error::from)?);
        parts.version = http::Version::default();
        parts.uri = parts.uri.path_and_query().map_or("/", |path| path.as_str()).parse().map_err(http::Error::from)?;
        let body = body.collect().await.map_err(told)?.to_bytes();
        let answer = match sender.clone().oneshot(Request::from_parts(parts, Body::from(body.to_vec()))).await {
            Ok(answer) => answer,
            Err(error) => return Err(told(error)),
        };
        let is_success = answer.status().is_success();
        if renews && is_success {
            *self.leads.lock() = Some(Instant::now());
        }
        let (mut parts, body) = answer.into_parts();
        let body = body.map_err(told).boxed_unsync();
        for name in [header::CONNECTION, header::TRANSFER_ENCODING] {
            parts.headers.remove(name);
        }
        match fate {
            Fate::ReplyLost if is_success => Err(Problem::new("the answer is lost")),
            Fate::Falsified(code) if is_success => falsified(code),
            _ if verb == Verb::Watch && is_success => {
                Ok(Response::from_parts(parts, watched(body, Arc::clone(&self.weather), about)))
            }
            _ => Ok(Response::from_parts(parts, body)),
        }
    }
}

/// What the open windows make of a request. Chance decides which of several is meant.
fn fate<'a>(
    open: impl Iterator<Item = &'a Window>,
    about: &About,
    faults: &Faults,
    mut is_meant: impl FnMut(u32) -> bool,
) -> Fate {
    let writes = about.verb.writes();
    for window in open {
        let fate = match window.fault {
            Fault::ServerAway => Fate::Refused,
            Fault::ServerSilent => Fate::Swallowed(faults.instant(window.to)),
            Fault::RepliesLost(one_in) if writes && is_meant(one_in) => Fate::ReplyLost,
            Fault::DoneThen(code, one_in) if writes && is_meant(one_in) => Fate::Falsified(code),
            _ => continue,
        };
        faults.acted(window.fault);
        return fate;
    }
    Fate::Passes
}

/// What the open windows make of a piece of a watch that arrives now.
fn piece<'a>(open: impl Iterator<Item = &'a Window>, faults: &Faults, now: Instant) -> Piece {
    let mut due = now;
    for window in open {
        let end = faults.instant(window.to);
        due = match window.fault {
            Fault::WatchCut | Fault::ServerAway => {
                faults.acted(window.fault);
                return Piece::Cut;
            }
            Fault::WatchLate(by) => due.max((now + Duration::from_millis(by)).min(end)),
            Fault::WatchStill | Fault::ServerSilent => due.max(end),
            _ => continue,
        };
        faults.acted(window.fault);
    }
    Piece::Due(due)
}

/// Returns an error response of a server that made the write.
fn falsified(code: u16) -> Result<Answer, Problem> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code,
        "reason": match code { 503 => "ServiceUnavailable", 504 => "Timeout", _ => "InternalError" },
        "message": "a false answer: it was done",
    });
    let body = Full::new(Bytes::from(status.to_string())).map_err(|never| match never {}).boxed_unsync();
    let answer = Response::builder().status(StatusCode::from_u16(code).map_err(http::Error::from)?);
    Ok(answer.header(header::CONTENT_TYPE, "application/json").body(body)?)
}

/// A proxied watch: one task reads it and schedules each piece.
fn watched(mut body: UnsyncBoxBody<Bytes, Problem>, weather: Weather, about: About) -> UnsyncBoxBody<Bytes, Problem> {
    type Held = (Instant, Result<Bytes, Problem>);
    let (send, receive) = mpsc::unbounded_channel::<Held>();
    tokio::spawn(async move {
        let mut latest = Instant::now();
        loop {
            let next = tokio::select! {
                biased;
                () = send.closed() => return,
                next = tokio::time::timeout(LOOK_EVERY, body.frame()) => next,
            };
            let faults = weather.lock().clone();
            let data = match next {
                // Nothing happened: it may be cut all the same.
                Err(_) => Bytes::new(),
                Ok(None) => return,
                Ok(Some(Err(error))) => {
                    let _ = send.send((latest, Err(error)));
                    return;
                }
                Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
            };
            let cuts = |window: &&Window| matches!(window.fault, Fault::WatchCut | Fault::ServerAway);
            let is_quiet = data.is_empty();
            match piece(faults.open(&about).filter(|window| !is_quiet || cuts(window)), &faults, Instant::now()) {
                Piece::Cut => {
                    let _ = send.send((latest, Ok(data.slice(..data.len() / 2))));
                    let _ = send.send((latest, Err(Problem::new("cut in the middle"))));
                    return;
                }
                Piece::Due(due) => latest = latest.max(due),
            }
            if !is_quiet && send.send((latest, Ok(data))).is_err() {
                return;
            }
        }
    });
    let pieces = stream::unfold(receive, |mut receive| async move {
        let (due, piece) = receive.recv().await?;
        tokio::time::sleep_until(due).await;
        Some((piece.map(Frame::data), receive))
    });
    StreamBody::new(pieces).boxed_unsync()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Target;

    fn asks(verb: Verb, resource: &str) -> About {
        About { manager: Some(0), controller: None, verb, resource: resource.to_owned() }
    }

    fn faults(fault: Fault, on: Target) -> Faults {
        Faults::new(vec![Window { from: 0, to: 60_000, on, fault }])
    }

    #[tokio::test]
    async fn a_request_suffers_what_the_window_that_covers_it_says() {
        let pods = Target { resource: Some("pods".to_owned()), ..Target::default() };
        let far = |faults: &Faults| faults.instant(60_000);
        for (fault, on, verb, resource, expected) in [
            (Fault::DoneThen(503, 1), pods.clone(), Verb::Create, "pods", Some(Fate::Falsified(503))),
            (Fault::DoneThen(503, 1), pods.clone(), Verb::Create, "secrets", Some(Fate::Passes)),
            (Fault::DoneThen(503, 1), pods.clone(), Verb::List, "pods", Some(Fate::Passes)),
            (Fault::RepliesLost(1), Target::default(), Verb::Delete, "pods", Some(Fate::ReplyLost)),
            (Fault::ServerAway, Target::default(), Verb::Get, "", Some(Fate::Refused)),
            (Fault::ServerSilent, Target::default(), Verb::Watch, "pods", None),
            (Fault::WatchStill, pods, Verb::Watch, "pods", Some(Fate::Passes)),
        ] {
            let faults = faults(fault, on);
            let about = asks(verb, resource);
            let found = fate(faults.open(&about), &about, &faults, |_| true);
            assert_eq!(found, expected.unwrap_or(Fate::Swallowed(far(&faults))), "{fault:?} {verb:?} {resource}");
        }
    }

    #[tokio::test]
    async fn a_piece_of_a_watch_is_late_stands_still_or_is_cut() {
        let now = Instant::now();
        let about = asks(Verb::Watch, "pods");
        let late = faults(Fault::WatchLate(2_000), Target::default());
        assert_eq!(piece(late.open(&about), &late, now), Piece::Due(now + Duration::from_secs(2)));
        let still = faults(Fault::WatchStill, Target::default());
        assert_eq!(piece(still.open(&about), &still, now), Piece::Due(still.instant(60_000)));
        let cut = faults(Fault::WatchCut, Target::default());
        assert_eq!(piece(cut.open(&about), &cut, now), Piece::Cut);
        let other = faults(Fault::DoneThen(500, 1), Target::default());
        assert_eq!(piece(other.open(&about), &other, now), Piece::Due(now));
    }
}

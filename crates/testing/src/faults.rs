//! What goes wrong between the controllers and the server, on purpose.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode, header};
use http_body::Frame;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::json;
use steersman_apiserver::ApiServer;
use steersman_apiserver::http::Body as Answer;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tower::{BoxError, Service};

use crate::journal::{About, Journal, Verb};

/// The faults of a cluster. Rules are looked at in the order in which they were made; the first that applies, counts.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    rules: Arc<Mutex<Vec<Armed>>>,
    /// Cancelled while the server is away; another one when it is back.
    outage: Arc<Mutex<CancellationToken>>,
}

/// A fault in the making: which requests, then what happens to them.
#[must_use = "say what is to happen"]
#[derive(Debug)]
pub struct Rule {
    faults: Faults,
    verb: Verb,
    resource: String,
    from: u64,
    to: u64,
}

/// What happens to a request.
#[derive(Clone, Debug)]
pub enum Fault {
    /// The server refuses it with this code, and does nothing.
    Refuse(StatusCode),
    /// The server asks to come back after this many seconds.
    Throttle(u64),
    /// It does not reach the server, and no answer comes back.
    LoseRequest,
    /// The server does what it asks for, and the answer is lost.
    LoseReply,
    /// It reaches the server after this time.
    Delay(Duration),
    /// For a watch: its events arrive after this time each; the store lags.
    Lag(Duration),
    /// For a watch: it breaks after this many chunks.
    Cut(usize),
}

#[derive(Debug)]
struct Armed {
    verb: Verb,
    resource: String,
    seen: u64,
    from: u64,
    to: u64,
    fault: Fault,
}

/// The server as the controllers reach it: with faults, and a journal of their writes.
#[derive(Clone)]
pub(crate) struct Line {
    pub(crate) server: ApiServer,
    pub(crate) faults: Faults,
    pub(crate) journal: Arc<Journal>,
}

/// The body of an answer on its way through a faulty line.
pub(crate) struct Faulty {
    inner: Answer,
    cut_after: Option<usize>,
    lag: Option<Duration>,
    waiting: Option<(Pin<Box<tokio::time::Sleep>>, Frame<Bytes>)>,
    outage: Pin<Box<WaitForCancellationFutureOwned>>,
}

// === impl Faults ===

impl Faults {
    /// Begins a rule about requests of a verb to a resource (a subresource behind a slash): all of them, unless told
    /// otherwise.
    pub fn on(&self, verb: Verb, resource: &str) -> Rule {
        Rule { faults: self.clone(), verb, resource: resource.to_owned(), from: 1, to: u64::MAX }
    }

    /// Everything works again.
    pub fn heal(&self) {
        self.rules.lock().clear();
    }

    /// The server is away: what is open breaks, and nothing reaches it, until it [is back](Self::server_is_back).
    pub fn server_goes_away(&self) {
        self.outage.lock().cancel();
    }

    /// The server can be reached again.
    pub fn server_is_back(&self) {
        *self.outage.lock() = CancellationToken::new();
    }

    fn of(&self, about: &About) -> Option<Fault> {
        let mut rules = self.rules.lock();
        let mut fault = None;
        for rule in rules.iter_mut().filter(|rule| rule.verb == about.verb && rule.resource == about.resource) {
            rule.seen += 1;
            if fault.is_none() && (rule.from..=rule.to).contains(&rule.seen) {
                fault = Some(rule.fault.clone());
            }
        }
        fault
    }
}

// === impl Rule ===

impl Rule {
    /// Only the n-th such request from now on; the first is 1.
    pub fn nth(self, n: u64) -> Self {
        Self { from: n, to: n, ..self }
    }

    /// Only the next so many.
    pub fn next(self, count: u64) -> Self {
        Self { to: count, ..self }
    }

    /// This happens to them.
    pub fn happens(self, fault: Fault) {
        let Self { faults, verb, resource, from, to } = self;
        faults.rules.lock().push(Armed { verb, resource, seen: 0, from, to, fault });
    }

    /// The server refuses them.
    pub fn refuse(self, code: StatusCode) {
        self.happens(Fault::Refuse(code));
    }

    /// The server does what they ask for, and the answer is lost.
    pub fn lose_reply(self) {
        self.happens(Fault::LoseReply);
    }

    /// They reach the server after this time.
    pub fn delay(self, time: Duration) {
        self.happens(Fault::Delay(time));
    }
}

// === impl Line ===

impl Service<Request<Body>> for Line {
    type Response = Response<Faulty>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Faulty>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let about = About::request(request.method(), request.uri());
        let fault = about.as_ref().and_then(|about| self.faults.of(about));
        let number = about.as_ref().and_then(|about| self.journal.note(about, request.uri()));
        let journal = Arc::clone(&self.journal);
        let mut server = self.server.clone();
        let outage = self.faults.outage.lock().clone();
        let answered = async move {
            if outage.is_cancelled() {
                return Err("the server is away, on purpose".into());
            }
            let outage = Box::pin(outage.cancelled_owned());
            match fault {
                Some(Fault::Refuse(code)) => return Ok(refusal(code, None)),
                Some(Fault::Throttle(seconds)) => return Ok(refusal(StatusCode::TOO_MANY_REQUESTS, Some(seconds))),
                Some(Fault::LoseRequest) => return Err("the request was lost, on purpose".into()),
                Some(Fault::Delay(time)) => tokio::time::sleep(time).await,
                _ => {}
            }
            let answer = server.call(request).await?;
            if matches!(fault, Some(Fault::LoseReply)) {
                return Err("the reply was lost, on purpose".into());
            }
            Ok(answer.map(|inner| Faulty {
                inner,
                cut_after: if let Some(Fault::Cut(chunks)) = fault { Some(chunks) } else { None },
                lag: if let Some(Fault::Lag(time)) = fault { Some(time) } else { None },
                waiting: None,
                outage,
            }))
        };
        Box::pin(async move {
            let answer = answered.await;
            if let (Some(number), Ok(answer)) = (number, &answer) {
                journal.answered(number, answer.status());
            }
            answer
        })
    }
}

fn refusal(code: StatusCode, retry_after: Option<u64>) -> Response<Faulty> {
    let reason = match code {
        StatusCode::CONFLICT => "Conflict",
        StatusCode::FORBIDDEN => "Forbidden",
        StatusCode::NOT_FOUND => "NotFound",
        StatusCode::GONE => "Expired",
        StatusCode::TOO_MANY_REQUESTS => "TooManyRequests",
        StatusCode::SERVICE_UNAVAILABLE => "ServiceUnavailable",
        StatusCode::GATEWAY_TIMEOUT => "Timeout",
        _ => "InternalError",
    };
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "code": code.as_u16(), "reason": reason, "message": format!("refused with {code}, on purpose"),
    });
    let inner = Answer::whole(status.to_string());
    let outage = Box::pin(CancellationToken::new().cancelled_owned());
    let mut response = Response::new(Faulty { inner, cut_after: None, lag: None, waiting: None, outage });
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    if let Some(seconds) = retry_after {
        headers.insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

// === impl Faulty ===

impl http_body::Body for Faulty {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.outage.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(Err("the server went away, on purpose".into())));
        }
        if let Some((sleep, _)) = &mut self.waiting {
            std::task::ready!(sleep.as_mut().poll(cx));
            return Poll::Ready(self.waiting.take().map(|(_, frame)| Ok(frame)));
        }
        if self.cut_after == Some(0) {
            return Poll::Ready(Some(Err("the watch was cut, on purpose".into())));
        }
        let frame = std::task::ready!(Pin::new(&mut self.inner).poll_frame(cx));
        self.cut_after = self.cut_after.map(|left| left - 1);
        match (frame, self.lag) {
            (Some(Ok(frame)), Some(lag)) => {
                self.waiting = Some((Box::pin(tokio::time::sleep(lag)), frame));
                self.poll_frame(cx)
            }
            (frame, _) => Poll::Ready(frame.map(|frame| frame.map_err(|never: Infallible| match never {}))),
        }
    }
}

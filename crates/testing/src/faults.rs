//! Faults between the controllers and the server.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::ops::ControlFlow;
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
use steersman_apiserver::Body as Answer;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tower::{BoxError, Service};

use crate::journal::{About, Journal, Verb};

/// The faults of a cluster. Rules are checked in the order in which they were made; the first that applies counts.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    rules: Arc<Mutex<Vec<Armed>>>,
    /// Cancelled while the server is unreachable; replaced when it is back.
    outage: Arc<Mutex<CancellationToken>>,
    /// The outage of the network.
    hole: Arc<Mutex<Hole>>,
}

/// An outage of the network without errors: `begun` is cancelled when it begins, `over` when it ends.
#[derive(Clone, Debug, Default)]
struct Hole {
    begun: CancellationToken,
    over: CancellationToken,
}

/// A rule under construction: which requests, then their fault.
#[must_use = "say what is to happen"]
#[derive(Debug)]
pub struct Rule {
    faults: Faults,
    verb: Verb,
    resource: String,
    from: u64,
    to: u64,
}

/// The fault of a request.
#[derive(Clone, Debug)]
pub enum Fault {
    /// The server refuses it with this code, and does nothing.
    Refuse(StatusCode),
    /// The server asks to retry after this many seconds.
    Throttle(u64),
    /// The request is lost, and no answer comes.
    LoseRequest,
    /// The request is done, and the answer is lost.
    LoseReply,
    /// The request is done, and a proxy answers with this code instead, as a load balancer does whose server died, or
    /// an API server that timed out waiting for its store.
    DoThenRefuse(StatusCode),
    /// A proxy answers with this code at once, and the request is done after this time: it was still in flight.
    RefuseThenDo(StatusCode, Duration),
    /// The request is done, and [the server goes away](Faults::server_goes_away) before it answers.
    DoThenGoAway,
    /// The request is done, and [the network goes dark](Faults::network_goes_dark) before the answer arrives.
    DoThenGoDark,
    /// The request is done, and the answer arrives after this time.
    DoThenDelay(Duration),
    /// The request reaches the server after this time.
    Delay(Duration),
    /// For a watch: events arrive this much later; the store lags.
    Lag(Duration),
    /// For a watch: it stays open, and is silent after this many chunks.
    Stall(usize),
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

/// A request on its way, and what may happen to it.
struct Trip {
    fault: Option<Fault>,
    about: Option<About>,
    server: ApiServer,
    outage: CancellationToken,
    hole: Hole,
    faults: Faults,
    journal: Arc<Journal>,
}

/// The body of a response with faults.
pub(crate) struct Faulty {
    inner: Answer,
    cut_after: Option<usize>,
    stall_after: Option<usize>,
    lag: Option<Lag>,
    outage: Pin<Box<WaitForCancellationFutureOwned>>,
    hole: Swallowed,
}

/// Chunks that are delayed, each by the same time.
struct Lag {
    time: Duration,
    under_way: VecDeque<(Instant, Frame<Bytes>)>,
    next: Pin<Box<Sleep>>,
    /// Nothing more comes behind the delayed chunks.
    ended: bool,
}

/// Whether an outage of the network has begun, and whether it is over.
struct Swallowed {
    begun: Pin<Box<WaitForCancellationFutureOwned>>,
    over: Pin<Box<WaitForCancellationFutureOwned>>,
}

/// The maximum number of delayed chunks; the server keeps the rest.
const UNDER_WAY_MAX: usize = 10_000;

// === impl Faults ===

impl Faults {
    /// Starts a rule about requests of a verb to a resource (a subresource behind a slash): all of them by default.
    pub fn on(&self, verb: Verb, resource: &str) -> Rule {
        Rule { faults: self.clone(), verb, resource: resource.to_owned(), from: 1, to: u64::MAX }
    }

    /// Removes all rules.
    pub fn heal(&self) {
        self.rules.lock().clear();
    }

    /// Makes the server unreachable: open connections break, and nothing reaches it, until it [is
    /// back](Self::server_is_back).
    pub fn server_goes_away(&self) {
        self.outage.lock().cancel();
    }

    /// Makes the server reachable again.
    pub fn server_is_back(&self) {
        *self.outage.lock() = CancellationToken::new();
    }

    /// Makes the network lose everything silently: requests have no answer, and open connections are silent.
    pub fn network_goes_dark(&self) {
        self.hole.lock().begun.cancel();
    }

    /// Ends the outage of the network. Lost data is not delivered: its connections break.
    pub fn network_is_back(&self) {
        std::mem::take(&mut *self.hole.lock()).over.cancel();
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
    /// Limits the rule to the n-th request from now on; the first is 1.
    pub fn nth(self, n: u64) -> Self {
        Self { from: n, to: n, ..self }
    }

    /// Limits the rule to the next requests.
    pub fn next(self, count: u64) -> Self {
        Self { to: count, ..self }
    }

    /// Adds the rule with this fault.
    pub fn happens(self, fault: Fault) {
        let Self { faults, verb, resource, from, to } = self;
        faults.rules.lock().push(Armed { verb, resource, seen: 0, from, to, fault });
    }

    /// Adds the rule: the server refuses the requests.
    pub fn refuse(self, code: StatusCode) {
        self.happens(Fault::Refuse(code));
    }

    /// Adds the rule: the requests are done, and the answers are lost.
    pub fn lose_reply(self) {
        self.happens(Fault::LoseReply);
    }

    /// Adds the rule: the requests reach the server after this time.
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
        let trip = Trip {
            fault,
            about,
            server: self.server.clone(),
            outage: self.faults.outage.lock().clone(),
            hole: self.faults.hole.lock().clone(),
            faults: self.faults.clone(),
            journal: Arc::clone(&self.journal),
        };
        Box::pin(async move {
            let answer = trip.make(request).await;
            if let (Some(number), Ok(answer)) = (number, &answer) {
                journal.answered(number, answer.status());
            }
            answer
        })
    }
}

// === impl Trip ===

impl Trip {
    /// Carries a request to the server, and its answer back.
    async fn make(mut self, request: Request<Body>) -> Result<Response<Faulty>, BoxError> {
        if self.outage.is_cancelled() {
            return Err("the server is away, on purpose".into());
        }
        self.swallowed("the network swallowed the request, on purpose").await?;
        let request = match self.there(request).await? {
            ControlFlow::Continue(request) => request,
            ControlFlow::Break(answer) => return Ok(answer),
        };
        let answer = self.server.call(request).await?;
        if answer.status().is_success() {
            self.done();
        }
        self.back(answer).await
    }

    /// Carries a request on to the server, or answers it on the way.
    async fn there(
        &mut self,
        request: Request<Body>,
    ) -> Result<ControlFlow<Response<Faulty>, Request<Body>>, BoxError> {
        match self.fault {
            Some(Fault::Refuse(code)) => return Ok(ControlFlow::Break(refusal(code, None))),
            Some(Fault::Throttle(seconds)) => {
                return Ok(ControlFlow::Break(refusal(StatusCode::TOO_MANY_REQUESTS, Some(seconds))));
            }
            Some(Fault::LoseRequest) => return Err("the request was lost, on purpose".into()),
            Some(Fault::RefuseThenDo(code, time)) => {
                let mut server = self.server.clone();
                let journal = Arc::clone(&self.journal);
                let about = self.about.take();
                tokio::spawn(async move {
                    tokio::time::sleep(time).await;
                    let is_done = server.call(request).await.is_ok_and(|answer| answer.status().is_success());
                    if let Some(about) = about.filter(|_| is_done) {
                        journal.done(about);
                    }
                });
                return Ok(ControlFlow::Break(refusal(code, None)));
            }
            Some(Fault::Delay(time)) => tokio::time::sleep(time).await,
            _ => {}
        }
        Ok(ControlFlow::Continue(request))
    }

    /// Carries an answer back.
    async fn back(self, answer: Response<Answer>) -> Result<Response<Faulty>, BoxError> {
        match self.fault {
            Some(Fault::DoThenGoAway) => {
                self.faults.server_goes_away();
                return Err("the server went away before it answered, on purpose".into());
            }
            Some(Fault::DoThenGoDark) => self.faults.network_goes_dark(),
            Some(Fault::DoThenDelay(time)) => tokio::time::sleep(time).await,
            _ => {}
        }
        self.swallowed("the network swallowed the reply, on purpose").await?;
        match self.fault {
            Some(Fault::LoseReply) => return Err("the reply was lost, on purpose".into()),
            Some(Fault::DoThenRefuse(code)) => return Ok(refusal(code, None)),
            _ => {}
        }
        let hole = Swallowed {
            begun: Box::pin(self.hole.begun.cancelled_owned()),
            over: Box::pin(self.hole.over.cancelled_owned()),
        };
        Ok(answer.map(|inner| Faulty {
            inner,
            cut_after: if let Some(Fault::Cut(chunks)) = self.fault { Some(chunks) } else { None },
            stall_after: if let Some(Fault::Stall(chunks)) = self.fault { Some(chunks) } else { None },
            lag: if let Some(Fault::Lag(time)) = self.fault { Some(Lag::of(time)) } else { None },
            outage: Box::pin(self.outage.cancelled_owned()),
            hole,
        }))
    }

    /// If the network is dark, waits until it is not, and fails: what was under way is lost.
    async fn swallowed(&self, why: &'static str) -> Result<(), BoxError> {
        if !self.hole.begun.is_cancelled() {
            return Ok(());
        }
        self.hole.over.cancelled().await;
        Err(why.into())
    }

    fn done(&mut self) {
        if let Some(about) = self.about.take() {
            self.journal.done(about);
        }
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
    let never = || Box::pin(CancellationToken::new().cancelled_owned());
    let hole = Swallowed { begun: never(), over: never() };
    let outage = never();
    let mut response = Response::new(Faulty { inner, cut_after: None, stall_after: None, lag: None, outage, hole });
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
        if self.hole.begun.as_mut().poll(cx).is_ready() {
            std::task::ready!(self.hole.over.as_mut().poll(cx));
            return Poll::Ready(Some(Err("the network swallowed what was open, on purpose".into())));
        }
        let this = &mut *self;
        match &this.lag {
            None => this.inner_frame(cx),
            Some(_) => this.late_frame(cx),
        }
    }
}

impl Faulty {
    /// Returns the server's next frame, as far as it is let through.
    fn inner_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.cut_after == Some(0) {
            return Poll::Ready(Some(Err("the watch was cut, on purpose".into())));
        }
        if self.stall_after == Some(0) {
            return Poll::Pending;
        }
        let frame = std::task::ready!(http_body::Body::poll_frame(Pin::new(&mut self.inner), cx));
        for left in [&mut self.cut_after, &mut self.stall_after] {
            *left = left.map(|left| left - 1);
        }
        Poll::Ready(frame.map(|frame| frame.map_err(|never: Infallible| match never {})))
    }

    /// Returns a delayed frame that is due.
    fn late_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        while let Some(lag) = self.lag.as_ref().filter(|lag| !lag.ended && lag.under_way.len() < UNDER_WAY_MAX) {
            let due = Instant::now() + lag.time;
            let Poll::Ready(frame) = self.inner_frame(cx) else { break };
            let Some(lag) = &mut self.lag else { break };
            match frame {
                Some(frame) => lag.under_way.push_back((due, frame?)),
                None => lag.ended = true,
            }
        }
        let Some(lag) = &mut self.lag else { return Poll::Ready(None) };
        let Some((due, _)) = lag.under_way.front() else {
            return if lag.ended { Poll::Ready(None) } else { Poll::Pending };
        };
        if lag.next.deadline() != *due {
            lag.next.as_mut().reset(*due);
        }
        std::task::ready!(lag.next.as_mut().poll(cx));
        Poll::Ready(lag.under_way.pop_front().map(|(_, frame)| Ok(frame)))
    }
}

// === impl Lag ===

impl Lag {
    fn of(time: Duration) -> Self {
        let next = Box::pin(tokio::time::sleep(time));
        Self { time, under_way: VecDeque::new(), next, ended: false }
    }
}

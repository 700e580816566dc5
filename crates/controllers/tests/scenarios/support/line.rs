//! The way from a manager to its server, for managers that a test starts itself: it notes every request, and has troubles of
//! its own.
//!
//! It works in front of any server. What it cannot do, such as to refuse, `Faults` of the embedded server can.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tower::BoxError;

/// The way to a server. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Line(Arc<Shared>);

/// What is wrong with it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    None,
    /// Events of these resources arrive late by this time.
    Lags(&'static [&'static str], Duration),
    /// The server does that many writes, and nobody hears the answer to the last one, or of anything after it.
    DiesAfter(u64),
    /// What the server says with the first text arrives with the second: objects that no validation would let through.
    Forges(&'static str, &'static str),
}

struct Shared {
    server: Client,
    trouble: Trouble,
    writes: AtomicU64,
    dead: CancellationToken,
    requests: Mutex<Vec<(Method, String)>>,
}

type Answer = UnsyncBoxBody<Bytes, kube::Error>;

// === impl Line ===

impl Line {
    pub(crate) fn to(server: Client, trouble: Trouble) -> Self {
        let writes = AtomicU64::new(0);
        let requests = Mutex::default();
        Self(Arc::new(Shared { server, trouble, writes, dead: CancellationToken::new(), requests }))
    }

    pub(crate) fn client(&self) -> Client {
        let line = self.clone();
        Client::new(tower::service_fn(move |request| line.clone().carry(request)), "default")
    }

    /// How many requests there were so far of this method, with this in their path.
    pub(crate) fn count(&self, method: &Method, part: &str) -> usize {
        let requests = self.0.requests.lock();
        requests.iter().filter(|(held, path)| held == method && path.contains(part)).count()
    }

    /// All requests so far, in order.
    pub(crate) fn requests(&self) -> Vec<(Method, String)> {
        self.0.requests.lock().clone()
    }

    /// Cancelled when it dies.
    pub(crate) fn dead(&self) -> &CancellationToken {
        &self.0.dead
    }

    async fn carry(self, request: Request<Body>) -> Result<Response<Answer>, BoxError> {
        let path = request.uri().path().to_owned();
        // Telling is not doing: events and leases do not count as writes.
        let is_write = request.method() != Method::GET && !path.contains("/events") && !path.contains("/leases");
        let watches = request.uri().query().is_some_and(|query| query.contains("watch="));
        self.0.requests.lock().push((request.method().clone(), path.clone()));
        let number = if is_write { self.0.writes.fetch_add(1, Ordering::SeqCst) + 1 } else { 0 };
        let trouble = self.0.trouble;
        let dead = &self.0.dead;
        if dead.is_cancelled() || matches!(trouble, Trouble::DiesAfter(last) if number > last) {
            return std::future::pending().await;
        }
        let answer = self.0.server.send(request).await?;
        if is_write && trouble == Trouble::DiesAfter(number) {
            dead.cancel();
            return std::future::pending().await;
        }
        Ok(answer.map(|body| match trouble {
            Trouble::Lags(resources, lag) if watches && resources.iter().any(|resource| path.ends_with(resource)) => {
                late(body, lag)
            }
            Trouble::Forges(text, other) => forged(body, text, other),
            _ => body.boxed_unsync(),
        }))
    }
}

/// A body whose frames come late, each by this time after it was sent.
fn late(body: Body, lag: Duration) -> Answer {
    let (send, receive) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut body: Pin<Box<Body>> = Box::pin(body);
        while let Some(frame) = body.frame().await {
            if send.send((tokio::time::Instant::now() + lag, frame)).is_err() {
                return;
            }
        }
    });
    let frames = futures::stream::unfold(receive, |mut receive| async move {
        let (due, frame) = receive.recv().await?;
        tokio::time::sleep_until(due).await;
        Some((frame, receive))
    });
    http_body_util::StreamBody::new(frames).boxed_unsync()
}

/// A body in which a text is another. The embedded server sends objects in one piece.
fn forged(body: Body, text: &'static str, other: &'static str) -> Answer {
    let replace = move |bytes: Bytes| match std::str::from_utf8(&bytes) {
        Ok(whole) if whole.contains(text) => Bytes::from(whole.replace(text, other)),
        _ => bytes,
    };
    body.map_frame(move |frame| frame.map_data(replace)).boxed_unsync()
}

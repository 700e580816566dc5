//! Client-side limits on requests per second. Off by default (`--kube-api-qps`).
//!
//! A token bucket like client-go's `flowcontrol`: requests wait for a token, in order. Every request takes one,
//! including a watch. The server's own fairness works better in most clusters, which is why this is off by default.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::Request;
use parking_lot::Mutex;
use steersman_base::Bucket;
use tokio::time::Instant;
use tower::Service;

use super::metrics::RestMetrics;
use super::transport::Transport;

/// The limits of a client's requests.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// The requests per second, over time. Zero or less means unlimited.
    pub qps: f32,
    /// The requests at once, after a pause; at least one.
    pub burst: u32,
}

impl Limits {
    /// Creates limits of `qps` requests per second over time, and `burst` at once.
    #[must_use]
    pub fn new(qps: f32, burst: u32) -> Self {
        Self { qps, burst }
    }
}

/// Delays requests according to the limits of a connection. Without limits, it does nothing.
#[derive(Clone, Debug, Default)]
pub struct Throttle {
    pub(super) limits: Option<Limits>,
    /// The metrics of waits, and their host label.
    pub(super) metrics: Option<(RestMetrics, String)>,
}

struct Shared {
    start: Instant,
    bucket: Mutex<Bucket>,
    metrics: Option<(RestMetrics, String)>,
}

/// A service whose requests wait for tokens.
#[derive(Clone)]
pub(super) struct Limited<S> {
    inner: S,
    shared: Arc<Shared>,
}

// === impl Throttle ===

impl Throttle {
    /// Wraps a transport with limits of its own: other users of the transport do not wait behind these requests.
    #[must_use]
    pub fn around(&self, transport: &Transport) -> Transport {
        match self.shared() {
            Some(shared) => Transport::new(Limited { inner: transport.clone(), shared }),
            None => transport.clone(),
        }
    }

    fn shared(&self) -> Option<Arc<Shared>> {
        let Limits { qps, burst } = self.limits.filter(|limits| limits.qps > 0.0)?;
        let every = Duration::try_from_secs_f64(1.0 / f64::from(qps)).unwrap_or(Duration::MAX);
        let bucket = Mutex::new(Bucket::full(burst.max(1), every, Duration::ZERO));
        Some(Arc::new(Shared { start: Instant::now(), bucket, metrics: self.metrics.clone() }))
    }
}

// === impl Shared ===

impl Shared {
    /// Returns how long this request has to wait.
    fn reserve<B>(&self, request: &Request<B>) -> Duration {
        let wait = self.bucket.lock().reserve(self.start.elapsed());
        if let Some((metrics, host)) = &self.metrics {
            metrics.observe_throttled(request.method(), host, wait);
        }
        wait
    }
}

// === impl Limited ===

impl<S, B> Service<Request<B>> for Limited<S>
where
    S: Service<Request<B>> + Clone + Send + 'static,
    S::Future: Send,
    B: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The clone that was polled for readiness is the one to call.
        let ready = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, ready);
        let wait = self.shared.reserve(&request);
        if wait.is_zero() {
            return Box::pin(inner.call(request));
        }
        Box::pin(async move {
            tokio::time::sleep(wait).await;
            inner.call(request).await
        })
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use kube::client::Body;
    use tower::BoxError;

    use super::*;

    fn answering() -> Transport {
        Transport::new(tower::service_fn(|_: Request<Body>| async {
            let body = http_body_util::Empty::new().map_err(BoxError::from).boxed_unsync();
            Ok::<_, BoxError>(http::Response::new(body))
        }))
    }

    async fn seconds_until_answered(limits: Option<Limits>, count: usize) -> Vec<u64> {
        let transport = Throttle { limits, metrics: None }.around(&answering());
        let start = Instant::now();
        let calls = (0..count).map(|_| {
            let call = transport.clone().call(Request::new(Body::empty()));
            async move { call.await.map(|_| start.elapsed().as_secs()) }
        });
        let answered = futures::future::join_all(calls.collect::<Vec<_>>()).await;
        answered.into_iter().map(Result::unwrap).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn requests_beyond_the_burst_wait_their_turn() {
        let limits = Limits { qps: 0.5, burst: 3 };
        assert_eq!(seconds_until_answered(Some(limits), 6).await, [0, 0, 0, 2, 4, 6]);
    }

    #[tokio::test(start_paused = true)]
    async fn without_limits_no_request_waits() {
        assert_eq!(seconds_until_answered(None, 3).await, [0, 0, 0]);
        assert_eq!(seconds_until_answered(Some(Limits { qps: 0.0, burst: 0 }), 3).await, [0, 0, 0]);
        assert_eq!(seconds_until_answered(Some(Limits { qps: -1.0, burst: 1 }), 3).await, [0, 0, 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_wait_is_measured() {
        let registry = prometheus::Registry::new();
        let metrics = RestMetrics::new(&registry).unwrap();
        let limits = Some(Limits { qps: 0.5, burst: 1 });
        let throttle = Throttle { limits, metrics: Some((metrics, "host:6443".to_owned())) };
        let mut transport = throttle.around(&answering());
        for _ in 0..2 {
            transport.call(Request::get("/api").body(Body::empty()).unwrap()).await.unwrap();
        }
        let text = prometheus::TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        let family = "rest_client_rate_limiter_duration_seconds";
        for line in [
            format!(r#"{family}_count{{host="host:6443",verb="GET"}} 2"#),
            format!(r#"{family}_sum{{host="host:6443",verb="GET"}} 2"#),
        ] {
            assert!(text.contains(&line), "{line} is missing in:\n{text}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn users_of_a_shared_transport_do_not_wait_for_each_other() {
        let throttle = Throttle { limits: Some(Limits { qps: 0.1, burst: 1 }), metrics: None };
        let shared = answering();
        let mut busy = throttle.around(&shared);
        let mut idle = throttle.around(&shared);
        let start = Instant::now();
        let waiting: Vec<_> = (0..3).map(|_| busy.call(Request::new(Body::empty()))).collect();
        idle.call(Request::new(Body::empty())).await.unwrap();
        assert_eq!(start.elapsed(), Duration::ZERO, "it has a token of its own");
        futures::future::join_all(waiting).await;
        assert_eq!(start.elapsed().as_secs(), 20);
    }
}

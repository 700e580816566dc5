//! Metrics of requests, under upstream's names: `rest_client_*`.
//!
//! Watches count as requests; their duration and size say nothing about the server, so they are not observed, as in
//! client-go.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use http_body::{Body as _, Frame, SizeHint};
use kube::client::Body;
use parking_lot::Mutex;
use prometheus::{Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry};
use tokio::time::Instant;
use tower::{BoxError, Layer, Service};

/// Counts the requests of clients in one registry. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RestMetrics(Arc<Families>);

#[derive(Debug)]
struct Families {
    requests: IntCounterVec,
    duration: HistogramVec,
    request_size: HistogramVec,
    response_size: HistogramVec,
    throttled: HistogramVec,
}

/// Wraps a service with [`RestMetrics`], if there are any.
#[derive(Clone)]
pub(super) struct Counting(pub(super) Option<RestMetrics>);

/// A service whose requests are counted.
#[derive(Clone)]
pub(super) struct Counted<S> {
    inner: S,
    metrics: Option<RestMetrics>,
    /// The series of the last host: a client has one host.
    host: Arc<Mutex<Option<Arc<Host>>>>,
}

/// A body that records its size when it has been read.
pub(super) struct Measured<B> {
    inner: B,
    bytes: u64,
    sizes: Option<Histogram>,
}

/// The series of one host, kept because a look-up by labels would cost more than counting.
struct Host {
    name: String,
    metrics: RestMetrics,
    verbs: [OnceLock<Series>; VERBS.len()],
}

/// The series of one verb.
struct Series {
    duration: Histogram,
    request_size: Histogram,
    response_size: Histogram,
    by_code: Mutex<Vec<(StatusCode, IntCounter)>>,
}

/// Upstream's buckets, in seconds.
const SECONDS: [f64; 12] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];
/// Upstream's buckets, in bytes.
const BYTES: [f64; 11] =
    [64.0, 256.0, 512.0, 1024.0, 4096.0, 16384.0, 65536.0, 262_144.0, 1_048_576.0, 4_194_304.0, 16_777_216.0];
/// Go's names of the methods; others are not used with Kubernetes.
const VERBS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OTHER"];
/// Upstream's label for a request without an answer.
const NO_ANSWER: &str = "<error>";

// === impl RestMetrics ===

impl RestMetrics {
    /// Registers the metrics.
    ///
    /// # Errors
    /// The registry has these metrics already.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let histogram = |name: &str, help: &str, buckets: &[f64]| {
            HistogramVec::new(HistogramOpts::new(name, help).buckets(buckets.to_vec()), &["verb", "host"])
        };
        let requests = "Number of HTTP requests, partitioned by status code, method, and host.";
        let families = Families {
            requests: IntCounterVec::new(
                Opts::new("rest_client_requests_total", requests),
                &["code", "method", "host"],
            )?,
            duration: histogram(
                "rest_client_request_duration_seconds",
                "Request latency in seconds. Broken down by verb, and host.",
                &SECONDS,
            )?,
            request_size: histogram(
                "rest_client_request_size_bytes",
                "Request size in bytes. Broken down by verb and host.",
                &BYTES,
            )?,
            response_size: histogram(
                "rest_client_response_size_bytes",
                "Response size in bytes. Broken down by verb and host.",
                &BYTES,
            )?,
            throttled: histogram(
                "rest_client_rate_limiter_duration_seconds",
                "Client side rate limiter latency in seconds. Broken down by verb, and host.",
                &SECONDS,
            )?,
        };
        registry.register(Box::new(families.requests.clone()))?;
        for family in [&families.duration, &families.request_size, &families.response_size, &families.throttled] {
            registry.register(Box::new(family.clone()))?;
        }
        Ok(Self(Arc::new(families)))
    }

    /// Records how long a request was delayed by the limits.
    pub(super) fn observe_throttled(&self, method: &http::Method, host: &str, wait: Duration) {
        let labels = [VERBS[verb(method)], host];
        self.0.throttled.with_label_values(&labels).observe(wait.as_secs_f64());
    }
}

// === impl Host ===

impl Host {
    fn new(name: String, metrics: RestMetrics) -> Self {
        Self { name, metrics, verbs: [const { OnceLock::new() }; VERBS.len()] }
    }

    fn series(&self, verb: usize) -> &Series {
        self.verbs[verb].get_or_init(|| {
            let labels = [VERBS[verb], &self.name];
            let families = &self.metrics.0;
            Series {
                duration: families.duration.with_label_values(&labels),
                request_size: families.request_size.with_label_values(&labels),
                response_size: families.response_size.with_label_values(&labels),
                by_code: Mutex::default(),
            }
        })
    }

    /// Counts an answer, or a missing one.
    fn count(&self, verb: usize, answer: Option<StatusCode>) {
        let requests = |code: &str| self.metrics.0.requests.with_label_values(&[code, VERBS[verb], &self.name]);
        let Some(code) = answer else { return requests(NO_ANSWER).inc() };
        let mut known = self.series(verb).by_code.lock();
        if let Some((_, counter)) = known.iter().find(|(known, _)| *known == code) {
            return counter.inc();
        }
        let counter = requests(code.as_str());
        counter.inc();
        known.push((code, counter));
    }
}

/// Returns the index of a method in [`VERBS`].
fn verb(method: &http::Method) -> usize {
    VERBS.iter().position(|verb| *verb == method.as_str()).unwrap_or(VERBS.len() - 1)
}

fn is_watch(uri: &http::Uri) -> bool {
    uri.query().is_some_and(|query| query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1" | "watch")))
}

// === impl Counting ===

impl<S> Layer<S> for Counting {
    type Service = Counted<S>;
    fn layer(&self, inner: S) -> Counted<S> {
        Counted { inner, metrics: self.0.clone(), host: Arc::default() }
    }
}

// === impl Counted ===

impl<S> Counted<S> {
    /// Returns the series of a request's host, if metrics are on.
    fn host_of(&self, request: &Request<Body>) -> Option<Arc<Host>> {
        let metrics = self.metrics.as_ref()?;
        let name = request.uri().authority().map_or("", http::uri::Authority::as_str);
        let mut last = self.host.lock();
        match &*last {
            Some(host) if host.name == name => Some(Arc::clone(host)),
            _ => Some(Arc::clone(last.insert(Arc::new(Host::new(name.to_owned(), metrics.clone()))))),
        }
    }
}

impl<S, B> Service<Request<Body>> for Counted<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: Send + 'static,
{
    type Response = Response<Measured<B>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let host = self.host_of(&request);
        let verb = verb(request.method());
        let is_watch = is_watch(request.uri());
        let sent = request.body().size_hint().lower();
        let start = Instant::now();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await.map_err(Into::into);
            let mut sizes = None;
            if let Some(host) = host {
                host.count(verb, answer.as_ref().ok().map(Response::status));
                if !is_watch {
                    let series = host.series(verb);
                    series.duration.observe(start.elapsed().as_secs_f64());
                    #[allow(clippy::cast_precision_loss, reason = "no body comes near 2^52 bytes")]
                    series.request_size.observe(sent as f64);
                    sizes = Some(series.response_size.clone());
                }
            }
            answer.map(|response| response.map(|inner| Measured { inner, bytes: 0, sizes }))
        })
    }
}

// === impl Measured ===

impl<B> http_body::Body for Measured<B>
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
        if let Some(Ok(frame)) = &frame {
            self.bytes += frame.data_ref().map_or(0, |data| data.remaining() as u64);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// Counts the part that was read of a body that was not read to its end.
impl<B> Drop for Measured<B> {
    fn drop(&mut self) {
        if let Some(sizes) = self.sizes.take() {
            #[allow(clippy::cast_precision_loss, reason = "no body comes near 2^52 bytes")]
            sizes.observe(self.bytes as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt, Full};
    use prometheus::TextEncoder;
    use tower::{ServiceExt, service_fn};

    use super::*;

    /// Sends one request of 5 bytes; the answer is `code` with 3 bytes, or none for 0.
    async fn counted(metrics: &RestMetrics, uri: &str, code: u16) {
        let answer = service_fn(move |_: Request<Body>| async move {
            if code == 0 {
                return Err(BoxError::from("no answer"));
            }
            Response::builder().status(code).body(Full::new(Bytes::from_static(b"abc"))).map_err(BoxError::from)
        });
        let service = Counting(Some(metrics.clone())).layer(answer);
        let request = Request::put(uri).body(Body::from(b"hello".to_vec())).unwrap();
        if let Ok(response) = service.oneshot(request).await {
            response.into_body().collect().await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn requests_are_counted_under_upstreams_names() {
        let registry = Registry::new();
        let metrics = RestMetrics::new(&registry).unwrap();
        counted(&metrics, "https://host:6443/api/v1/pods", 200).await;
        counted(&metrics, "https://host:6443/api/v1/pods", 409).await;
        counted(&metrics, "https://host:6443/api/v1/pods", 0).await;
        counted(&metrics, "https://host:6443/api/v1/pods?watch=true", 200).await;
        let text = TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        for line in [
            r#"rest_client_requests_total{code="200",host="host:6443",method="PUT"} 2"#,
            r#"rest_client_requests_total{code="409",host="host:6443",method="PUT"} 1"#,
            r#"rest_client_requests_total{code="<error>",host="host:6443",method="PUT"} 1"#,
            r#"rest_client_request_duration_seconds_count{host="host:6443",verb="PUT"} 3"#,
            r#"rest_client_request_size_bytes_sum{host="host:6443",verb="PUT"} 15"#,
            r#"rest_client_response_size_bytes_sum{host="host:6443",verb="PUT"} 6"#,
        ] {
            assert!(text.contains(line), "{line} is missing in:\n{text}");
        }
        assert!(RestMetrics::new(&registry).is_err(), "two of them in one registry would count twice");
    }
}

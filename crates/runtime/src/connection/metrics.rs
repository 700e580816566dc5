//! What requests cost, under upstream's names: `rest_client_*`.
//!
//! Watches count as requests; how long they last and how much they bring says nothing about the server, so that is not
//! observed, as in client-go.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body::{Body as _, Frame, SizeHint};
use kube::client::Body;
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, Opts, Registry};
use tokio::time::Instant;
use tower::{BoxError, Layer, Service};

/// Counts requests of the clients it is given to, in one registry. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RestMetrics(Arc<Families>);

#[derive(Debug)]
struct Families {
    requests: IntCounterVec,
    duration: HistogramVec,
    request_size: HistogramVec,
    response_size: HistogramVec,
}

/// Puts [`RestMetrics`] around a service, if there are any.
#[derive(Clone)]
pub(super) struct Counting(pub(super) Option<RestMetrics>);

/// A service whose requests are counted.
#[derive(Clone)]
pub(super) struct Counted<S> {
    inner: S,
    metrics: Option<RestMetrics>,
}

/// A body that tells its size when it has been read.
pub(super) struct Measured<B> {
    inner: B,
    bytes: u64,
    tell: Option<(RestMetrics, Labels)>,
}

/// `verb` and `host`, as the histograms are labelled.
#[derive(Clone)]
struct Labels {
    verb: &'static str,
    host: String,
}

/// Upstream's buckets, in seconds.
const SECONDS: [f64; 12] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];
/// Upstream's buckets, in bytes.
const BYTES: [f64; 11] =
    [64.0, 256.0, 512.0, 1024.0, 4096.0, 16384.0, 65536.0, 262_144.0, 1_048_576.0, 4_194_304.0, 16_777_216.0];
/// What upstream says instead of a code when there is no answer.
const NO_ANSWER: &str = "<error>";

// === impl RestMetrics ===

impl RestMetrics {
    /// Metrics in this registry.
    ///
    /// # Errors
    /// The registry has them already.
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
        };
        registry.register(Box::new(families.requests.clone()))?;
        for family in [&families.duration, &families.request_size, &families.response_size] {
            registry.register(Box::new(family.clone()))?;
        }
        Ok(Self(Arc::new(families)))
    }

    fn count(&self, labels: &Labels, code: &str) {
        self.0.requests.with_label_values(&[code, labels.verb, &labels.host]).inc();
    }

    fn observe(&self, family: impl Fn(&Families) -> &HistogramVec, labels: &Labels, value: f64) {
        family(&self.0).with_label_values(&[labels.verb, &labels.host]).observe(value);
    }
}

/// Go's names of the methods; others are not used with Kubernetes.
fn verb(method: &http::Method) -> &'static str {
    match *method {
        http::Method::GET => "GET",
        http::Method::POST => "POST",
        http::Method::PUT => "PUT",
        http::Method::PATCH => "PATCH",
        http::Method::DELETE => "DELETE",
        http::Method::HEAD => "HEAD",
        _ => "OTHER",
    }
}

fn is_watch(uri: &http::Uri) -> bool {
    uri.query().is_some_and(|query| query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1" | "watch")))
}

// === impl Counting ===

impl<S> Layer<S> for Counting {
    type Service = Counted<S>;
    fn layer(&self, inner: S) -> Counted<S> {
        Counted { inner, metrics: self.0.clone() }
    }
}

// === impl Counted ===

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
        let counted = self.metrics.clone().map(|metrics| {
            let host = request.uri().authority().map_or_else(String::new, ToString::to_string);
            (metrics, Labels { verb: verb(request.method()), host }, is_watch(request.uri()))
        });
        let sent = request.body().size_hint().lower();
        let start = Instant::now();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await.map_err(Into::into);
            let Some((metrics, labels, is_watch)) = counted else {
                return answer.map(|response| response.map(|inner| Measured { inner, bytes: 0, tell: None }));
            };
            if !is_watch {
                metrics.observe(|all| &all.duration, &labels, start.elapsed().as_secs_f64());
                #[allow(clippy::cast_precision_loss, reason = "no body comes near 2^52 bytes")]
                metrics.observe(|all| &all.request_size, &labels, sent as f64);
            }
            match answer {
                Ok(response) => {
                    metrics.count(&labels, response.status().as_str());
                    let tell = (!is_watch).then_some((metrics, labels));
                    Ok(response.map(|inner| Measured { inner, bytes: 0, tell }))
                }
                Err(error) => {
                    metrics.count(&labels, NO_ANSWER);
                    Err(error)
                }
            }
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

/// A body that nobody read to its end still was an answer: what came of it counts.
impl<B> Drop for Measured<B> {
    fn drop(&mut self) {
        if let Some((metrics, labels)) = self.tell.take() {
            #[allow(clippy::cast_precision_loss, reason = "no body comes near 2^52 bytes")]
            metrics.observe(|all| &all.response_size, &labels, self.bytes as f64);
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

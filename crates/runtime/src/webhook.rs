//! Webhooks: validating and mutating admission, and conversion between versions.
//!
//! ```no_run
//! # use serde::{Deserialize, Serialize};
//! # use steersman_runtime::serving::{CertificateSource, ServeOptions, Tls};
//! # use steersman_runtime::webhook::{Admission, Denial, Mutated, Verdict, WebhookServer};
//! # #[derive(Serialize, Deserialize)]
//! # struct Site { replicas: Option<u32> }
//! async fn default_replicas(mut admission: Admission<Site>) -> Result<Mutated<Site>, Denial> {
//!     let mut site = admission.take_object()?;
//!     site.replicas.get_or_insert(1);
//!     Ok(site.into())
//! }
//!
//! async fn few_replicas(admission: Admission<Site>) -> Result<Verdict, Denial> {
//!     match admission.object()?.replicas {
//!         Some(0) => Ok(Verdict::allow().warn("nobody will be served")),
//!         Some(replicas) if replicas > 5 => Err(Denial::invalid("at most 5 replicas")),
//!         _ => Ok(Verdict::allow()),
//!     }
//! }
//!
//! # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
//! # let stop = tokio_util::sync::CancellationToken::new();
//! let files = CertificateSource::Files { certificate: "tls.crt".into(), key: "tls.key".into() };
//! let options = ServeOptions::at("0.0.0.0:9443".parse()?).with_tls(Tls::new(files));
//! WebhookServer::new(options).mutate("/default", default_replicas).validate("/check", few_replicas).run(stop).await?;
//! # Ok(())
//! # }
//! ```
//!
//! 1. A handler gets an object and returns one; the difference is sent as a patch. Fields that its type does not know
//!    stay unchanged.
//! 2. A response has the uid of its request, and is an `admission.k8s.io/v1` or `apiextensions.k8s.io/v1` review.
//! 3. A body that is not a review is answered with 400 and the reason as text. An object that the handler's type cannot
//!    represent is denied with code 400.
//! 4. A handler that panics is answered with 500 and counted: the webhook's `failurePolicy` then decides about the
//!    write, as if the server could not be reached. Other requests are not affected.
//! 5. Conversion preserves the metadata of an object except for its labels and annotations, as API servers require.
//! 6. Handlers need no socket: [`WebhookServer`] is a [`Service`], and tests call it.

mod admission;
mod conversion;
mod metrics;
mod patch;
mod review;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{HeaderValue, Method, StatusCode, header};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::controller::panic_text;
use crate::health::{Health, Probe, Unhealthy};
use crate::manager::{Group, Runnable};
use crate::metrics::Families;
use crate::serving::{Request, Response, ServeError, ServeOptions, Service, Serving, text};

pub use admission::{Admission, Cause, Denial, Mutated, Operation, User, Verdict};
pub use conversion::{Convert, Versions};
pub use metrics::WebhookMetrics;

/// A server of webhooks.
#[must_use = "it serves when it is run"]
pub struct WebhookServer {
    options: ServeOptions,
    hooks: BTreeMap<String, Hook>,
    metrics: Option<WebhookMetrics>,
    serving: Option<Serving>,
    started: Started,
}

/// Whether a webhook server can be reached: a check for `/readyz`. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Started(Arc<Mutex<Option<SocketAddr>>>);

/// The reason for which a webhook server cannot be reached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotStarted {
    /// The server is not running.
    #[error("the webhook server does not run")]
    NotRunning,
    /// The server is running, and does not respond.
    #[error("the webhook server at {address} cannot be reached: {reason}")]
    Unreachable {
        /// The address it listens on.
        address: SocketAddr,
        /// The reason.
        reason: String,
    },
}

/// One webhook.
struct Hook {
    kind: Kind,
    answer: Box<dyn Fn(Request) -> BoxFuture<'static, Response> + Send + Sync>,
}

/// The kind of a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Admission,
    Conversion,
}

/// A review has at most an object and its predecessor of 3 MiB each, and some metadata.
const BODY_BYTES_MAX: usize = 7 * 1024 * 1024;
/// The maximum time of a probe.
const DIAL_PATIENCE: Duration = Duration::from_secs(10);

// === impl WebhookServer ===

impl WebhookServer {
    /// Creates a server without webhooks. API servers connect to it only with TLS.
    pub fn new(mut options: ServeOptions) -> Self {
        options.body_bytes_max = options.body_bytes_max.max(BODY_BYTES_MAX);
        Self { options, hooks: BTreeMap::new(), metrics: None, serving: None, started: Started::default() }
    }

    /// Sets the metrics; by default those of the manager to which the server is added.
    pub fn metrics(mut self, metrics: WebhookMetrics) -> Self {
        self.metrics = Some(metrics);
        self
    }

    /// Adds a validating webhook.
    ///
    /// # Panics
    /// There is a webhook at that path already, or it does not begin with `/`.
    pub fn validate<K, F, A>(self, path: &str, handler: F) -> Self
    where
        K: DeserializeOwned + Send + 'static,
        F: Fn(Admission<K>) -> A + Send + Sync + 'static,
        A: Future<Output = Result<Verdict, Denial>> + Send + 'static,
    {
        let handler = Arc::new(handler);
        self.hook(path, Kind::Admission, move |request| {
            let handler = Arc::clone(&handler);
            async move {
                let question = review::read(&request)?;
                let verdict = match question.typed() {
                    Ok(admission) => handler(admission).await,
                    Err(denial) => Err(denial),
                };
                Ok(review::answer(&question.uid, verdict.unwrap_or_else(Verdict::from), None))
            }
        })
    }

    /// Adds a mutating webhook. Deletes are allowed: there is no object to change.
    ///
    /// # Panics
    /// There is a webhook at that path already, or it does not begin with `/`.
    pub fn mutate<K, F, A>(self, path: &str, handler: F) -> Self
    where
        K: DeserializeOwned + Serialize + Send + 'static,
        F: Fn(Admission<K>) -> A + Send + Sync + 'static,
        A: Future<Output = Result<Mutated<K>, Denial>> + Send + 'static,
    {
        let handler = Arc::new(handler);
        self.hook(path, Kind::Admission, move |request| {
            let handler = Arc::clone(&handler);
            async move {
                let question = review::read(&request)?;
                let mutated = async {
                    let admission = question.typed::<K>()?;
                    let Some(object) = &admission.object else { return Ok((Verdict::allow(), None)) };
                    // As the type represents it: what the type adds or drops is not the handler's change.
                    let before = patch::shown(object)?;
                    let Mutated { object, verdict } = handler(admission).await?;
                    let after = object.as_ref().map(patch::shown).transpose()?;
                    let patch = after.map(|after| patch::between(&question.object, &before, &after));
                    Ok((verdict, patch))
                };
                let (verdict, patch) = mutated.await.unwrap_or_else(|denial: Denial| (denial.into(), None));
                Ok(review::answer(&question.uid, verdict, patch.as_ref()))
            }
        })
    }

    /// Adds a conversion webhook.
    ///
    /// # Panics
    /// There is a webhook at that path already, or it does not begin with `/`.
    pub fn convert(self, path: &str, converter: impl Convert) -> Self {
        let converter = Arc::new(converter);
        self.hook(path, Kind::Conversion, move |request| {
            let converter = Arc::clone(&converter);
            async move { conversion::review(&*converter, &request) }
        })
    }

    fn hook<A>(mut self, path: &str, kind: Kind, answer: impl Fn(Request) -> A + Send + Sync + 'static) -> Self
    where
        A: Future<Output = Result<Response, review::Malformed>> + Send + 'static,
    {
        assert!(path.starts_with('/'), "the path of a webhook begins with /, and {path:?} does not");
        let answer = move |request| {
            let answered = answer(request);
            async move { answered.await.unwrap_or_else(Response::from) }.boxed()
        };
        let before = self.hooks.insert(path.to_owned(), Hook { kind, answer: Box::new(answer) });
        assert!(before.is_none(), "there are two webhooks at {path}: give each a path of its own");
        if let Some(metrics) = &self.metrics {
            metrics.announce(path);
        }
        self
    }

    /// Returns a check of whether it can be reached.
    #[must_use]
    pub fn started(&self) -> Started {
        self.started.clone()
    }

    /// Listens, so that [`address`](Serving::address) and [`certificate_pem`](Serving::certificate_pem) are known
    /// before it runs.
    ///
    /// # Errors
    /// The address cannot be bound, or certificates cannot be used.
    pub async fn bind(&mut self) -> Result<&Serving, ServeError> {
        let serving = match self.serving.take() {
            Some(serving) => serving,
            None => Serving::bind(self.options.clone()).await?,
        };
        Ok(self.serving.insert(serving))
    }

    /// Serves until `stop`; requests in flight are answered.
    ///
    /// # Errors
    /// The address cannot be bound, or certificates cannot be used.
    pub async fn run(mut self, stop: CancellationToken) -> Result<(), ServeError> {
        let address = self.bind().await?.address();
        let Some(serving) = self.serving.take() else { return Ok(()) };
        if let Some(metrics) = &self.metrics {
            self.hooks.keys().for_each(|path| metrics.announce(path));
        }
        tracing::info!(%address, webhooks = self.hooks.len(), "serving webhooks");
        let running = self.started.running_at(address);
        serving.run(self, stop).await;
        drop(running);
        Ok(())
    }
}

impl Runnable for WebhookServer {
    fn name(&self) -> String {
        "webhook server".to_owned()
    }

    /// API servers call a standby as well, and before caches are filled.
    fn group(&self) -> Group {
        Group::Servers
    }

    /// A server that does not serve is not ready.
    fn report_to(&self, health: &Health) {
        let started = self.started();
        health.add(&[Probe::Readyz], "webhook-server", move || {
            started.address().map(drop).map_err(|error| Unhealthy(error.to_string()))
        });
    }

    fn count_in(&mut self, metrics: &Families) {
        if self.metrics.is_some() {
            return;
        }
        match WebhookMetrics::of(metrics) {
            Ok(metrics) => {
                self.hooks.keys().for_each(|path| metrics.announce(path));
                self.metrics = Some(metrics);
            }
            Err(error) => tracing::warn!(%error, "webhooks are not counted"),
        }
    }

    async fn run(self, stop: CancellationToken) -> Result<(), Error> {
        Ok(Self::run(self, stop).await?)
    }
}

impl Service for WebhookServer {
    async fn respond(&self, request: Request) -> Response {
        let Some((path, hook)) = self.hooks.get_key_value(request.uri().path()) else {
            return text(StatusCode::NOT_FOUND, format!("there is no webhook at {}\n", request.uri().path()));
        };
        let _in_flight = self.metrics.as_ref().map(|metrics| metrics.begin(path));
        let response = match refusal(&request) {
            Some(refusal) => refusal,
            None => self.guarded(path, hook, request).await,
        };
        if let Some(metrics) = &self.metrics {
            metrics.answered(path, response.status());
        }
        response
    }
}

impl WebhookServer {
    async fn guarded(&self, path: &str, hook: &Hook, request: Request) -> Response {
        let answer = async { (hook.answer)(request).await };
        match AssertUnwindSafe(answer).catch_unwind().await {
            Ok(response) => response,
            Err(panic) => {
                tracing::error!(webhook = path, panic = panic_text(&*panic), "a webhook panicked");
                if let Some(metrics) = &self.metrics {
                    metrics.panicked(hook.kind);
                }
                let reason = format!("the webhook at {path} panicked; its log has more\n");
                text(StatusCode::INTERNAL_SERVER_ERROR, reason)
            }
        }
    }
}

/// Returns the refusal of a request that cannot be a review.
fn refusal(request: &Request) -> Option<Response> {
    if request.method() != Method::POST {
        let mut refusal = text(StatusCode::METHOD_NOT_ALLOWED, "webhooks are asked with POST\n");
        refusal.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
        return Some(refusal);
    }
    let media_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let essence = media_type.split(';').next().unwrap_or("").trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        let reason = format!("the content type is {media_type:?}, and only application/json is understood\n");
        return Some(text(StatusCode::BAD_REQUEST, reason));
    }
    None
}

// === impl Started ===

/// Clears the address when the server ends, however it ends.
struct Running(Started);

impl Started {
    fn running_at(&self, address: SocketAddr) -> Running {
        *self.0.lock() = Some(address);
        Running(self.clone())
    }

    /// Returns the address it listens on.
    ///
    /// # Errors
    /// The server is not running.
    pub fn address(&self) -> Result<SocketAddr, NotStarted> {
        (*self.0.lock()).ok_or(NotStarted::NotRunning)
    }

    /// Connects to the server.
    ///
    /// # Errors
    /// The server is not running, or cannot be reached.
    pub async fn check(&self) -> Result<(), NotStarted> {
        let address = self.address()?;
        match tokio::time::timeout(DIAL_PATIENCE, TcpStream::connect(dialled(address))).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(NotStarted::Unreachable { address, reason: error.to_string() }),
            Err(_) => Err(NotStarted::Unreachable { address, reason: "nobody answers".to_owned() }),
        }
    }
}

/// A server on all interfaces listens on the loopback interface, too.
fn dialled(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

// === impl Running ===

impl Drop for Running {
    fn drop(&mut self) {
        *self.0.0.lock() = None;
    }
}

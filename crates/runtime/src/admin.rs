//! The pages about a manager: health, metrics, configuration, state; for people, probes and Prometheus.
//!
//! | path | what |
//! |---|---|
//! | `/healthz`, `/livez`, `/readyz`, and `/<check>` below | [`Health`] |
//! | `/metrics`, `/metrics/slis` | [`Exposition`]; results of health checks |
//! | `/configz`, `/flagz`, `/statusz` | upstream's pages |
//! | `/debug/flags/v` | `PUT` sets the log level |
//! | `/debug/informers`, `/debug/queues` | the state of caches and queues, as JSON |
//! | `/debug/decisions?controller=&key=` | what controllers did and why, as JSON |
//! | `/debug/profile?seconds=`, `/debug/pprof/profile?seconds=` | where reconciles spend their time |
//! | `/debug/controllers/<name>/…` | the page of a controller |
//!
//! 1. The guard decides about a request before any handler sees it, under the same decoded path by which the handler is
//!    found. Without a guard, everything is open.
//! 2. Handlers only read. A request costs what its page costs; nothing is kept for a client, and a running profile ends
//!    when its client disconnects.
//! 3. Handlers can be added while it serves. The first handler of a path keeps it: [`PathTaken`].
//! 4. It is a [`Service`]: any server can serve it, and a test needs none.

pub(crate) mod auth;
mod debug;
pub(crate) mod page;
mod profile;
mod query;
mod router;
pub(crate) mod zpages;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use parking_lot::RwLock;
use prometheus::Registry;
use serde_json::Value;
use steersman_base::Clock;
use steersman_informer::InformerFactory;
use steersman_workqueue::QueueStats;

use crate::health::{Ask, Health, Probe, Reasons, Report};
use crate::metrics::{Exposition, text};
use crate::serving::{Request, Response, Service};

pub(crate) use auth::Guard;
pub use auth::GuardError;
pub(crate) use page::{json, text as text_page};
pub(crate) use profile::Profiler;
pub use query::Query;
pub use router::PathTaken;
pub(crate) use zpages::StatusInfo;

use router::{Handler, Router};

/// The pages about a manager. Cheap to clone; clones share the pages.
#[derive(Clone)]
pub struct Admin(Arc<Shared>);

/// A request, as handlers see it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Call {
    /// The method.
    pub method: Method,
    /// The path, decoded.
    pub path: String,
    /// The query parameters.
    pub query: Query,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// The details that the client may see.
    pub access: Access,
}

/// The details of a page that a client may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Access {
    /// The path is open to everybody; the client was not authorised.
    Public,
    /// The client was authorised.
    Authorised,
}

struct Shared {
    component: String,
    clock: Clock,
    guard: RwLock<Option<Guard>>,
    router: Router,
    configs: RwLock<serde_json::Map<String, Value>>,
    /// Whether `/statusz` and `/flagz` offer CBOR.
    cbor: AtomicBool,
}

// === impl Admin ===

impl Admin {
    /// Creates pages that serve nothing yet. `component` is the program's name, such as `kube-controller-manager`.
    #[doc(hidden)]
    #[must_use]
    pub fn new(component: &str, clock: Clock) -> Self {
        Self(Arc::new(Shared {
            component: component.to_owned(),
            clock,
            guard: RwLock::default(),
            router: Router::default(),
            configs: RwLock::default(),
            cbor: AtomicBool::new(false),
        }))
    }

    /// Sets the guard that admits clients, from now on.
    #[doc(hidden)]
    pub fn guard(&self, guard: Guard) {
        *self.0.guard.write() = Some(guard);
    }

    /// Adds a handler for a path.
    ///
    /// # Errors
    /// The path has a handler.
    pub fn handle(
        &self,
        path: &str,
        handler: impl Fn(&Call) -> Response + Send + Sync + 'static,
    ) -> Result<(), PathTaken> {
        self.0.router.exact(path, Arc::new(move |call| Box::pin(std::future::ready(handler(&call)))))
    }

    /// Adds an asynchronous handler for a path. If the client disconnects, the future is dropped.
    ///
    /// # Errors
    /// The path has a handler.
    pub fn handle_async<F>(
        &self,
        path: &str,
        handler: impl Fn(Call) -> F + Send + Sync + 'static,
    ) -> Result<(), PathTaken>
    where
        F: Future<Output = Response> + Send + 'static,
    {
        self.0.router.exact(path, Arc::new(move |call| Box::pin(handler(call))))
    }

    /// Adds the page of a controller: `/debug/controllers/<controller>/` and everything below.
    ///
    /// # Errors
    /// The controller has a page.
    #[doc(hidden)]
    pub fn handle_controller(
        &self,
        controller: &str,
        handler: impl Fn(&Call) -> Response + Send + Sync + 'static,
    ) -> Result<(), PathTaken> {
        let path = format!("/debug/controllers/{controller}/");
        self.0.router.prefix(&path, Arc::new(move |call| Box::pin(std::future::ready(handler(&call)))))
    }

    /// Serves `/healthz`, `/livez`, `/readyz`, what is below them, and `/metrics/slis`.
    ///
    /// # Errors
    /// A path is taken.
    #[doc(hidden)]
    pub fn serve_health(&self, health: &Health) -> Result<(), PathTaken> {
        for probe in Probe::ALL {
            let all = health.clone();
            let one = health.clone();
            let path = format!("/{}", probe.name());
            self.handle(&path, move |call| probe_page(&all.report(probe, &ask(call))))?;
            let below = format!("{path}/");
            let prefix = below.clone();
            let page = move |call: &Call| {
                let name = call.path.strip_prefix(&prefix).unwrap_or_default();
                one.report_one(probe, name).map_or_else(page::not_found, |report| probe_page(&report))
            };
            self.0.router.prefix(&below, Arc::new(move |call| Box::pin(std::future::ready(page(&call)))))?;
        }
        self.handle_registry("/metrics/slis", health.results())
    }

    /// Serves `/metrics`.
    ///
    /// # Errors
    /// The path is taken.
    #[doc(hidden)]
    pub fn serve_metrics(&self, metrics: &Exposition) -> Result<(), PathTaken> {
        let metrics = metrics.clone();
        self.handle("/metrics", move |_| page::bytes(StatusCode::OK, text::CONTENT_TYPE, metrics.text()))
    }

    /// Serves one registry under a path of its own.
    ///
    /// # Errors
    /// The path is taken.
    pub(crate) fn handle_registry(&self, path: &str, registry: &Registry) -> Result<(), PathTaken> {
        let metrics = Exposition::of(registry);
        self.handle(path, move |_| page::bytes(StatusCode::OK, text::CONTENT_TYPE, metrics.text()))
    }

    /// Shows a component's configuration, with `kind` and `apiVersion`, on `/configz` under this name.
    ///
    /// # Errors
    /// The name has a configuration.
    #[doc(hidden)]
    pub fn serve_config(&self, name: &str, config: Value) -> Result<(), PathTaken> {
        let mut configs = self.0.configs.write();
        if configs.contains_key(name) {
            return Err(PathTaken(format!("/configz of {name}")));
        }
        configs.insert(name.to_owned(), config);
        if configs.len() > 1 {
            return Ok(());
        }
        drop(configs);
        let shared = Arc::downgrade(&self.0);
        self.handle("/configz", move |_| {
            let configs = shared.upgrade().map(|shared| shared.configs.read().clone());
            json(StatusCode::OK, &Value::Object(configs.unwrap_or_default()))
        })
    }

    /// Serves `/flagz`: the current flags, by name.
    ///
    /// # Errors
    /// The path is taken.
    #[doc(hidden)]
    pub fn serve_flags(
        &self,
        flags: impl Fn() -> std::collections::BTreeMap<String, String> + Send + Sync + 'static,
    ) -> Result<(), PathTaken> {
        let shared = Arc::downgrade(&self.0);
        self.handle("/flagz", move |call| {
            let Some(shared) = shared.upgrade() else { return page::not_found() };
            zpages::flagz(call, &shared.component, &flags(), shared.cbor.load(Ordering::Relaxed))
        })
    }

    /// Serves `/statusz`.
    ///
    /// # Errors
    /// The path is taken.
    #[doc(hidden)]
    pub fn serve_status(&self, info: StatusInfo) -> Result<(), PathTaken> {
        let shared = Arc::downgrade(&self.0);
        self.handle("/statusz", move |call| {
            let Some(shared) = shared.upgrade() else { return page::not_found() };
            let now = shared.clock.now();
            let cbor = shared.cbor.load(Ordering::Relaxed);
            zpages::statusz(call, &shared.component, &info, now, &shared.router.listed(), cbor)
        })
    }

    /// Offers CBOR on `/statusz` and `/flagz`, as upstream does with the gate `CBORServingAndStorage`.
    #[doc(hidden)]
    pub fn offer_cbor(&self) {
        self.0.cbor.store(true, Ordering::Relaxed);
    }

    /// Serves `/debug/flags/v`: `PUT` with a number sets the verbosity of the log.
    ///
    /// # Errors
    /// The path is taken.
    #[doc(hidden)]
    pub fn serve_log_level(
        &self,
        set: impl Fn(u32) -> Result<(), String> + Send + Sync + 'static,
    ) -> Result<(), PathTaken> {
        self.handle("/debug/flags", |_| debug::flags_index())?;
        self.handle("/debug/flags/v", move |call| debug::set_verbosity(call, &set))
    }

    /// Serves `/debug/informers`.
    ///
    /// # Errors
    /// The path is taken.
    pub(crate) fn serve_informers(&self, informers: &InformerFactory) -> Result<(), PathTaken> {
        let informers = informers.clone();
        self.handle("/debug/informers", move |_| json(StatusCode::OK, &debug::informers(&informers.running())))
    }

    /// Serves `/debug/queues`: the metrics of each queue, by name.
    ///
    /// # Errors
    /// The path is taken.
    pub(crate) fn serve_queues(
        &self,
        queues: impl Fn() -> Vec<(String, QueueStats)> + Send + Sync + 'static,
    ) -> Result<(), PathTaken> {
        self.handle("/debug/queues", move |_| json(StatusCode::OK, &debug::queues(&queues())))
    }

    /// Serves `/debug/decisions`: the entries of the log for the query's `controller` and `key`.
    ///
    /// # Errors
    /// The path is taken.
    pub(crate) fn serve_decisions(
        &self,
        log: impl Fn(&Query) -> Value + Send + Sync + 'static,
    ) -> Result<(), PathTaken> {
        self.handle("/debug/decisions", move |call| json(StatusCode::OK, &log(&call.query)))
    }

    /// Serves `/debug/profile`, and the same for `go tool pprof` at `/debug/pprof/profile`.
    ///
    /// # Errors
    /// The path is taken.
    pub(crate) fn serve_profile(&self, profiler: &Profiler) -> Result<(), PathTaken> {
        for path in ["/debug/profile", "/debug/pprof/profile"] {
            let profiler = profiler.clone();
            self.handle_async(path, move |call| profile::page(profiler.clone(), call))?;
        }
        let others: Handler = Arc::new(|call| Box::pin(std::future::ready(profile::not_gos(&call))));
        self.0.router.prefix("/debug/pprof/", others)
    }

    /// Stops serving a path and everything below (`--profiling=false`).
    #[doc(hidden)]
    pub fn withhold(&self, path: &str) {
        self.0.router.remove(path);
    }

    /// Responds to a request.
    pub async fn respond(&self, request: Request) -> Response {
        let mut response = self.answer(request).await;
        // Upstream's `WithCacheControl`: a page is valid only now, and only for this client.
        let headers = response.headers_mut();
        headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache, private"));
        response
    }

    async fn answer(&self, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let path = query::decode(parts.uri.path(), query::Plus::Literal);
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let guard = self.0.guard.read().clone();
        let guarded = guard.is_some();
        let access = match guard {
            None => Access::Public,
            Some(guard) => match guard.admit(&parts, &path, &query).await {
                Ok(access) => access,
                Err(refusal) => return refusal,
            },
        };
        let Some(handler) = self.0.router.find(&path) else {
            return if guarded && access == Access::Public {
                page::not_found()
            } else {
                page::not_found_but(&self.0.router.listed())
            };
        };
        handler(Call { method: parts.method, path, query, headers: parts.headers, body, access }).await
    }
}

impl Service for Admin {
    async fn respond(&self, request: Request) -> Response {
        Admin::respond(self, request).await
    }
}

impl fmt::Debug for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let guarded = self.0.guard.read().is_some();
        f.debug_struct("Admin").field("paths", &self.0.router.listed()).field("guarded", &guarded).finish()
    }
}

/// Reads the parameters of a probe.
fn ask(call: &Call) -> Ask {
    let reasons = match call.access {
        Access::Public => Reasons::Withheld,
        Access::Authorised => Reasons::Shown,
    };
    let exclude: BTreeSet<_> = call.query.all("exclude").map(str::to_owned).collect();
    Ask { exclude, verbose: call.query.has("verbose"), reasons }
}

fn probe_page(report: &Report) -> Response {
    let code = if report.passed { StatusCode::OK } else { StatusCode::INTERNAL_SERVER_ERROR };
    text_page(code, report.text.clone())
}

//! Health, metrics and pages of a manager.

use std::net::SocketAddr;
use std::sync::Arc;

use prometheus::Registry;
use serde_json::Value;
use steersman_base::Clock;

use super::{Group, Manager, NewManagerError, runnable};
use crate::Controller;
use crate::admin::auth::{GuardOptions, Lookup};
use crate::admin::{Admin, Guard, GuardError, Profiler, Query};
use crate::decisions::{Filter, Log};
use crate::health::{Health, checks};
use crate::metrics::{Activity, Exposition, ReconcileMetrics};
use crate::serving::{ServeError, ServeOptions, Serving};

pub(super) struct Observed {
    pub(super) health: Health,
    pub(super) admin: Admin,
    pub(super) exposition: Exposition,
    profiler: Profiler,
    reconciles: Option<ReconcileMetrics>,
}

// === impl Observed ===

impl Observed {
    pub(super) fn new(component: &str, clock: &Clock, registry: Option<&Registry>) -> Result<Self, NewManagerError> {
        Ok(Self {
            health: Health::new(),
            admin: Admin::new(component, clock.clone()),
            exposition: registry.map(Exposition::of).unwrap_or_default(),
            profiler: Profiler::default(),
            reconciles: registry.map(ReconcileMetrics::register).transpose()?,
        })
    }
}

// === impl Manager ===

impl Manager {
    /// Adds the pages of every manager.
    pub(super) fn show(&self) {
        let Observed { health, admin, exposition, profiler, .. } = &self.0.observed;
        checks::informer_sync(health, self.informers());
        if !self.leadership().is_always() {
            checks::leader_election(health, &self.leadership());
        }
        // Weak, because the manager holds the pages.
        let weak = Arc::downgrade(&self.0);
        let queues = move || {
            let controllers = weak.upgrade().map(|shared| shared.state.lock().controllers.clone()).unwrap_or_default();
            let stats = |controller: &Controller| (controller.queue().name().to_owned(), controller.queue().stats());
            controllers.iter().map(stats).collect()
        };
        let log = self.decisions().clone();
        let shown = admin
            .serve_health(health)
            .and_then(|()| admin.serve_metrics(exposition))
            .and_then(|()| admin.serve_informers(self.informers()))
            .and_then(|()| admin.serve_queues(queues))
            .and_then(|()| admin.serve_decisions(move |query| decided(&log, query)))
            .and_then(|()| admin.serve_profile(profiler));
        if let Err(taken) = shown {
            tracing::error!(%taken, "a page of the manager is not shown");
        }
    }

    /// Serves health, metrics and the debug pages at this address while the manager runs. Returns the address, with the
    /// chosen port if port 0 was given.
    ///
    /// ```no_run
    /// # async fn example(manager: steersman_runtime::Manager) -> Result<(), Box<dyn std::error::Error>> {
    /// manager.serve(std::net::SocketAddr::from(([0, 0, 0, 0], 8080))).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// A plain address serves HTTP, and everybody who can reach it sees all pages, including names of objects and
    /// reasons of writes. For TLS, pass [`ServeOptions`].
    ///
    /// # Errors
    /// The address is in use or invalid, or the certificates cannot be used.
    pub async fn serve(&self, options: impl Into<ServeOptions>) -> Result<SocketAddr, ServeError> {
        let serving = Serving::bind(options.into()).await?;
        let address = serving.address();
        let admin = self.admin().clone();
        self.add(runnable(format!("pages at {address}"), Group::Servers, move |stop| async move {
            serving.run(admin, stop).await;
            Ok(())
        }));
        Ok(address)
    }

    /// Shows the pages only to clients that the API server knows and allows to: it reviews the bearer token (`TokenReview`) and
    /// the right to `get` the path (`SubjectAccessReview`). `/healthz`, `/livez` and `/readyz` stay open to everybody.
    ///
    /// For what controller-runtime calls `filters.WithAuthenticationAndAuthorization`. The account of the manager needs the
    /// ClusterRole `system:auth-delegator`, the clients one with `nonResourceURLs: ["/metrics"]`. Serve with TLS then: the tokens
    /// are on the wire.
    ///
    /// # Errors
    /// The guard cannot be made; the pages stay as they were.
    pub fn require_authorization(&self) -> Result<(), GuardError> {
        let mut options = GuardOptions::delegated_to(self.kube_client().clone(), self.0.clock.clone());
        // Tokens alone: no authority for client certificates is read from the cluster.
        options.lookup = Lookup::Skipped;
        self.admin().guard(Guard::new(options)?);
        Ok(())
    }

    /// Returns the handle by which a controller's workers report.
    pub(crate) fn observe(&self, controller: &Controller) -> Activity {
        let Observed { health, profiler, reconciles, .. } = &self.0.observed;
        let mut activity = Activity::new(controller.name(), controller.workers()).profiled_by(profiler);
        if let Some(metrics) = reconciles {
            activity = activity.counted_in(metrics);
        }
        let queue = controller.queue().clone();
        let waiting = move || queue.len();
        let watched = controller.clone();
        let needs = move || watched.watches();
        let observed = controller.clone();
        let source_panic = move || observed.source_panic();
        checks::controller(
            health,
            controller.name(),
            activity.progress(),
            waiting,
            source_panic,
            self.informers(),
            needs,
        );
        activity
    }
}

fn decided(log: &Log, query: &Query) -> Value {
    let filter = Filter {
        controller: query.get("controller").map(str::to_owned),
        key: query.get("key").map(str::to_owned),
        failed_only: query.has("failed"),
        newest: query.get("newest").and_then(|count| count.parse().ok()),
    };
    let entries = log.entries(&filter);
    let entries: Vec<_> = entries.iter().map(|entry| serde_json::to_value(&**entry).unwrap_or_default()).collect();
    serde_json::json!({ "entries": entries, "bytes": log.bytes(), "dropped": log.dropped() })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::Request;
    use serde_json::json;

    use super::*;
    use crate::ManagerOptions;
    use crate::test_server::TestServer;

    #[tokio::test(start_paused = true)]
    async fn pages_are_for_whom_the_api_server_allows_and_health_is_for_everybody() {
        let review = |is_allowed: bool| json!({ "status": { "authenticated": true, "user": { "username": "prom" }, "allowed": is_allowed } });
        let server = TestServer::answering(201, &review(true));
        let manager = Manager::new(server.client(), ManagerOptions::default()).unwrap();
        let get = async |path: &str, token: &str| {
            let mut request = Request::get(path);
            if !token.is_empty() {
                request = request.header("authorization", format!("Bearer {token}"));
            }
            manager.admin().respond(request.body(Bytes::new()).unwrap()).await.status().as_u16()
        };
        assert_eq!(get("/metrics", "").await, 200, "unprotected by default");
        assert_eq!(server.requests(), [""; 0]);
        manager.require_authorization().unwrap();
        assert_eq!(get("/metrics", "good").await, 200);
        let reviews = ["tokenreviews", "subjectaccessreviews"];
        let asked = server.requests();
        assert!(
            asked.len() == 2 && asked.iter().zip(reviews).all(|(asked, review)| asked.ends_with(review)),
            "{asked:?}"
        );
        server.answer(201, &review(false));
        assert_eq!(get("/debug/decisions", "good").await, 403);
        assert_eq!(get("/debug/decisions", "").await, 403, "nobody in particular");
        server.answer(201, &json!({ "status": { "authenticated": false } }));
        assert_eq!(get("/metrics", "stolen").await, 401);
        server.answer(500, &json!({}));
        assert_eq!(get("/metrics", "another").await, 401);
        assert_eq!(get("/debug/queues", "good").await, 500, "never a yes");
        assert_eq!(get("/healthz", "").await, 200);
    }
}

//! Health, metrics and pages of a manager.

use std::net::SocketAddr;
use std::sync::Arc;

use prometheus::Registry;
use serde_json::Value;
use steersman_base::Clock;

use super::{Group, Manager, NewManagerError, runnable};
use crate::Controller;
use crate::admin::{Admin, Profiler, Query};
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

//! What a process with controllers shares: one client, one set of informers, one writer; and the order in which it starts.
//!
//! 1. All controllers are built before anything runs, so that every need for a cache is known when the caches start.
//! 2. Then the informers start; each controller's workers start when its own caches are filled, so that a resource that
//!    cannot be read stalls nobody who does not need it.
//! 3. On the signal to stop, reconciles in flight finish, then the informers stop.
//! 4. Nothing is global: several managers live in one process, each with caches and metrics of its own.

use std::time::Duration;

use futures::future::join_all;
use prometheus::Registry;
use steersman_base::{Clock, Istr, ObjectKey};
use steersman_informer::consistency::Book;
use steersman_informer::{FactoryOptions, InformerFactory, Metrics};
use steersman_workqueue::{PrometheusMetrics, Queue};
use tokio_util::sync::CancellationToken;

use crate::{BuildContext, Controller, Descriptor, Writer};

/// Controllers that share caches and a client.
pub struct Manager {
    cx: BuildContext,
    controllers: Vec<Controller>,
}

/// How a manager works.
#[derive(Clone, Debug, Default)]
pub struct ManagerOptions {
    /// Where time comes from.
    pub clock: Clock,
    /// The one namespace its controllers see and work in; all of them, if none is named.
    pub namespace: Option<Istr>,
    /// Where queues and informers count; nowhere, if nothing is said.
    pub metrics: Option<Registry>,
}

/// What a manager's controllers are doing.
#[derive(Clone, Debug)]
pub struct Inspection {
    queues: Vec<Queue<ObjectKey>>,
    informers: InformerFactory,
    book: Book,
}

/// Why a manager cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("the metrics registry holds metrics of another manager: {0}")]
pub struct MetricsTaken(#[from] prometheus::Error);

/// How long caches may take to fill before the manager says what it is waiting for. It goes on waiting.
const SAY_WHAT_IS_MISSING_AFTER: Duration = Duration::from_secs(10);

// === impl Manager ===

impl Manager {
    /// A manager without controllers.
    ///
    /// # Errors
    /// The registry is another manager's.
    pub fn new(client: kube::Client, options: ManagerOptions) -> Result<Self, MetricsTaken> {
        let ManagerOptions { clock, namespace, metrics } = options;
        let informer_metrics = metrics.as_ref().map(Metrics::new).transpose()?;
        let queue_metrics = metrics.as_ref().map(PrometheusMetrics::register).transpose()?;
        let factory = FactoryOptions { metrics: informer_metrics, namespace, ..FactoryOptions::default() };
        let informers = InformerFactory::with_options(client.clone(), factory);
        let book = Book::new(&informers);
        let writer = Writer::new(client.clone(), book.clone());
        let cx = BuildContext { client, informers, writer, book, clock, queue_metrics };
        Ok(Self { cx, controllers: Vec::new() })
    }

    /// Builds a controller. It runs when the manager does.
    pub fn add(&mut self, descriptor: &Descriptor, workers: Option<usize>) {
        self.add_built((descriptor.build)(&self.cx, workers.unwrap_or(descriptor.workers)));
    }

    /// Takes a controller that was built with this manager's [`context`](Self::context).
    pub fn add_built(&mut self, controller: Controller) {
        self.controllers.push(controller);
    }

    /// What controllers are built with.
    #[must_use]
    pub fn context(&self) -> &BuildContext {
        &self.cx
    }

    /// A look at what the controllers that were added so far are doing.
    #[must_use]
    pub fn inspection(&self) -> Inspection {
        let queues = self.controllers.iter().map(|controller| controller.queue().clone()).collect();
        Inspection { queues, informers: self.cx.informers.clone(), book: self.cx.book.clone() }
    }

    /// Runs all controllers until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let informers = self.cx.informers;
        informers.start();
        let controllers = join_all(self.controllers.into_iter().map(|controller| controller.run(stop.clone())));
        let until_stopped = async {
            controllers.await;
            stop.cancelled().await;
        };
        let report = async {
            while let Err(missing) = informers.synced_within(SAY_WHAT_IS_MISSING_AFTER).await {
                tracing::warn!("{missing}");
            }
            tracing::info!("all caches are filled");
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            () = until_stopped => {}
            () = report => {}
        }
        informers.stop().await;
    }
}

// === impl Inspection ===

impl Inspection {
    /// Whether a key waits, is held or is parked, or a cache is not filled.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        let busy = |queue: &Queue<ObjectKey>| {
            let stats = queue.stats();
            stats.depth > 0 || !stats.unfinished.is_zero()
        };
        let filling = || self.informers.running().iter().any(|running| !running.informer.synced);
        self.queues.iter().any(busy) || !self.book.is_empty() || filling()
    }

    /// The informers, and what each is doing.
    #[must_use]
    pub fn informers(&self) -> &InformerFactory {
        &self.informers
    }
}

//! What a process with controllers shares: one client, one set of informers, one writer; and the order in which it starts.
//!
//! 1. All controllers are built before anything runs, so that every need for a cache is known when the caches start.
//! 2. Then the informers start; each controller's workers start when its own caches are filled, so that a resource that
//!    cannot be read stalls nobody who does not need it.
//! 3. On the signal to stop, reconciles in flight finish, then the informers stop.

use std::time::Duration;

use futures::future::join_all;
use steersman_base::Clock;
use steersman_informer::InformerFactory;
use steersman_informer::consistency::Book;
use tokio_util::sync::CancellationToken;

use crate::{BuildContext, Controller, Descriptor, Writer};

/// Controllers that share caches and a client.
pub struct Manager {
    cx: BuildContext,
    controllers: Vec<Controller>,
}

/// How long caches may take to fill before the manager says what it is waiting for. It goes on waiting.
const SAY_WHAT_IS_MISSING_AFTER: Duration = Duration::from_secs(10);

// === impl Manager ===

impl Manager {
    /// A manager without controllers.
    #[must_use]
    pub fn new(client: kube::Client, clock: Clock) -> Self {
        let informers = InformerFactory::new(client.clone());
        let book = Book::new(&informers);
        let writer = Writer::new(client.clone(), book.clone());
        Self { cx: BuildContext { client, informers, writer, book, clock }, controllers: Vec::new() }
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

    /// Runs all controllers until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let informers = self.cx.informers;
        informers.start();
        let controllers = join_all(self.controllers.into_iter().map(|controller| controller.run(stop.clone())));
        let report = async {
            while let Err(missing) = informers.synced_within(SAY_WHAT_IS_MISSING_AFTER).await {
                tracing::warn!("{missing}");
            }
            tracing::info!("all caches are filled");
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            _ = controllers => {}
            () = report => {}
        }
        informers.stop().await;
    }
}

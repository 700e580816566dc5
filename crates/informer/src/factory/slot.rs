//! One informer of a factory, with the reflector that feeds it.

use std::any::Any;
use std::sync::Arc;

use futures::future::BoxFuture;
use kube::Client;
use parking_lot::Mutex;
use steersman_base::watch;
use steersman_model::View;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::RunningInformer;
use super::restart::Staleness;
use crate::informer::SharedInformer;
use crate::meta_source::MetaSource;
use crate::metrics::InformerMetrics;
use crate::reflector::{Phase, Reflector, ReflectorOptions, ReflectorState, Restarts};
use crate::store::Ledger;
use crate::target::Target;

/// An informer, whatever its view.
pub(super) trait AnySlot: Send + Sync {
    /// Starts it, unless it runs or has run.
    fn start(&self, client: &Client, options: &ReflectorOptions);
    fn is_started(&self) -> bool;
    fn synced(&self) -> BoxFuture<'_, ()>;
    /// Stops it, and waits until nothing of it runs.
    fn stop(&self) -> BoxFuture<'_, ()>;
    fn describe(&self) -> RunningInformer;
    fn ledger(&self) -> Arc<dyn Ledger>;
    /// Restarts its watch, which does not show the server's state, unless it does not run or was restarted just now.
    fn restart_stale(&self);
    fn meta_source(&self) -> Arc<dyn MetaSource>;
    fn as_any(&self) -> &dyn Any;
}

pub(super) struct Slot<V: View> {
    informer: SharedInformer<V>,
    stop: CancellationToken,
    running: Mutex<Option<Running>>,
}

struct Running {
    state: watch::Receiver<ReflectorState>,
    restarts: Restarts,
    staleness: Staleness,
    tasks: Vec<JoinHandle<()>>,
}

// === impl Slot ===

impl<V: View> Slot<V> {
    pub(super) fn new(target: Target, factory_stop: &CancellationToken, metrics: Option<InformerMetrics>) -> Self {
        let stop = factory_stop.child_token();
        let informer = SharedInformer::with_metrics(target, stop.clone(), metrics);
        Self { informer, stop, running: Mutex::new(None) }
    }

    pub(super) fn informer(&self) -> &SharedInformer<V> {
        &self.informer
    }
}

impl<V: View> AnySlot for Slot<V> {
    fn start(&self, client: &Client, options: &ReflectorOptions) {
        let mut running = self.running.lock();
        if running.is_some() || self.stop.is_cancelled() {
            return;
        }
        let options = ReflectorOptions { gather: self.informer.gathers_for(), ..options.clone() };
        let reflector = Reflector::<V>::new(client.clone(), self.informer.target().clone(), options);
        let state = reflector.state();
        let restarts = reflector.restarts();
        let informer = self.informer.clone();
        let stop = self.stop.clone();
        let pump: BoxFuture<'static, ()> = Box::pin(async move { informer.run(&stop).await });
        let reflect: BoxFuture<'static, ()> = Box::pin(reflector.run(self.informer.sink(), self.stop.clone()));
        let runtime = self.informer.runtime();
        let tasks = vec![runtime.spawn(pump), runtime.spawn(reflect)];
        *running = Some(Running { state, restarts, staleness: Staleness::default(), tasks });
    }

    fn is_started(&self) -> bool {
        self.running.lock().is_some()
    }

    fn synced(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.informer.synced())
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.stop.cancel();
            let tasks = self.running.lock().as_mut().map(|running| std::mem::take(&mut running.tasks));
            for task in tasks.into_iter().flatten() {
                if let Err(error) = task.await {
                    tracing::error!(informer = %self.informer.target(), %error, "the task of an informer failed");
                }
            }
            self.informer.subscribers_ended().await;
        })
    }

    fn describe(&self) -> RunningInformer {
        let reflector = self.running.lock().as_ref().map(|running| running.state.borrow().clone());
        RunningInformer {
            view: std::any::type_name::<V>(),
            projection: V::PROJECTION,
            informer: self.informer.state(),
            reflector,
        }
    }

    fn ledger(&self) -> Arc<dyn Ledger> {
        self.informer.ledger()
    }

    fn restart_stale(&self) {
        let mut running = self.running.lock();
        let Some(running) = running.as_mut() else { return };
        // A reflector that lists, or waits for an unreachable server, knows that it is behind.
        if running.state.borrow().phase != Phase::Watching {
            return;
        }
        let Some(how) = running.staleness.found(Instant::now().into_std()) else { return };
        tracing::warn!(resource = %self.informer.target(), ?how,
            "the watch does not show what was written long ago, and is restarted");
        running.restarts.restart(how);
    }

    fn meta_source(&self) -> Arc<dyn MetaSource> {
        Arc::new(self.informer.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

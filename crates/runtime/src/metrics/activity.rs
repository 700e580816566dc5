//! What one controller's workers tell of themselves: the worker loop's only handle to metrics, health and profile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use steersman_base::ObjectKey;
use tokio::time::Instant;

use super::{ControllerMetrics, Outcome, ReconcileMetrics};
use crate::admin::Profiler;
use crate::health::Progress;

/// One controller's activity. Cheap to clone; clones tell of the same controller.
///
/// ```
/// # use steersman_base::ObjectKey;
/// # use steersman_runtime::metrics::{Activity, Outcome, ReconcileMetrics};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), prometheus::Error> {
/// let registry = prometheus::Registry::new();
/// let metrics = ReconcileMetrics::register(&registry)?;
/// let activity = Activity::new("bakery", 2).counted_in(&metrics);
///
/// let key = ObjectKey::new("default", "cake");
/// let pass = activity.begin(&key); // the worker took a key
/// pass.end(Outcome::Done);         // dropped instead: the worker was stopped
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Activity {
    controller: Arc<str>,
    workers: usize,
    metrics: Option<ControllerMetrics>,
    progress: Progress,
    profiler: Profiler,
}

/// One pass of one worker.
#[derive(Debug)]
#[must_use = "a pass that is dropped counts as stopped"]
pub struct Pass<'a> {
    activity: &'a Activity,
    key: &'a ObjectKey,
    began: Instant,
    /// How long it has been on a thread, in nanoseconds, as far as somebody asked.
    busy_ns: AtomicU64,
    outcome: Option<Outcome>,
}

// === impl Activity ===

impl Activity {
    /// The activity of a controller with so many workers. It is counted nowhere yet.
    pub fn new(controller: &str, workers: usize) -> Self {
        Self {
            controller: controller.into(),
            workers,
            metrics: None,
            progress: Progress::new(workers),
            profiler: Profiler::default(),
        }
    }

    /// Counted in these metrics.
    pub fn counted_in(mut self, metrics: &ReconcileMetrics) -> Self {
        self.metrics = Some(metrics.controller(&self.controller, self.workers));
        self
    }

    /// Seen by this profiler.
    pub fn profiled_by(mut self, profiler: &Profiler) -> Self {
        self.profiler = profiler.clone();
        self
    }

    /// Whether the workers come forward.
    #[must_use]
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// A worker takes a key.
    pub fn begin<'a>(&'a self, key: &'a ObjectKey) -> Pass<'a> {
        self.progress.began();
        if let Some(metrics) = &self.metrics {
            metrics.began();
        }
        Pass { activity: self, key, began: Instant::now(), busy_ns: AtomicU64::new(0), outcome: None }
    }
}

// === impl Pass ===

impl Pass<'_> {
    /// How long it has taken so far.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Does the work. While somebody takes a profile, the time that it is on a thread is measured.
    pub async fn run<F: Future>(&self, work: F) -> F::Output {
        let mut work = std::pin::pin!(work);
        std::future::poll_fn(|cx| {
            if !self.activity.profiler.is_on() {
                return work.as_mut().poll(cx);
            }
            let began = Instant::now();
            let polled = work.as_mut().poll(cx);
            let took = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.busy_ns.fetch_add(took, Ordering::Relaxed);
            polled
        })
        .await
    }

    /// The worker is done with the key.
    pub fn end(mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
    }
}

/// In `drop`, so that a worker that is stopped in the middle is not seen as working for ever.
impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let took = self.began.elapsed();
        self.activity.progress.ended();
        if let Some(metrics) = &self.activity.metrics {
            metrics.ended(self.outcome, took);
        }
        let busy = Duration::from_nanos(*self.busy_ns.get_mut());
        self.activity.profiler.record(&self.activity.controller, self.key, took, busy);
    }
}

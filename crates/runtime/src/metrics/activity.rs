//! The worker loop's only handle to metrics, health and profile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use steersman_base::ObjectKey;
use tokio::time::Instant;

use super::{ControllerMetrics, Outcome, ReconcileMetrics};
use crate::admin::Profiler;
use crate::health::Progress;

/// The activity of one controller. Cheap to clone; clones report for the same controller.
#[derive(Clone, Debug)]
#[must_use]
pub(crate) struct Activity {
    controller: Arc<str>,
    workers: usize,
    metrics: Option<ControllerMetrics>,
    progress: Progress,
    profiler: Profiler,
}

/// One pass of one worker.
#[derive(Debug)]
#[must_use = "a pass that is dropped counts as stopped"]
pub(crate) struct Pass<'a> {
    activity: &'a Activity,
    key: &'a ObjectKey,
    began: Instant,
    /// The time on a thread in nanoseconds, while a profile is running.
    busy_ns: AtomicU64,
    outcome: Option<Outcome>,
}

// === impl Activity ===

impl Activity {
    /// Creates the activity of a controller, which is not counted yet.
    pub(crate) fn new(controller: &str, workers: usize) -> Self {
        Self {
            controller: controller.into(),
            workers,
            metrics: None,
            progress: Progress::new(workers),
            profiler: Profiler::default(),
        }
    }

    /// Counts it in these metrics.
    pub(crate) fn counted_in(mut self, metrics: &ReconcileMetrics) -> Self {
        self.metrics = Some(metrics.controller(&self.controller, self.workers));
        self
    }

    /// Records it with this profiler.
    pub(crate) fn profiled_by(mut self, profiler: &Profiler) -> Self {
        self.profiler = profiler.clone();
        self
    }

    /// Returns the progress of the workers.
    #[must_use]
    pub(crate) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Records that a worker takes a key.
    pub(crate) fn begin<'a>(&'a self, key: &'a ObjectKey) -> Pass<'a> {
        self.progress.began();
        if let Some(metrics) = &self.metrics {
            metrics.began();
        }
        Pass { activity: self, key, began: Instant::now(), busy_ns: AtomicU64::new(0), outcome: None }
    }
}

// === impl Pass ===

impl Pass<'_> {
    /// The time since the pass began.
    #[cfg(test)]
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Runs the work. While a profile is running, the time on a thread is measured.
    pub(crate) async fn run<F: Future>(&self, work: F) -> F::Output {
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

    /// Records that the worker has finished the key.
    pub(crate) fn end(mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
    }
}

/// In `drop`, so that a worker that is cancelled is not counted as working for ever.
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

//! Metrics of controllers' workers, under controller-runtime's names (`pkg/internal/controller/metrics`, 0.25).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
};

/// The metrics of all controllers of a manager. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ReconcileMetrics(Arc<Families>);

struct Families {
    total: IntCounterVec,
    errors: IntCounterVec,
    terminal: IntCounterVec,
    panics: IntCounterVec,
    timeouts: IntCounterVec,
    time: HistogramVec,
    workers: IntGaugeVec,
    active: IntGaugeVec,
}

/// The metrics of one controller, looked up once. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ControllerMetrics(Arc<Series>);

struct Series {
    success: IntCounter,
    requeue: IntCounter,
    requeue_after: IntCounter,
    error: IntCounter,
    errors: IntCounter,
    terminal: IntCounter,
    panics: IntCounter,
    timeouts: IntCounter,
    time: Histogram,
    active: IntGauge,
}

/// The outcome of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing is left to do.
    Done,
    /// The key is requeued.
    Again,
    /// The key is requeued after some time.
    After,
    /// An error, which is retried.
    Failed,
    /// An error that a retry cannot solve.
    FailedForGood,
    /// A panic, which is an error too.
    Panicked,
    /// The pass exceeded its time limit, which is an error too.
    TimedOut,
}

/// controller-runtime's buckets, in seconds.
const SECONDS: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0,
];

// === impl ReconcileMetrics ===

impl ReconcileMetrics {
    /// Registers the metrics.
    ///
    /// # Errors
    /// The registry has them already: there is one `ReconcileMetrics` per registry.
    pub(crate) fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let name = |what: &str| format!("controller_runtime_{what}");
        let counter = |what: &str, help: &str, labels: &[&str]| IntCounterVec::new(Opts::new(name(what), help), labels);
        let gauge = |what: &str, help: &str| IntGaugeVec::new(Opts::new(name(what), help), &["controller"]);
        let of = &["controller"];
        let time =
            HistogramOpts::new(name("reconcile_time_seconds"), "Length of time per reconciliation per controller");
        let errors = "Total number of reconciliation errors per controller";
        let terminal = "Total number of terminal reconciliation errors per controller";
        let families = Families {
            total: counter(
                "reconcile_total",
                "Total number of reconciliations per controller",
                &["controller", "result"],
            )?,
            errors: counter("reconcile_errors_total", errors, of)?,
            terminal: counter("terminal_reconcile_errors_total", terminal, of)?,
            panics: counter("reconcile_panics_total", "Total number of reconciliation panics per controller", of)?,
            timeouts: counter(
                "reconcile_timeouts_total",
                "Total number of reconciliation timeouts per controller",
                of,
            )?,
            time: HistogramVec::new(time.buckets(SECONDS.to_vec()), of)?,
            workers: gauge("max_concurrent_reconciles", "Maximum number of concurrent reconciles per controller")?,
            active: gauge("active_workers", "Number of currently used workers per controller")?,
        };
        for family in [&families.total, &families.errors, &families.terminal, &families.panics, &families.timeouts] {
            registry.register(Box::new(family.clone()))?;
        }
        registry.register(Box::new(families.time.clone()))?;
        registry.register(Box::new(families.workers.clone()))?;
        registry.register(Box::new(families.active.clone()))?;
        Ok(Self(Arc::new(families)))
    }

    /// Returns the metrics of one controller, which are shown from now on, with zeros.
    #[must_use]
    pub(crate) fn controller(&self, name: &str, workers: usize) -> ControllerMetrics {
        let all = &*self.0;
        all.workers.with_label_values(&[name]).set(i64::try_from(workers).unwrap_or(i64::MAX));
        let total = |result: &str| all.total.with_label_values(&[name, result]);
        ControllerMetrics(Arc::new(Series {
            success: total("success"),
            requeue: total("requeue"),
            requeue_after: total("requeue_after"),
            error: total("error"),
            errors: all.errors.with_label_values(&[name]),
            terminal: all.terminal.with_label_values(&[name]),
            panics: all.panics.with_label_values(&[name]),
            timeouts: all.timeouts.with_label_values(&[name]),
            time: all.time.with_label_values(&[name]),
            active: all.active.with_label_values(&[name]),
        }))
    }
}

impl fmt::Debug for ReconcileMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReconcileMetrics").finish_non_exhaustive()
    }
}

// === impl ControllerMetrics ===

impl ControllerMetrics {
    /// Records that a worker took a key.
    pub(crate) fn began(&self) {
        self.0.active.inc();
    }

    /// Records that a worker has finished a key; `None`: it was cancelled without an outcome.
    pub(crate) fn ended(&self, outcome: Option<Outcome>, took: Duration) {
        let series = &*self.0;
        series.active.dec();
        let Some(outcome) = outcome else { return };
        series.time.observe(took.as_secs_f64());
        match outcome {
            Outcome::Done => return series.success.inc(),
            Outcome::Again => return series.requeue.inc(),
            Outcome::After => return series.requeue_after.inc(),
            Outcome::Failed => {}
            Outcome::FailedForGood => series.terminal.inc(),
            Outcome::Panicked => series.panics.inc(),
            Outcome::TimedOut => series.timeouts.inc(),
        }
        series.error.inc();
        series.errors.inc();
    }
}

impl fmt::Debug for ControllerMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerMetrics").finish_non_exhaustive()
    }
}

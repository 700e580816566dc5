//! Metrics of reflectors: what client-go measures and has not exported since 1.10.

use std::fmt;
use std::time::Duration;

use prometheus::{HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry};
use steersman_base::Resource;
use steersman_informer::__internal::reflector::{ListKind, ReflectorMetrics, WatchEnd};

/// Counts the lists and watches of all reflectors of a factory, under names of our own:
///
/// | metric | what |
/// |---|---|
/// | `steersman_reflector_list_duration_seconds{kind}` | complete lists, `streamed` or `paged` |
/// | `steersman_reflector_list_failures_total{kind}` | lists that failed |
/// | `steersman_reflector_watches_total` | watches that were asked for |
/// | `steersman_reflector_watch_ends_total{end}` | how they ended: `graceful`, `short` (at once and empty), `failed`, `stale` (restarted, because they did not show a write) |
/// | `steersman_reflector_unreadable_objects_total{group,resource}` | objects that could not be read, each time one was skipped |
/// | `steersman_reflector_stale_events_total` | events older than what was known |
///
/// It goes into `FactoryOptions::reflector.metrics`.
pub(crate) struct ReflectorCounters {
    lists: HistogramVec,
    failures: IntCounterVec,
    watches: IntCounter,
    ends: IntCounterVec,
    unreadable: IntCounterVec,
    stale: IntCounter,
}

/// A small list takes milliseconds, the largest minutes.
const SECONDS: [f64; 10] = [0.005, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0, 60.0, 180.0];

// === impl ReflectorCounters ===

impl ReflectorCounters {
    /// Registers the metrics.
    ///
    /// # Errors
    /// The registry has them already.
    pub(crate) fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let name = |what: &str| format!("steersman_reflector_{what}");
        let lists = HistogramOpts::new(name("list_duration_seconds"), "How long complete lists took.");
        let failures = Opts::new(name("list_failures_total"), "Lists that failed.");
        let ends = Opts::new(name("watch_ends_total"), "How watches ended.");
        let unreadable =
            Opts::new(name("unreadable_objects_total"), "Objects that could not be read, and were skipped.");
        let counters = Self {
            lists: HistogramVec::new(lists.buckets(SECONDS.to_vec()), &["kind"])?,
            failures: IntCounterVec::new(failures, &["kind"])?,
            watches: IntCounter::new(name("watches_total"), "Watches that were asked for.")?,
            ends: IntCounterVec::new(ends, &["end"])?,
            unreadable: IntCounterVec::new(unreadable, &["group", "resource"])?,
            stale: IntCounter::new(name("stale_events_total"), "Events older than what was known, and dropped.")?,
        };
        registry.register(Box::new(counters.lists.clone()))?;
        registry.register(Box::new(counters.failures.clone()))?;
        registry.register(Box::new(counters.watches.clone()))?;
        registry.register(Box::new(counters.ends.clone()))?;
        registry.register(Box::new(counters.unreadable.clone()))?;
        registry.register(Box::new(counters.stale.clone()))?;
        Ok(counters)
    }
}

impl ReflectorMetrics for ReflectorCounters {
    fn listed(&self, kind: ListKind, _items: usize, took: Duration) {
        self.lists.with_label_values(&[list_kind(kind)]).observe(took.as_secs_f64());
    }

    fn list_failed(&self, kind: ListKind) {
        self.failures.with_label_values(&[list_kind(kind)]).inc();
    }

    fn watch_started(&self) {
        self.watches.inc();
    }

    fn watch_ended(&self, end: WatchEnd, _events: u64, _lived: Duration) {
        let end = match end {
            WatchEnd::Graceful => "graceful",
            WatchEnd::Short => "short",
            WatchEnd::Failed => "failed",
            WatchEnd::Stale => "stale",
        };
        self.ends.with_label_values(&[end]).inc();
    }

    fn unreadable_object(&self, resource: &Resource) {
        self.unreadable.with_label_values(&[&*resource.group, &*resource.plural]).inc();
    }

    fn stale_event(&self) {
        self.stale.inc();
    }
}

impl fmt::Debug for ReflectorCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReflectorCounters").finish_non_exhaustive()
    }
}

fn list_kind(kind: ListKind) -> &'static str {
    match kind {
        ListKind::Streamed => "streamed",
        ListKind::Paged => "paged",
    }
}

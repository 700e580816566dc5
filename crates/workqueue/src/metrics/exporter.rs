//! Upstream's `workqueue_*` metrics for a Prometheus registry.
//!
//! Names, label, help texts and buckets are those of Kubernetes 1.37
//! (`component-base/metrics/prometheus/workqueue/metrics.go`), so that dashboards and alerts keep working.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use prometheus::{
    Registry,
    core::{Collector, Desc},
    proto::{self, MetricType},
};

use super::{Histogram, Metrics, Observe, QueueStats};

/// Reports queues to one Prometheus registry. Clones report to the same.
///
/// Queues of the same name are shown as one, as upstream does. A queue without a name is not shown.
///
/// ```
/// # use steersman_workqueue::{PrometheusMetrics, Priority, Queue, QueueOptions};
/// # fn main() -> Result<(), prometheus::Error> {
/// let registry = prometheus::Registry::new();
/// let metrics = PrometheusMetrics::register(&registry)?;
/// let queue = Queue::new("replicaset", QueueOptions::default().metrics(metrics));
/// queue.add("default/web", Priority::Live);
///
/// let text = prometheus::TextEncoder::new().encode_to_string(&registry.gather())?;
/// assert!(text.contains(r#"workqueue_depth{name="replicaset"} 1"#));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PrometheusMetrics {
    shared: Arc<Shared>,
}

struct Shared {
    families: Vec<Family>,
    queues: Mutex<BTreeMap<String, Series>>,
}

/// All queues of one name.
#[derive(Default)]
struct Series {
    living: Vec<Weak<dyn Observe>>,
    retired: QueueStats,
}

/// One metric: its name, and how its value is read.
struct Family {
    desc: Desc,
    value: Value,
}

enum Value {
    Counter(fn(&QueueStats) -> u64),
    Gauge(fn(&QueueStats) -> f64),
    Histogram(fn(&QueueStats) -> &Histogram),
}

/// Upstream marks the stability in the help text.
const METRICS: [(&str, &str, Value); 7] = [
    ("workqueue_adds_total", "[BETA] Total number of adds handled by workqueue", Value::Counter(|stats| stats.adds)),
    ("workqueue_depth", "[BETA] Current depth of workqueue", Value::Gauge(|stats| stats.depth as f64)),
    (
        "workqueue_longest_running_processor_seconds",
        "[BETA] How many seconds has the longest running processor for workqueue been running.",
        Value::Gauge(|stats| stats.longest_running.as_secs_f64()),
    ),
    (
        "workqueue_queue_duration_seconds",
        "[BETA] How long in seconds an item stays in workqueue before being requested.",
        Value::Histogram(|stats| &stats.waited),
    ),
    (
        "workqueue_retries_total",
        "[BETA] Total number of retries handled by workqueue",
        Value::Counter(|stats| stats.retries),
    ),
    (
        "workqueue_unfinished_work_seconds",
        "[BETA] How many seconds of work has done that is in progress and hasn't been observed by work_duration. \
         Large values indicate stuck threads. One can deduce the number of stuck threads by observing the rate at \
         which this increases.",
        Value::Gauge(|stats| stats.unfinished.as_secs_f64()),
    ),
    (
        "workqueue_work_duration_seconds",
        "[BETA] How long in seconds processing an item from workqueue takes.",
        Value::Histogram(|stats| &stats.worked),
    ),
];

// === impl PrometheusMetrics ===

impl PrometheusMetrics {
    /// Registers the metrics.
    ///
    /// # Errors
    ///
    /// When the registry has metrics of these names already: there is one `PrometheusMetrics` per registry.
    pub fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let family = |(name, help, value): (&str, &str, Value)| {
            let desc = Desc::new(name.to_owned(), help.to_owned(), vec!["name".to_owned()], Default::default())?;
            Ok(Family { desc, value })
        };
        let families = METRICS.into_iter().map(family).collect::<Result<_, prometheus::Error>>()?;
        let metrics = Self { shared: Arc::new(Shared { families, queues: Mutex::default() }) };
        registry.register(Box::new(metrics.clone()))?;
        Ok(metrics)
    }

    /// Returns the figures by name.
    fn stats(&self) -> BTreeMap<String, QueueStats> {
        let mut stats = BTreeMap::new();
        let mut living: Vec<(String, Arc<dyn Observe>)> = Vec::new();
        for (name, series) in &*self.shared.queues.lock() {
            stats.insert(name.clone(), series.retired.clone());
            living.extend(series.living.iter().filter_map(Weak::upgrade).map(|queue| (name.clone(), queue)));
        }
        // The queues are read with the lock released: a queue whose last handle was dropped meanwhile ends here, and
        // reports its end, which takes this lock.
        for (name, queue) in living {
            stats.entry(name).or_default().merge(&queue.stats());
        }
        stats
    }
}

impl From<PrometheusMetrics> for Arc<dyn Metrics> {
    fn from(metrics: PrometheusMetrics) -> Self {
        Arc::new(metrics)
    }
}

impl Metrics for PrometheusMetrics {
    fn attach(&self, name: &str, queue: Weak<dyn Observe>) {
        if !name.is_empty() {
            self.shared.queues.lock().entry(name.to_owned()).or_default().living.push(queue);
        }
    }

    fn detach(&self, name: &str, last: &QueueStats) {
        if let Some(series) = self.shared.queues.lock().get_mut(name) {
            series.living.retain(|queue| queue.strong_count() > 0);
            series.retired.merge(&last.retired());
        }
    }
}

impl Collector for PrometheusMetrics {
    fn desc(&self) -> Vec<&Desc> {
        self.shared.families.iter().map(|family| &family.desc).collect()
    }

    fn collect(&self) -> Vec<proto::MetricFamily> {
        let stats = self.stats();
        self.shared.families.iter().filter_map(|family| family.collect(&stats)).collect()
    }
}

// === impl Family ===

impl Family {
    /// Returns the family with one metric per queue; `None` if there is no queue, since a family must not be empty.
    fn collect(&self, stats: &BTreeMap<String, QueueStats>) -> Option<proto::MetricFamily> {
        if stats.is_empty() {
            return None;
        }
        let mut family = proto::MetricFamily::default();
        family.set_name(self.desc.fq_name.clone());
        family.set_help(self.desc.help.clone());
        family.set_field_type(self.value.kind());
        family.set_metric(stats.iter().map(|(name, stats)| self.value.metric(name, stats)).collect());
        Some(family)
    }
}

// === impl Value ===

impl Value {
    fn kind(&self) -> MetricType {
        match self {
            Value::Counter(_) => MetricType::COUNTER,
            Value::Gauge(_) => MetricType::GAUGE,
            Value::Histogram(_) => MetricType::HISTOGRAM,
        }
    }

    fn metric(&self, name: &str, stats: &QueueStats) -> proto::Metric {
        let mut label = proto::LabelPair::default();
        label.set_name("name".to_owned());
        label.set_value(name.to_owned());
        let mut metric = proto::Metric::from_label(vec![label]);
        match self {
            Value::Counter(read) => {
                let mut counter = proto::Counter::default();
                counter.set_value(read(stats) as f64);
                metric.set_counter(counter);
            }
            Value::Gauge(read) => {
                let mut gauge = proto::Gauge::default();
                gauge.set_value(read(stats));
                metric.set_gauge(gauge);
            }
            Value::Histogram(read) => metric.set_histogram(histogram(read(stats))),
        }
        metric
    }
}

fn histogram(counted: &Histogram) -> proto::Histogram {
    let bucket = |(bound, count)| {
        let mut bucket = proto::Bucket::default();
        bucket.set_upper_bound(bound);
        bucket.set_cumulative_count(count);
        bucket
    };
    let mut histogram = proto::Histogram::default();
    histogram.set_sample_count(counted.count());
    histogram.set_sample_sum(counted.sum().as_secs_f64());
    histogram.set_bucket(counted.cumulative().map(bucket).collect());
    histogram
}

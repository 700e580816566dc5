//! Guarantee 7, second half: metrics with upstream's names.

use prometheus::{Registry, TextEncoder};
use tokio::time::{Duration, sleep};

use super::*;
use crate::{Held, Priority, Queue, QueueOptions};

fn registry() -> (Registry, PrometheusMetrics) {
    let registry = Registry::new();
    let metrics = PrometheusMetrics::register(&registry).expect("the registry is new");
    (registry, metrics)
}

fn queue(name: &'static str, metrics: &PrometheusMetrics) -> Queue<&'static str> {
    Queue::new(name, QueueOptions { metrics: metrics.clone().into(), ..QueueOptions::default() })
}

fn text(registry: &Registry) -> String {
    TextEncoder::new().encode_to_string(&registry.gather()).expect("metrics can be written")
}

fn line<'a>(text: &'a str, start: &str) -> &'a str {
    let value = text.lines().find_map(|line| line.strip_prefix(start));
    value.unwrap_or_else(|| panic!("no {start} in\n{text}")).trim()
}

async fn take(queue: &Queue<&'static str>) -> Held<&'static str> {
    queue.next().await.expect("the queue is open")
}

#[tokio::test(start_paused = true)]
async fn a_key_added_again_while_held_has_waited_since_then() {
    let (registry, metrics) = registry();
    let queue = queue("again", &metrics);
    queue.add("a", Priority::Live);
    let held = take(&queue).await;
    sleep(Duration::from_secs(2)).await;
    queue.add("a", Priority::Live);
    sleep(Duration::from_secs(3)).await;
    held.done();
    take(&queue).await.done();
    let text = text(&registry);
    assert_eq!(line(&text, r#"workqueue_queue_duration_seconds_sum{name="again"}"#), "3", "not 5, since the first add");
}

#[tokio::test(start_paused = true)]
async fn metrics_have_upstreams_names_labels_and_meaning() {
    let (registry, metrics) = registry();
    let queue = queue("replicaset", &metrics);
    queue.add_all(&["a", "b", "c", "d"], Priority::Live);
    queue.add("a", Priority::Live); // waits already: not counted
    queue.add_after("e", Duration::from_secs(3600)); // delayed: not in the depth
    sleep(Duration::from_secs(2)).await;
    let a = take(&queue).await;
    let b = take(&queue).await;
    queue.add("a", Priority::Live); // held: counted, and in the depth
    sleep(Duration::from_secs(3)).await;
    a.done();
    let c = take(&queue).await;
    sleep(Duration::from_secs(1)).await;

    let text = text(&registry);
    for (metric, want) in [
        ("workqueue_adds_total", "5"),
        ("workqueue_depth", "2"),
        ("workqueue_retries_total", "1"),
        ("workqueue_unfinished_work_seconds", "5"),
        ("workqueue_longest_running_processor_seconds", "4"),
        ("workqueue_queue_duration_seconds_count", "3"),
        ("workqueue_queue_duration_seconds_sum", "9"),
        ("workqueue_work_duration_seconds_count", "1"),
        ("workqueue_work_duration_seconds_sum", "3"),
    ] {
        assert_eq!(line(&text, &format!(r#"{metric}{{name="replicaset"}}"#)), want, "{metric}");
    }
    drop((b, c));
}

#[tokio::test(start_paused = true)]
async fn metrics_have_upstreams_types_and_help_texts() {
    let (registry, metrics) = registry();
    let _queue = queue("replicaset", &metrics);
    let text = text(&registry);
    for (metric, kind, help) in [
        ("workqueue_adds_total", "counter", "[BETA] Total number of adds handled by workqueue"),
        ("workqueue_depth", "gauge", "[BETA] Current depth of workqueue"),
        (
            "workqueue_longest_running_processor_seconds",
            "gauge",
            "[BETA] How many seconds has the longest running processor for workqueue been running.",
        ),
        (
            "workqueue_queue_duration_seconds",
            "histogram",
            "[BETA] How long in seconds an item stays in workqueue before being requested.",
        ),
        ("workqueue_retries_total", "counter", "[BETA] Total number of retries handled by workqueue"),
        (
            "workqueue_unfinished_work_seconds",
            "gauge",
            "[BETA] How many seconds of work has done that is in progress and hasn't been observed by work_duration. \
             Large values indicate stuck threads. One can deduce the number of stuck threads by observing the rate \
             at which this increases.",
        ),
        (
            "workqueue_work_duration_seconds",
            "histogram",
            "[BETA] How long in seconds processing an item from workqueue takes.",
        ),
    ] {
        assert_eq!(line(&text, &format!("# TYPE {metric} ")), kind);
        assert_eq!(line(&text, &format!("# HELP {metric} ")), help);
    }
}

#[test]
fn buckets_are_upstreams_to_the_last_bit() {
    let bounds = [1e-08, 1e-07, 1e-06, 9.999999999999999e-06, 9.999999999999999e-05, 0.001, 0.01, 0.1, 1.0, 10.0];
    assert_eq!(Histogram::bounds(), bounds);
}

#[test]
fn a_duration_is_counted_in_the_bucket_it_does_not_exceed() {
    for (nanos, bucket) in [
        (0, 0),
        (1, 0),
        (10, 0),
        (11, 1),
        (100, 1),
        (101, 2),
        (1_000_000_000, 8),
        (1_000_000_001, 9),
        (10_000_000_000, 9),
        (10_000_000_001, 10),
        (u64::MAX, 10),
    ] {
        let mut histogram = Histogram::default();
        histogram.observe(Duration::from_nanos(nanos));
        let below: Vec<u64> = histogram.cumulative().map(|(_, count)| count).collect();
        let want: Vec<u64> = (0..10).map(|at| u64::from(at >= bucket)).collect();
        assert_eq!((below, histogram.count()), (want, 1), "{nanos} ns");
        assert_eq!(histogram.sum(), Duration::from_nanos(nanos));
    }
}

#[tokio::test(start_paused = true)]
async fn queues_of_one_name_are_shown_as_one_and_counters_outlive_them() {
    let (registry, metrics) = registry();
    let first = queue("job", &metrics);
    let second = queue("job", &metrics);
    first.add_all(&["a", "b"], Priority::Live);
    second.add("a", Priority::Live);
    assert_eq!(line(&text(&registry), r#"workqueue_adds_total{name="job"}"#), "3");
    assert_eq!(line(&text(&registry), r#"workqueue_depth{name="job"}"#), "3");
    drop(first);
    assert_eq!(line(&text(&registry), r#"workqueue_adds_total{name="job"}"#), "3", "counters never go back");
    assert_eq!(line(&text(&registry), r#"workqueue_depth{name="job"}"#), "1", "gauges do");
}

#[test]
fn a_key_that_is_due_is_in_the_depth_even_if_no_worker_waits_for_it() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let (registry, metrics) = registry();
        let queue = queue("job", &metrics);
        queue.add_after("a", Duration::from_secs(1));
        assert_eq!(line(&text(&registry), r#"workqueue_depth{name="job"}"#), "0");
        sleep(Duration::from_secs(1)).await;
        assert_eq!(line(&text(&registry), r#"workqueue_depth{name="job"}"#), "1");
    });
}

#[test]
fn a_queue_without_a_name_is_not_shown() {
    let (registry, metrics) = registry();
    let _queue = queue("", &metrics);
    assert_eq!(text(&registry), "");
}

#[test]
fn registries_are_apart_and_each_takes_one() {
    let (one, metrics) = registry();
    let (other, _) = registry();
    let _queue = queue("job", &metrics);
    assert!(text(&one).contains("job") && !text(&other).contains("job"));
    assert!(PrometheusMetrics::register(&one).is_err());
}

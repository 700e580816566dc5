//! The work queue through its public API, with Prometheus metrics on: one JSON object per line.
//!
//! Every figure is the best of several rounds after a warm-up: the machine's other work only ever adds to a round. The
//! same loops run on client-go's queue (`rig/bench/workqueue`); `cargo xtask bench workqueue` runs both, and what counts
//! is the ratio within one run.

// A benchmark measures the real clock.
#![allow(clippy::disallowed_methods)]

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use prometheus::Registry;
use steersman_workqueue::{Held, Priority, PrometheusMetrics, Queue, QueueOptions, limiter::Exponential};

type Key = Arc<str>;

/// Many short rounds: the more, the likelier one of them is undisturbed.
const ROUNDS: usize = 25;
const POOL: usize = 1_000;

fn main() {
    // `cargo test --benches` runs benchmarks too: there, once and briefly.
    let measure = std::env::args().any(|arg| arg == "--bench");
    let scale = if measure { 1 } else { 1_000 };

    add_get_done(200_000 / scale);
    dedup_add(500_000 / scale);
    dedup_add_all(500_000 / scale);
    rate_limited_cycle(200_000 / scale);
    delayed_add(100_000 / scale);
    contended(200_000 / scale);
}

/// One key at a time goes through: added, handed out, done.
fn add_get_done(ops: usize) {
    let keys = keys(POOL);
    let bench = Bench::new();
    report("add_get_done", ops, || {
        for at in 0..ops {
            bench.queue.add(&keys[at % POOL], Priority::Live);
            take(&bench.queue).done();
        }
    });
}

/// A key is added that waits already.
fn dedup_add(ops: usize) {
    let keys = keys(POOL);
    let bench = Bench::new();
    bench.queue.add_all(&keys, Priority::Live);
    report("dedup_add", ops, || {
        for at in 0..ops {
            bench.queue.add(&keys[at % POOL], Priority::Live);
        }
    });
}

/// The same, all keys in one call, as a resync does it.
fn dedup_add_all(ops: usize) {
    let keys = keys(POOL);
    let bench = Bench::new();
    bench.queue.add_all(&keys, Priority::Live);
    report("dedup_add_all", ops, || {
        for _ in 0..ops.div_ceil(POOL) {
            bench.queue.add_all(&keys, Priority::Live);
        }
    });
}

/// A key is added through the rate limiter (1 ns, so that it is due at once), handed out, and done, which forgets it.
fn rate_limited_cycle(ops: usize) {
    let keys = keys(POOL);
    let bench = Bench::new();
    report("rate_limited_cycle", ops, || {
        for at in 0..ops {
            bench.queue.add_rate_limited(&keys[at % POOL]);
            take(&bench.queue).done();
        }
    });
}

/// Distinct keys are added for an hour later, to a new queue each round.
fn delayed_add(ops: usize) {
    let keys = keys(ops);
    report_with("delayed_add", ops, Bench::new, |bench| {
        for key in &keys {
            bench.queue.add_after(key, Duration::from_secs(3600));
        }
    });
}

/// Four tasks on four threads, each adding keys of its own and taking whichever is next. No key comes twice: it would
/// be swallowed, and leave a task waiting.
fn contended(ops: usize) {
    const TASKS: usize = 4;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(TASKS).enable_time().build();
    let runtime = runtime.expect("the machine has threads");
    let keys = Arc::new(keys(ops));
    report_with("contended", ops, Bench::new, |bench| {
        let task = |own: usize| {
            let queue = bench.queue.clone();
            let keys = Arc::clone(&keys);
            runtime.spawn(async move {
                for key in keys.chunks(keys.len().div_ceil(TASKS)).nth(own).unwrap_or_default() {
                    queue.add(key, Priority::Live);
                    if let Some(item) = queue.next().await {
                        item.done();
                    }
                }
            })
        };
        for task in (0..TASKS).map(task).collect::<Vec<_>>() {
            runtime.block_on(task).expect("a task does not panic");
        }
    });
}

// === what the loops share ===

/// A queue with metrics, and the registry that keeps them in use.
struct Bench {
    queue: Queue<Key>,
    _registry: Registry,
}

impl Bench {
    fn new() -> Self {
        let registry = Registry::new();
        let metrics = PrometheusMetrics::register(&registry).expect("the registry is new");
        let limiter = Exponential::new(Duration::from_nanos(1), Duration::from_nanos(1));
        let options = QueueOptions::default().limiter(limiter).metrics(metrics);
        Self { queue: Queue::new("bench", options), _registry: registry }
    }
}

/// Keys as a cluster has them: 30 names in each namespace.
fn keys(count: usize) -> Vec<Key> {
    (0..count).map(|at| format!("namespace-{}/name-{at}", at / 30).into()).collect()
}

/// The next key, which is there or will be in a nanosecond.
fn take(queue: &Queue<Key>) -> Held<Key> {
    loop {
        if let Poll::Ready(Some(item)) = Pin::new(&mut queue.next()).poll(&mut Context::from_waker(Waker::noop())) {
            return item;
        }
    }
}

fn report(name: &str, ops: usize, mut round: impl FnMut()) {
    report_with(name, ops, || (), |()| round());
}

/// Runs rounds, of which only `round` is timed, and prints the best.
fn report_with<T>(name: &str, ops: usize, mut prepare: impl FnMut() -> T, mut round: impl FnMut(&T)) {
    let mut best = f64::INFINITY;
    for _ in 0..=ROUNDS {
        let prepared = prepare();
        let start = Instant::now();
        round(&prepared);
        best = best.min(start.elapsed().as_nanos() as f64 / ops.max(1) as f64);
        drop(prepared);
    }
    println!(r#"{{"bench":"{name}","value":{best:.1},"unit":"ns/op"}}"#);
}

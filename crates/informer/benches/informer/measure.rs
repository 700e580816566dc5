//! Time and memory.

use std::alloc::System;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Memory from one moment on. A thread looks at the allocator all the time, to see the peak.
pub(crate) struct Memory {
    held: usize,
    resident: usize,
    peak: Arc<AtomicUsize>,
    done: Arc<AtomicBool>,
    sampler: Option<JoinHandle<()>>,
}

/// Often enough for what takes milliseconds.
const SAMPLE: Duration = Duration::from_micros(20);

impl Memory {
    pub(crate) fn now() -> Self {
        let peak = Arc::new(AtomicUsize::new(0));
        let done = Arc::new(AtomicBool::new(false));
        let sampler = std::thread::spawn({
            let peak = Arc::clone(&peak);
            let done = Arc::clone(&done);
            move || {
                while !done.load(Ordering::Relaxed) {
                    peak.fetch_max(held(), Ordering::Relaxed);
                    #[allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
                    std::thread::sleep(SAMPLE);
                }
            }
        });
        Self { held: held(), resident: resident(), peak, done, sampler: Some(sampler) }
    }

    /// What is held beyond the beginning, what was held at the peak, and how much the process grew; in bytes.
    pub(crate) fn since(&self) -> (f64, f64, f64) {
        let peak = self.peak.load(Ordering::Relaxed).max(held());
        (beyond(held(), self.held), beyond(peak, self.held), beyond(resident(), self.resident))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        if let Some(sampler) = self.sampler.take() {
            sampler.join().expect("the sampler");
        }
    }
}

fn beyond(now: usize, before: usize) -> f64 {
    now as f64 - before as f64
}

/// Bytes that are allocated.
fn held() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}

/// Bytes of memory the process has, as Linux reports it.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()));
    pages.unwrap_or(0) * 4096
}

/// How long this thread has run, so that others on the machine disturb less; wall time where Linux does not report it.
#[allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub(crate) fn processor_time() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let reported = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = reported.and_then(|text| text.split(' ').next().and_then(|nanos| nanos.parse().ok()));
    nanos.map_or_else(|| START.elapsed(), Duration::from_nanos)
}

pub(crate) fn report(name: &str, value: f64, unit: &str, target: Option<f64>) {
    let target = target.map_or_else(|| "null".to_owned(), |target| target.to_string());
    println!(r#"{{"bench":"informer/{name}","value":{value:.3},"unit":"{unit}","target":{target}}}"#);
}

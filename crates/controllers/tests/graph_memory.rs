//! How much memory the garbage collector's graph takes. A test of its own, because it counts every allocation.

use std::alloc::System;
use std::time::Instant;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use steersman_controllers::garbage_collector::sample_graph;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// `docs/benchmarks.md` has what it takes; this keeps it from growing.
#[test]
#[allow(clippy::disallowed_methods, reason = "a measurement")]
fn a_graph_of_100_000_objects_takes_less_than_30_mb() {
    const OBJECTS: usize = 100_000;
    const BYTES_MAX: usize = 30 << 20;
    let region = Region::new(ALLOCATOR);
    let began = Instant::now();
    let graph = sample_graph(OBJECTS);
    let took = began.elapsed();
    let used = region.change();
    let bytes = used.bytes_allocated - used.bytes_deallocated;
    println!("{} objects: {:.1} MB, built in {took:?}", graph.len(), bytes as f64 / f64::from(1 << 20));
    assert_eq!(graph.len(), OBJECTS);
    assert!(bytes <= BYTES_MAX, "{bytes} bytes for {OBJECTS} objects: {} each", bytes / OBJECTS);
}

//! A fixed set of worlds, and the plans of worlds that failed once.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use steersman_sim::engine;
use steersman_sim::plan::{Plan, SMALL, generate};
use steersman_sim::report::Report;
use steersman_sim::trace::LINES_MAX;

/// A few small worlds, with the one below: what never came about in a run is told by `cargo xtask sim`.
const SEEDS: [u64; 3] = [1, 3, 4];
/// A world with faults.
const REPEATED: u64 = 2;

#[test]
fn the_same_seed_gives_the_same_trace_to_the_byte() {
    let plan = generate(REPEATED, SMALL);
    let first = engine::run(&plan, LINES_MAX);
    assert_eq!(first.violations, [], "--small --seed {REPEATED}");
    let second = std::thread::scope(|scope| scope.spawn(|| engine::run(&plan, LINES_MAX)).join().unwrap());
    for (line, again) in first.trace.lines().iter().zip(second.trace.lines()) {
        assert_eq!(line, again);
    }
    assert_eq!(first.trace.hash(), second.trace.hash());
    // Another process has other hashers and other addresses.
    let seed = REPEATED.to_string();
    let output = Command::new(env!("CARGO_BIN_EXE_steersman-sim"))
        .args(["--seed", &seed, "--small", "--no-shrink"])
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains(&format!("{:016x}", first.trace.hash())), "{text}");
}

#[test]
fn the_fixed_worlds_hold() {
    let plans: Vec<(String, Plan)> =
        SEEDS.iter().map(|seed| (format!("--small --seed {seed}"), generate(*seed, SMALL))).collect();
    run_all(&plans);
}

#[test]
fn worlds_that_failed_once_hold() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/found");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let read = |path: &std::path::PathBuf| {
        let name = format!("--plan crates/sim/tests/found/{}", path.file_name().unwrap().to_string_lossy());
        let plan = serde_json::from_str(&std::fs::read_to_string(path).unwrap());
        (name.clone(), plan.unwrap_or_else(|error| panic!("{name}: {error}")))
    };
    let plans: Vec<(String, Plan)> = paths.iter().map(read).collect();
    run_all(&plans);
}

/// Runs plans, two at a time. Fails with the first violation of each that fails.
fn run_all(plans: &[(String, Plan)]) -> Report {
    let next = AtomicUsize::new(0);
    let report = Mutex::new(Report::default());
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((name, plan)) = plans.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = engine::run(plan, 0);
                    report.lock().add(&outcome);
                    if let Some(violation) = outcome.violations.first() {
                        let text = format!(
                            "{}: {}\n  again with: cargo xtask sim {name}",
                            violation.invariant, violation.text
                        );
                        failures.lock().push(text);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    report.into_inner()
}

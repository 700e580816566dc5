//! `cargo xtask sim`: runs worlds.

use steersman_sim::{engine, plan};

fn main() {
    let seed = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1);
    let plan = plan::generate(seed);
    let outcome = engine::run(&plan, 1000);
    for line in outcome.trace.lines() {
        println!("{line}");
    }
    println!("{:?} {:?} {:?}", outcome.violations, outcome.faults, outcome.operations);
    println!("{} writes, hash {:016x}", outcome.writes, outcome.trace.hash());
}

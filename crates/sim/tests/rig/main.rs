//! The short form of `cargo xtask k8s chaos`: our managers alone, for about a minute.

use std::path::PathBuf;
use std::time::Duration;

use steersman_sim::chaos::managers::Kind;
use steersman_sim::chaos::{Options, cli, run};

const SEED: u64 = 1;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_on_a_real_api_server_breaks_no_invariant_and_passes_without_trace() {
    let scratch = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("chaos-{}", std::process::id()));
    let options = Options {
        kind: Kind::Ours,
        seed: SEED,
        storm: Duration::from_secs(30),
        heals_within: Duration::from_secs(120),
        rest: Duration::from_secs(10),
        program: env!("CARGO_BIN_EXE_steersman-chaos").into(),
        scratch: scratch.clone(),
    };
    let outcome = run(&options).await.unwrap();
    assert!(
        cli::is_well(&outcome),
        "healed after {:?} ms, {} writes at rest; logs are in {}:\n{}",
        outcome.healed_after,
        outcome.writes_at_rest,
        scratch.display(),
        outcome.violations.join("\n")
    );
    assert!(outcome.changes > 100, "only {} changes were seen", outcome.changes);
    std::fs::remove_dir_all(scratch).unwrap();
}

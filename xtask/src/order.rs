//! `cargo xtask order`: in which order a manager calls its functions for the first time.
//!
//! Written to [`FILE`], by which the linker lays the program out (`crates/steersman/build.rs` says why). To be run again when the
//! compiler or many functions have changed; what has not been found by then is merely where it would be without.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::failure::{Failure, Result};
use crate::{bench, process, workspace};

const FILE: &str = "crates/steersman/first-calls.txt";
const RECORDER: &str = "xtask/src/order/first_calls.c";

/// A manager as kubeadm starts it, until it has asked a second time which resources there are.
const IDLE: &str = r#"
"$PROGRAM" controller-manager --kubeconfig="$STEERSMAN_RIG_DIR/controller-manager.kubeconfig" --controllers='*' --allow-missing \
  --use-service-account-credentials --service-account-private-key-file="$STEERSMAN_RIG_DIR/sa.key" \
  --root-ca-file="$STEERSMAN_RIG_DIR/ca.crt" --bind-address=127.0.0.1 --secure-port="$PORT" --cert-dir="$CERTIFICATES" 2>/dev/null &
sleep 40
kill $!
wait $!
"#;

pub(crate) fn run(args: &[String]) -> Result<()> {
    if let Some(unknown) = args.first() {
        return Err(Failure::error(format!("`order` takes no argument, and `{unknown}` is one")));
    }
    let scratch = std::env::temp_dir().join(format!("steersman-order-{}", std::process::id()));
    fs::create_dir_all(&scratch).map_err(Failure::io("making", &scratch))?;
    let outcome = record(&scratch);
    let _ = fs::remove_dir_all(&scratch);
    let order = outcome?;
    let path = workspace::root().join(FILE);
    fs::write(&path, order.join("\n") + "\n").map_err(Failure::io("writing", &path))?;
    println!("{} functions in {FILE}; the next release build uses it", order.len());
    Ok(())
}

fn record(scratch: &Path) -> Result<Vec<String>> {
    let load = bench::load()?;
    // As users get it, but with its symbols.
    let build = ["rustc", "--release", "--package", "steersman", "--bin", "steersman", "--", "-Cstrip=none"];
    process::run(&mut process::cargo(build))?;
    let program = load.parent().and_then(Path::parent).map(|dir| dir.join("steersman"));
    let program = program.ok_or_else(|| Failure::error(format!("{} is nowhere", load.display())))?;
    let recorder = scratch.join("first_calls.so");
    let source = workspace::root().join(RECORDER);
    process::run(Command::new("cc").args(["-shared", "-fPIC", "-O2", "-o"]).arg(&recorder).arg(source))?;

    let mut order = Vec::new();
    let mut known = HashSet::new();
    let (idle, work): (&[&str], &[&str]) = (&["sh", "-c", IDLE], &["--bench", "rig", "ours", "--quick"]);
    for (name, command) in [("idle", idle), ("work", work)] {
        let calls = scratch.join(name);
        let this = std::env::current_exe().map_err(|error| Failure::error(format!("who am I: {error}")))?;
        let mut run = Command::new(this);
        run.args(["k8s", "run", "--", "env"]).arg(format!("LD_PRELOAD={}", recorder.display()));
        run.arg(format!("FIRST_CALLS={}", calls.display())).arg(format!("FIRST_CALLS_OF={}", program.display()));
        run.arg(format!("PROGRAM={}", program.display())).arg(format!("CERTIFICATES={}", scratch.display()));
        run.arg(format!("PORT={}", free_port()?));
        if name == "work" {
            run.arg(&load);
        }
        process::run(run.args(command))?;
        let calls = fs::read_to_string(&calls).map_err(Failure::io("reading", &calls))?;
        order.extend(calls.lines().filter(|name| known.insert((*name).to_owned())).map(str::to_owned));
    }
    Ok(order)
}

fn free_port() -> Result<u16> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
    listener.map(|address| address.port()).map_err(|error| Failure::error(format!("no port is free: {error}")))
}

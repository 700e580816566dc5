//! Every example as a program, unchanged: on `steersman up` and on kube-apiserver. (`cargo test` runs them on test clusters.)

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use steersman_testing::Failure;
use tokio::process::Command;

use crate::up::Up;

/// From the start of an example to its end; they take seconds.
const PATIENCE: Duration = Duration::from_secs(120);

/// The examples, and what each says when all goes well.
const EXAMPLES: [(&str, &[&str]); 9] = [
    ("example-cache-bypass", &["3 config maps have a number of their own"]),
    ("example-crd-controller", &["ordered cake sponge", "its recipe: ", "the lease is given back"]),
    ("example-manual-trigger", &["the answer is 202 Accepted", "looked at shop/cake"]),
    ("example-metadata-only", &["the secret is of team nobody"]),
    ("example-operator", &["refused: ", "created site shop with Some(2) replicas", "the lease is given back"]),
    ("example-owner-watch", &["a pod owns 1 config map"]),
    ("example-pod-watcher", &["is new, at version", "is gone"]),
    ("example-queue-worker", &["giving up after 5 retries"]),
    ("example-test-cluster", &["marked: true"]),
];

/// Runs an example in the cluster of a kubeconfig.
async fn run(name: &str, kubeconfig: &Path) -> Result<String, Failure> {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_steersman")).with_file_name(name);
    if !program.exists() {
        return Err(Failure::new(format!("{} is missing: run me with `cargo xtask k8s test`", program.display())));
    }
    let running = Command::new(program)
        .env("KUBECONFIG", kubeconfig)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(PATIENCE, running).await.map_err(|_| Failure::new("it does not end"))??;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(said);
    }
    Err(Failure::new(format!("{}: {said}{}", output.status, String::from_utf8_lossy(&output.stderr))))
}

/// Runs all examples one after the other; returns what went wrong.
async fn run_all(place: &str, kubeconfig: &Path) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, sentences) in EXAMPLES {
        match run(name, kubeconfig).await {
            Ok(said) => {
                let missing = sentences.iter().filter(|sentence| !said.contains(**sentence));
                wrong.extend(missing.map(|sentence| format!("{name} on {place} does not say {sentence:?}:\n{said}")));
            }
            Err(failure) => wrong.push(format!("{name} on {place}: {failure:?}")),
        }
    }
    wrong
}

#[tokio::test]
async fn every_example_runs_on_up() -> Result<(), Failure> {
    let up = Up::whole().await?;
    let wrong = run_all("up", &up.kubeconfig).await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[tokio::test]
async fn every_example_runs_on_kube_apiserver() {
    let kubeconfig = std::env::var("STEERSMAN_RIG_KUBECONFIG").expect("run me with `cargo xtask k8s test`");
    // Their controllers look after all namespaces, as managers of other tests do.
    let _alone = crate::ALONE.lock().await;
    let wrong = run_all("the rig", Path::new(&kubeconfig)).await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_example_that_is_a_program_is_in_the_table() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let entries = std::fs::read_dir(folder).expect("the examples");
    let programs = entries.flatten().filter(|entry| entry.path().join("Cargo.toml").exists());
    let mut names: Vec<String> =
        programs.map(|entry| format!("example-{}", entry.file_name().to_string_lossy())).collect();
    names.sort();
    assert_eq!(names, EXAMPLES.map(|(name, _)| name));
}

//! All 49 controllers at once, on a server that has what they need: the Go program and ours, with the same flags.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use http::Method;
use kube::Client;
use serde_json::Value;
use steersman_controllers::table;
use steersman_testing::rig::{Process, Rig, Setup, free_port, programs};
use steersman_testing::{Failure, expect, expect_eq};

use crate::manager::{ask, shown, until, wanted};

/// Every controller of kube-controller-manager.
pub(crate) fn names() -> BTreeSet<&'static str> {
    table::rows().iter().map(|row| row.name).collect()
}

/// Starts a server for a test.
pub(crate) async fn start(test: &str, setup: Setup) -> Result<Rig, Failure> {
    Rig::start(env!("CARGO_TARGET_TMPDIR"), test, setup).await
}

/// Returns the output of kubectl, for the administrator.
pub(crate) fn kubectl(rig: &Rig, args: &[&str]) -> Result<String, Failure> {
    let output = Command::new(programs()?.join("kubectl"))
        .arg(format!("--kubeconfig={}", rig.kubeconfig().display()))
        .args(args)
        .stdin(Stdio::null())
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    expect(output.status.success(), &format!("kubectl {} succeeds", args.join(" ")), &said)?;
    Ok(String::from_utf8(output.stdout)?)
}

/// Starts a manager with a log of this name, and returns it with the administrator's client of its secure port.
pub(crate) async fn start_manager(
    rig: &Rig,
    name: &str,
    program: &Path,
    first: &[&str],
    flags: Vec<String>,
) -> Result<(Process, Client), Failure> {
    let port = free_port()?;
    let mut args: Vec<String> = first.iter().map(ToString::to_string).collect();
    args.extend(flags);
    args.extend([
        format!("--secure-port={port}"),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--cert-dir={}", rig.scratch().join("certificates").display()),
        "--v=1".to_owned(),
    ]);
    let process = rig.spawn(name, program, &args)?;
    Ok((process, rig.client_of_port(port).await?))
}

/// Starts ours with the flags of the set-up.
pub(crate) async fn start_ours(rig: &Rig) -> Result<(Process, Client), Failure> {
    let flags = rig.manager_flags();
    start_manager(rig, "ours", Path::new(env!("CARGO_BIN_EXE_steersman")), &["controller-manager"], flags).await
}

/// The lines of a manager's log that report errors or refusals.
pub(crate) fn errors(said: &str) -> Vec<&str> {
    said.lines().filter(|line| line.starts_with('E') || line.contains("forbidden: User")).collect()
}

/// Waits until a page answers with success, and returns its text.
pub(crate) async fn until_answered(process: &Process, port: &Client, path: &str) -> Result<String, Failure> {
    let look = || async {
        let answer = ask(port, Method::GET, path, "").await;
        Ok(shown(answer).and_then(|seen| wanted(seen, |(status, _)| *status == 200)))
    };
    let answer = until(&format!("{path} answers"), look).await.map_err(|failure| {
        let said = process.said().unwrap_or_default();
        let last: Vec<_> = said.lines().rev().take(20).collect();
        Failure::new(format!("{failure:?}; the last lines, newest first: {last:#?}"))
    });
    Ok(answer?.1)
}

#[tokio::test]
async fn the_go_program_runs_all_49_with_the_flags_of_the_set_up() -> Result<(), Failure> {
    let rig = start("all-of-go", Setup::ALL_CONTROLLERS).await?;
    let program = programs()?.join("kube-controller-manager");
    let (process, port) = start_manager(&rig, "go", &program, &[], rig.manager_flags()).await?;
    until_answered(&process, &port, "/healthz").await?;
    // Every controller that is built has a check, and says so when it starts; it is healthy before that, too.
    let look = || async {
        let (_, page) = ask(&port, Method::GET, "/healthz?verbose", "").await?;
        let said = process.said()?;
        let is_started = |name: &&str| {
            page.lines().any(|line| line == format!("[+]{name} ok"))
                && said.contains(&format!("\"Controller starting...\" controller=\"{name}\""))
        };
        let not_started: Vec<_> = names().into_iter().filter(|name| !is_started(name)).collect();
        Ok(wanted(not_started, Vec::is_empty))
    };
    until("all are started", look).await.map(drop)
}

#[tokio::test]
async fn ours_runs_all_49_with_the_same_flags() -> Result<(), Failure> {
    let rig = start("all-of-ours", Setup::ALL_CONTROLLERS).await?;
    let (process, port) = start_ours(&rig).await?;
    // It leads, and every cache is synced.
    until_answered(&process, &port, "/readyz").await?;
    let page: Value = serde_json::from_str(&until_answered(&process, &port, "/debug/controllers").await?)?;
    let entries = page["controllers"].as_array().cloned().unwrap_or_default();
    let enabled: BTreeSet<_> =
        entries.iter().filter(|entry| entry["state"] == "enabled").filter_map(|entry| entry["name"].as_str()).collect();
    expect_eq("the controllers that run", &enabled, &names())?;
    expect_eq("errors", &errors(&process.said()?), &Vec::new())
}

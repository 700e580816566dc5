//! The peer that is a server: the same program, run inside the rig (`cargo xtask k8s run`).

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{Measurement, parse};
use crate::failure::{Failure, Result};
use crate::process;

/// The message of rigd on standard error when both servers are ready, before the duration.
const READY: &str = "kube-apiserver ready in ";

/// Where a benchmark finds the program that it runs beside our own.
pub(super) const PEER: &str = "STEERSMAN_BENCH_PEER";

/// Runs a program in a rig: what it measured, and as the bench `start` how long the rig took to start, which only the rig
/// itself can know.
pub(super) fn measure(
    program: &PathBuf,
    start: Option<&str>,
    environment: &[(&str, PathBuf)],
) -> Result<Vec<Measurement>> {
    let this = std::env::current_exe().map_err(|error| Failure::error(format!("who am I: {error}")))?;
    let mut command = Command::new(this);
    command.args(["k8s", "run", "--"]).arg(program).arg("--bench");
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    let shown = process::shown(&command);
    eprintln!("+ {shown}");
    let failed = |error: std::io::Error| Failure::error(format!("`{shown}`: {error}"));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(failed)?;
    let errors = child.stderr.take().map(BufReader::new);
    let errors = std::thread::spawn(move || {
        let mut ready = None;
        for line in errors.into_iter().flat_map(BufRead::lines).map_while(std::result::Result::ok) {
            eprintln!("{line}");
            ready = ready.or_else(|| ready_ms(&line));
        }
        ready
    });
    let mut output = String::new();
    if let Some(mut pipe) = child.stdout.take() {
        pipe.read_to_string(&mut output).map_err(failed)?;
    }
    let status = child.wait().map_err(failed)?;
    if !status.success() {
        return Err(Failure::error(format!("`{shown}` failed ({status})")));
    }
    let mut measurements = parse(&output);
    if let (Ok(Some(value)), Some(start)) = (errors.join(), start) {
        let bench = start.to_owned();
        let unit = "ms".to_owned();
        measurements.push(Measurement { bench, value, unit, of_peer: true });
    }
    Ok(measurements)
}

/// The program of a benchmark, compiled if need be: inside the rig nothing should be compiled, not even by accident.
pub(super) fn program(package: &str, target: &str) -> Result<PathBuf> {
    let mut cargo = process::cargo(["bench", "--package", package, "--bench", target, "--no-run"]);
    built(&mut cargo, package, target)
}

/// The program of a benchmark, compiled by this command of cargo.
pub(super) fn built(cargo: &mut Command, package: &str, target: &str) -> Result<PathBuf> {
    let output = process::output(cargo.arg("--message-format=json"))?;
    let messages = output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let found =
        messages.filter(|message| message["target"]["name"] == target && message["target"]["kind"][0] == "bench");
    found
        .filter_map(|message| message["executable"].as_str().map(PathBuf::from))
        .next_back()
        .ok_or_else(|| Failure::error(format!("cargo named no program for the benchmark `{target}` of {package}")))
}

fn ready_ms(line: &str) -> Option<f64> {
    duration_ms(line.split_once(READY)?.1.split_whitespace().next()?)
}

/// A duration as Go prints it: `4.62s`, `980ms`, `1m2.5s`.
fn duration_ms(text: &str) -> Option<f64> {
    if let Some(number) = text.strip_suffix("ms") {
        return number.parse().ok();
    }
    let (minutes, seconds) = text.strip_suffix('s')?.split_once('m').unwrap_or(("0", text.strip_suffix('s')?));
    let minutes: f64 = minutes.parse().ok()?;
    let seconds: f64 = seconds.parse().ok()?;
    Some((minutes * 60.0 + seconds) * 1e3)
}

#[cfg(test)]
mod tests {
    use super::ready_ms;

    #[test]
    fn the_start_of_the_rig_is_read_from_what_it_says() {
        for (line, want) in [
            ("rig: kube-apiserver ready in 4.62s at https://127.0.0.1:1", Some(4620.0)),
            ("rig: kube-apiserver ready in 980ms at https://127.0.0.1:1", Some(980.0)),
            ("rig: kube-apiserver ready in 1m2.5s at https://127.0.0.1:1", Some(62_500.0)),
            ("rig: kube-apiserver ready in time", None),
            ("rig: something else", None),
        ] {
            assert_eq!(ready_ms(line), want, "{line}");
        }
    }
}

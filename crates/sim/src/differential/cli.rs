//! The command line behind `cargo xtask k8s differential` and `cargo xtask k8s churn`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use steersman_testing::Failure;

use super::churn::{self, Churned};
use super::report;
use super::side::{Setting, name};
use super::{Options, Outcome};
use crate::chaos::managers::Kind;
use crate::report::insert;

const USAGE: &str = "\
usage: steersman-differential compare --seed S --sequences N --scratch DIR [--only FAMILY,...] [--controllers LIST]
       steersman-differential table [--save] FILE...
       steersman-differential churn --seed S --minutes N --scratch DIR [--ours-only] [--save]
       steersman-differential controller-manager FLAGS...

`cargo xtask k8s differential` and `cargo xtask k8s churn` run these.";

const DOCUMENT: &str = "docs/differential.md";

/// Runs the command of the arguments.
#[must_use]
pub fn run(args: &[String]) -> ExitCode {
    let done = match args.split_first() {
        Some((command, rest)) if command == "compare" => compared(&Arguments(rest)),
        Some((command, rest)) if command == "table" => table(rest),
        Some((command, rest)) if command == "churn" => churned(&Arguments(rest)),
        _ => Err(Failure::new(USAGE)),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("{failure:?}");
            ExitCode::from(2)
        }
    }
}

struct Arguments<'a>(&'a [String]);

// === impl Arguments ===

impl Arguments<'_> {
    fn value(&self, name: &str) -> Option<&String> {
        let at = self.0.iter().position(|arg| arg == name)?;
        self.0.get(at + 1)
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|arg| arg == name)
    }

    fn number(&self, name: &str) -> Result<u64, Failure> {
        let number = self.value(name).and_then(|text| text.parse().ok());
        number.ok_or_else(|| Failure::new(format!("{name} needs a number\n\n{USAGE}")))
    }

    fn setting(&self) -> Result<Setting, Failure> {
        let scratch =
            self.value("--scratch").ok_or_else(|| Failure::new(format!("--scratch is missing\n\n{USAGE}")))?;
        Ok(Setting {
            program: std::env::current_exe()?,
            scratch: PathBuf::from(scratch),
            controllers: self.value("--controllers").cloned(),
        })
    }
}

/// Runs sequences, keeps the outcome, and says what was found.
fn compared(args: &Arguments<'_>) -> Result<bool, Failure> {
    let only = args.value("--only").map(|names| names.split(',').map(str::to_owned).collect()).unwrap_or_default();
    let options = Options {
        seed: args.number("--seed")?,
        sequences: args.number("--sequences")?,
        only,
        setting: args.setting()?,
    };
    let outcome = runtime()?.block_on(super::run(&options))?;
    std::fs::write(options.setting.scratch.join("outcome.json"), serde_json::to_vec_pretty(&outcome)?)?;
    Ok(tell(&outcome))
}

/// Prints what was found. Returns whether that is nothing.
fn tell(outcome: &Outcome) -> bool {
    let findings = report::findings(outcome);
    for finding in &findings {
        println!("{}", report::told(finding));
    }
    for refused in &outcome.refused {
        println!("our manager has no right to: {refused}");
    }
    println!(
        "seed {}: {} requests of users, {} objects and kinds of events compared, {} waits without quiet, {} second looks, {} differences, {} of them findings",
        outcome.seed,
        outcome.requests,
        outcome.compared,
        outcome.restless,
        outcome.looked_again,
        outcome.differences.len(),
        findings.len()
    );
    findings.is_empty() && outcome.refused.is_empty()
}

/// Prints the tables of outcomes; with `--save`, writes them to the document. Entries of the table of allowed differences that no
/// outcome uses are told.
fn table(args: &[String]) -> Result<bool, Failure> {
    let files = args.iter().filter(|arg| *arg != "--save");
    let outcomes: Vec<Outcome> = files.map(|file| read(Path::new(file))).collect::<Result<_, _>>()?;
    let text = report::tables(&outcomes);
    println!("{text}");
    for (allowed, uses) in super::allowed::ALLOWED.iter().zip(report::uses(&outcomes)) {
        if uses == 0 {
            println!("not used: {} {} {}: {}", allowed.about, allowed.name, allowed.path, allowed.why);
        }
    }
    if args.iter().any(|arg| arg == "--save") {
        save("differential", &text)?;
    }
    Ok(outcomes.iter().all(|outcome| report::findings(outcome).is_empty()))
}

fn read(file: &Path) -> Result<Outcome, Failure> {
    let text = std::fs::read(file).map_err(|error| Failure::new(format!("{}: {error}", file.display())))?;
    Ok(serde_json::from_slice(&text)?)
}

fn save(marker: &str, text: &str) -> Result<(), Failure> {
    let document = insert(&std::fs::read_to_string(DOCUMENT)?, marker, text).map_err(Failure::new)?;
    Ok(std::fs::write(DOCUMENT, document)?)
}

/// Lets both managers work, one after the other, and compares errors and memory.
fn churned(args: &Arguments<'_>) -> Result<bool, Failure> {
    let setting = args.setting()?;
    let lasts = Duration::from_secs(60 * args.number("--minutes")?);
    let seed = args.number("--seed")?;
    let runtime = runtime()?;
    let ours = runtime.block_on(churn::run(Kind::Ours, seed, lasts, &setting))?;
    std::fs::write(setting.scratch.join("churn-ours.json"), serde_json::to_vec_pretty(&ours)?)?;
    let mut all = vec![ours];
    if !args.has("--ours-only") {
        let go = runtime.block_on(churn::run(Kind::Go, seed, lasts, &setting))?;
        std::fs::write(setting.scratch.join("churn-go.json"), serde_json::to_vec_pretty(&go)?)?;
        all.push(go);
    }
    let text = tables(&all);
    println!("{text}");
    if args.has("--save") {
        save("churn", &text)?;
    }
    let beyond = match all.as_slice() {
        [ours, go] => ours.errors_beyond(go),
        _ => all[0].errors.keys().collect(),
    };
    for line in &beyond {
        println!("only ours: {line}");
    }
    if let Some((middle, last)) = all[0].grown() {
        println!("our memory grows: {middle} MiB in the middle third, {last} MiB in the last");
    }
    Ok(beyond.is_empty() && all[0].grown().is_none())
}

fn tables(all: &[Churned]) -> String {
    let mut text = String::from(
        "| manager | requests of users | error lines | kinds of them | CPU s | MiB, middle third | MiB at the end |\n|---|--:|--:|--:|--:|--:|--:|\n",
    );
    for churned in all {
        let last = churned.samples.last().copied().unwrap_or_default();
        let middle = churned.samples.get(churned.samples.len() / 2).copied().unwrap_or_default();
        text += &format!(
            "| {} | {} | {} | {} | {:.1} | {} | {} |\n",
            name(churned.kind),
            churned.requests,
            churned.errors.values().sum::<u64>(),
            churned.errors.len(),
            last.1,
            middle.2,
            last.2
        );
    }
    text
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

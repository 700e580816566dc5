//! The command line behind `cargo xtask k8s chaos`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use super::managers::Kind;
use super::table::{Outcome, happened, table};
use super::{Options, Problem};
use crate::report::insert;

const USAGE: &str = "\
usage: steersman-chaos storm --kind ours|go --seed S --seconds N --scratch DIR --out FILE
       steersman-chaos table [--save] FILE...
       steersman-chaos controller-manager FLAGS...

`cargo xtask k8s chaos` runs these inside a rig.";

const DOCUMENT: &str = "docs/reliability.md";
const MARKER: &str = "chaos";
/// Longer than any back-off that a storm of minutes can lead to.
const HEALS_WITHIN: Duration = Duration::from_secs(150);
const REST: Duration = Duration::from_secs(20);

/// Runs the command of the arguments.
#[must_use]
pub fn run(args: &[String]) -> ExitCode {
    let done = match args.split_first() {
        Some((command, rest)) if command == "storm" => storm(rest),
        Some((command, rest)) if command == "table" => tell(rest),
        _ => Err(Problem::new(USAGE)),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::from(2)
        }
    }
}

/// Runs one storm. The caller judges the outcome.
fn storm(args: &[String]) -> Result<bool, Problem> {
    let value = |name: &str| {
        let at = args.iter().position(|arg| arg == name);
        at.and_then(|at| args.get(at + 1)).ok_or_else(|| Problem::new(format!("{name} is missing\n\n{USAGE}")))
    };
    let number = |name: &str| {
        let text = value(name)?;
        text.parse::<u64>().map_err(|_| Problem::new(format!("{name}: {text:?} is no number")))
    };
    let kind = match value("--kind")?.as_str() {
        "ours" => Kind::Ours,
        "go" => Kind::Go,
        other => return Err(Problem::new(format!("--kind: {other:?} is neither ours nor go"))),
    };
    let options = Options {
        kind,
        seed: number("--seed")?,
        storm: Duration::from_secs(number("--seconds")?),
        heals_within: HEALS_WITHIN,
        rest: REST,
        program: std::env::current_exe()?,
        scratch: PathBuf::from(value("--scratch")?),
    };
    let out = PathBuf::from(value("--out")?);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let outcome = runtime.block_on(super::run(&options))?;
    std::fs::write(&out, serde_json::to_vec_pretty(&outcome)?)?;
    for violation in &outcome.violations {
        println!("{violation}");
    }
    Ok(true)
}

/// The table of outcomes. Fails if ours broke something, or did not heal.
fn tell(args: &[String]) -> Result<bool, Problem> {
    let files = args.iter().filter(|arg| *arg != "--save");
    let outcomes: Vec<Outcome> = files.map(|file| read(Path::new(file))).collect::<Result<_, _>>()?;
    let table = table(&outcomes);
    println!("{}\n{table}", happened(&outcomes));
    if args.iter().any(|arg| arg == "--save") {
        let about = outcomes
            .first()
            .map(|one| format!("A storm of {} s with the seed {}, and what came of it:", one.storm_seconds, one.seed));
        let text = format!("{}\n\n{table}", about.unwrap_or_default());
        let document = insert(&std::fs::read_to_string(DOCUMENT)?, MARKER, &text).map_err(Problem::new)?;
        std::fs::write(DOCUMENT, document)?;
    }
    Ok(outcomes.iter().filter(|outcome| outcome.kind == Kind::Ours).all(is_well))
}

fn read(file: &Path) -> Result<Outcome, Problem> {
    let text = std::fs::read(file).map_err(|error| Problem::new(format!("{}: {error}", file.display())))?;
    Ok(serde_json::from_slice(&text)?)
}

/// Whether nothing was broken, and all healed and was quiet.
#[must_use]
pub fn is_well(outcome: &Outcome) -> bool {
    outcome.violated() == 0 && outcome.healed_after.is_some() && outcome.writes_at_rest == 0
}

//! The command line of the simulator, behind `cargo xtask sim`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::engine::{self, Outcome};
use crate::exhaustive::{self, KINDS, Row};
use crate::invariants::Violation;
use crate::plan::{FULL, Plan, SMALL, Size, generate};
use crate::report::{Report, insert, peak_megabytes};
use crate::shrink::{self, shrink};
use crate::trace::LINES_MAX;

/// The command line.
#[derive(Clone, Debug)]
struct Args {
    /// One world, by its seed.
    seed: Option<u64>,
    /// One world, by its plan.
    plan: Option<PathBuf>,
    /// The first seed of many.
    first: u64,
    worlds: Option<u64>,
    minutes: Option<u64>,
    controllers: Vec<String>,
    exhaustive: bool,
    /// How many plans of each kind there are at most.
    points: Option<u64>,
    /// One long world, of so many hours.
    hours: Option<u64>,
    size: Size,
    /// Ends with the first failure.
    until_failure: bool,
    shrinks: bool,
    trace: Option<PathBuf>,
    save: bool,
    threads: usize,
    /// Zero counts are a failure.
    complete: bool,
}

/// A world that failed.
struct Failed {
    plan: Plan,
    violation: Violation,
    /// How many worlds had ended before.
    after: u64,
}

const USAGE: &str = "\
usage: cargo xtask sim [OPTIONS]

  --seed S             run the world of one seed, and make it small if it fails
  --plan FILE          run the world of a plan
  --minutes N          run random worlds for so long (1, unless told otherwise)
  --worlds N           run so many random worlds
  --first S            the seed of the first of them (1, unless told otherwise)
  --controllers A,B    with these controllers alone
  --small              worlds of ten minutes and 60 operations, as in the default suite
  --day                one world of 24 virtual hours, of --seed S (1, unless told otherwise)
  --hours N            one world of so many virtual hours
  --exhaustive         run the exhaustive plans: crash after each write, each event hidden, each past state shown
  --points N           with --exhaustive: so many plans of each kind at most, evenly spread
  --mutants            apply each patch of crates/sim/mutants, and tell after how many worlds it is found
  --mutant NAME        with --mutants: only the patches with this in their names
  --until-failure      end with the first world that fails
  --no-shrink          do not make failing worlds small
  --trace FILE         write the trace of the one world
  --threads N          how many worlds run at once (two, unless told otherwise)
  --complete           fail if an operation, a fault or an invariant never came about, in fewer than 40 worlds, too
  --save               write the tables to docs/reliability.md";

/// In this many worlds, a minute's worth, every operation, fault and invariant occurs: zero is a failure.
const COMPLETE_FROM: u64 = 40;
const DOCUMENT: &str = "docs/reliability.md";
/// Where plans of failing worlds go.
const PLANS: &str = "target/sim";
const HOURS_OF_A_DAY: u64 = 24;
/// How many lines of a trace are shown.
const SHOWN_LINES: usize = 25;

/// Runs the command of the arguments.
#[must_use]
pub fn run(args: &[String]) -> ExitCode {
    let args = match parse(args) {
        Ok(args) => args,
        Err(problem) => {
            eprintln!("{problem}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let is_well = if let Some(hours) = args.hours {
        long(&args, hours)
    } else if args.seed.is_some() || args.plan.is_some() {
        one(&args)
    } else if args.exhaustive {
        every(&args)
    } else {
        many(&args)
    };
    if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn parse(args: &[String]) -> Result<Args, String> {
    let mut parsed = Args {
        seed: None,
        plan: None,
        first: 1,
        worlds: None,
        minutes: None,
        controllers: Vec::new(),
        exhaustive: false,
        points: None,
        hours: None,
        size: FULL,
        until_failure: false,
        shrinks: true,
        trace: None,
        save: false,
        threads: 2,
        complete: false,
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().cloned().ok_or_else(|| format!("{arg} needs a value"));
        let number = |text: String| text.parse::<u64>().map_err(|_| format!("{arg}: {text:?} is no number"));
        match arg.as_str() {
            "--seed" => parsed.seed = Some(number(value()?)?),
            "--plan" => parsed.plan = Some(value()?.into()),
            "--first" => parsed.first = number(value()?)?,
            "--worlds" => parsed.worlds = Some(number(value()?)?),
            "--minutes" => parsed.minutes = Some(number(value()?)?),
            "--controllers" => parsed.controllers = value()?.split(',').map(str::to_owned).collect(),
            "--threads" => parsed.threads = usize::try_from(number(value()?)?).unwrap_or(1).max(1),
            "--trace" => parsed.trace = Some(value()?.into()),
            "--small" => parsed.size = SMALL,
            "--points" => parsed.points = Some(number(value()?)?),
            "--hours" => parsed.hours = Some(number(value()?)?),
            "--day" => parsed.hours = Some(HOURS_OF_A_DAY),
            "--exhaustive" => parsed.exhaustive = true,
            "--until-failure" => parsed.until_failure = true,
            "--no-shrink" => parsed.shrinks = false,
            "--complete" => parsed.complete = true,
            "--save" => parsed.save = true,
            other => return Err(format!("unknown option {other}")),
        }
    }
    Ok(parsed)
}

/// Wall time: how long people wait.
#[expect(clippy::disallowed_methods, reason = "worlds have their own time; this is that of whoever waits for them")]
fn now() -> Instant {
    Instant::now()
}

fn plan_of(args: &Args, seed: u64) -> Plan {
    let mut plan = generate(seed, args.size);
    plan.options.controllers.clone_from(&args.controllers);
    plan
}

/// One world: what happened in it, and a smaller one if it failed.
fn one(args: &Args) -> bool {
    let plan = match &args.plan {
        Some(path) => match read(path) {
            Ok(plan) => plan,
            Err(problem) => {
                eprintln!("{}: {problem}", path.display());
                return false;
            }
        },
        None => plan_of(args, args.seed.unwrap_or(1)),
    };
    let began = now();
    let outcome = engine::run(&plan, LINES_MAX);
    if let Some(path) = &args.trace {
        let text = outcome.trace.lines().join("\n");
        if let Err(error) = std::fs::write(path, text) {
            eprintln!("{}: {error}", path.display());
        }
    }
    println!(
        "{} operations, {} faults, {} writes, {} lines of trace {:016x}, {:.1} s",
        plan.operations.len(),
        plan.faults.len(),
        outcome.writes,
        outcome.trace.count(),
        outcome.trace.hash(),
        began.elapsed().as_secs_f64()
    );
    let Some(violation) = outcome.violations.first() else {
        println!("all invariants hold");
        return true;
    };
    let lines = outcome.trace.lines();
    for line in &lines[lines.len().saturating_sub(SHOWN_LINES)..] {
        println!("  {line}");
    }
    for violation in &outcome.violations {
        println!("{}", told(violation));
    }
    if args.shrinks && args.plan.is_none() {
        tell_smaller(&plan, violation);
    }
    false
}

/// One long world. Its trace is not kept.
fn long(args: &Args, hours: u64) -> bool {
    let began = now();
    let seed = args.seed.unwrap_or(1);
    let size = Size::of_hours(usize::try_from(hours).unwrap_or(1));
    let mut plan = generate(seed, size);
    plan.options.controllers.clone_from(&args.controllers);
    let outcome = engine::run(&plan, 0);
    let took = began.elapsed().as_secs_f64();
    let memory = peak_megabytes().map(|peak| format!(", {peak} MB of memory at most")).unwrap_or_default();
    let text = format!(
        "Seed {seed}: {hours} hours with {} operations and {} faults, {} writes checked, {} violations, in {took:.0} s{memory}.",
        plan.operations.len(),
        plan.faults.len(),
        outcome.writes,
        outcome.violations.len()
    );
    println!("{text}");
    for violation in &outcome.violations {
        println!("{}", told(violation));
    }
    let is_well = outcome.violations.is_empty();
    if args.save && is_well {
        save("day", &text);
    }
    is_well
}

pub(crate) fn told(violation: &Violation) -> String {
    format!("VIOLATED at r{}: {}: {}", violation.revision, violation.invariant.replace('_', " "), violation.text)
}

fn read(path: &Path) -> Result<Plan, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

/// Shrinks a failing plan, and prints how to run it.
fn tell_smaller(plan: &Plan, violation: &Violation) {
    let began = now();
    let shrunk = shrink(plan, violation, || began.elapsed() > shrink::PATIENCE);
    let path = Path::new(PLANS).join(format!("seed-{}.json", plan.seed));
    let text = serde_json::to_string_pretty(&shrunk.plan).unwrap_or_default();
    println!(
        "smaller, after {} worlds: {} operations and {} faults:\n{}",
        shrunk.worlds,
        shrunk.plan.operations.len(),
        shrunk.plan.faults.len(),
        serde_json::to_string(&shrunk.plan).unwrap_or_default()
    );
    match std::fs::create_dir_all(PLANS).and_then(|()| std::fs::write(&path, text)) {
        Ok(()) => println!("again with: cargo xtask sim --plan {}", path.display()),
        Err(error) => eprintln!("{}: {error}", path.display()),
    }
}

/// Random worlds, until the time is over.
fn many(args: &Args) -> bool {
    let began = now();
    let minutes = args.minutes.or_else(|| args.worlds.is_none().then_some(1));
    let deadline = minutes.map(|minutes| Duration::from_secs(60 * minutes));
    let next = AtomicU64::new(0);
    let report = Mutex::new(Report::default());
    let failed: Mutex<Vec<Failed>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..args.threads {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let is_over = args.worlds.is_some_and(|worlds| number >= worlds)
                        || deadline.is_some_and(|deadline| began.elapsed() >= deadline)
                        || args.until_failure && !failed.lock().is_empty();
                    if is_over {
                        return;
                    }
                    let plan = plan_of(args, args.first + number);
                    let outcome = engine::run(&plan, 0);
                    note(plan, outcome, &report, &failed);
                }
            });
        }
    });
    let report = report.into_inner();
    let failed = failed.into_inner();
    let figures = report.figures(began.elapsed());
    println!("{}\n{figures}", report.tables());
    let never = report.never();
    if !never.is_empty() {
        println!("never came about: {}", never.join(", "));
    }
    let mut by_invariant: BTreeMap<&str, Vec<&Failed>> = BTreeMap::new();
    for failure in &failed {
        by_invariant.entry(failure.violation.invariant).or_default().push(failure);
    }
    for (invariant, failures) in &by_invariant {
        let seeds: Vec<String> = failures.iter().take(8).map(|failure| failure.plan.seed.to_string()).collect();
        println!("{} × {}: seeds {}", failures.len(), invariant.replace('_', " "), seeds.join(", "));
    }
    if args.save {
        save("worlds", &format!("{figures}.\n\n{}", report.tables()));
    }
    if let Some(first) = failed.first() {
        println!("found after {} worlds", first.after);
        if args.shrinks {
            tell_smaller(&first.plan, &first.violation);
        }
    }
    // A few worlds, or a few controllers, cannot show everything.
    let is_long = report.worlds >= COMPLETE_FROM && args.controllers.is_empty() && args.size == FULL;
    failed.is_empty() && (never.is_empty() || !(args.complete || is_long))
}

fn note(plan: Plan, mut outcome: Outcome, report: &Mutex<Report>, failed: &Mutex<Vec<Failed>>) {
    let mut report = report.lock();
    report.add(&outcome);
    if outcome.violations.is_empty() {
        return;
    }
    let violation = outcome.violations.swap_remove(0);
    println!("seed {}: {}\n  again with: cargo xtask sim --seed {}", plan.seed, told(&violation), plan.seed);
    failed.lock().push(Failed { plan, violation, after: report.worlds });
}

/// The exhaustive plans.
fn every(args: &Args) -> bool {
    let began = now();
    let points_max = args.points.map_or(usize::MAX, |points| usize::try_from(points).unwrap_or(usize::MAX));
    let is_wanted = |name: &str| args.controllers.is_empty() || args.controllers.iter().any(|wanted| wanted == name);
    let work: Vec<_> = exhaustive::workloads().into_iter().filter(|work| is_wanted(work.controller)).collect();
    let jobs: Vec<_> = work.iter().flat_map(|work| KINDS.map(|kind| (work, kind))).collect();
    let next = AtomicU64::new(0);
    let report = Mutex::new(Report::default());
    let rows: Mutex<BTreeMap<usize, Row>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..args.threads {
            scope.spawn(|| {
                loop {
                    let number = usize::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap_or(usize::MAX);
                    let Some((work, kind)) = jobs.get(number) else { return };
                    let row = work.run(*kind, points_max, |_, outcome| report.lock().add(outcome));
                    println!("{}, {}: {} runs, {} failures", row.controller, kind.name(), row.runs, row.failures.len());
                    rows.lock().insert(number, row);
                }
            });
        }
    });
    let rows: Vec<Row> = rows.into_inner().into_values().collect();
    let table = exhaustive::table(&rows);
    println!("{table}\n{}", report.into_inner().figures(began.elapsed()));
    let mut is_well = true;
    for row in &rows {
        for (plan, why) in row.failures.iter().take(3) {
            is_well = false;
            let plan = serde_json::to_string(&plan.faults).unwrap_or_default();
            println!("{} ({}): {why}\n  {plan}", row.controller, row.kind.name());
        }
    }
    if args.save {
        save("exhaustive", &table);
    }
    is_well
}

/// Writes a part of the document.
fn save(marker: &str, text: &str) {
    let saved = std::fs::read_to_string(DOCUMENT)
        .map_err(|error| error.to_string())
        .and_then(|document| insert(&document, marker, text))
        .and_then(|document| std::fs::write(DOCUMENT, document).map_err(|error| error.to_string()));
    if let Err(problem) = saved {
        eprintln!("{DOCUMENT}: {problem}");
    }
}

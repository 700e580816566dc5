//! Exhaustive plans, after Sieve: for a small workload per controller, the manager is killed after each of its writes, each
//! event is hidden once, and each past state is shown once.

mod gist;
mod workloads;

use std::fmt::Write as _;

use crate::engine::{self, Outcome};
use crate::plan::{Fault, Millis, Options, Plan, Step, Target, Window, minutes, seconds};

pub use workloads::workloads;

/// A small workload for one controller.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The controller that it is for.
    pub controller: &'static str,
    /// The resources whose events it decides by.
    pub watches: &'static [&'static str],
    /// The resources whose objects are the same in the end, whatever happened on the way.
    pub results: &'static [&'static str],
    /// What users do.
    pub operations: Vec<Step>,
    /// The time after the last operation in which faults may act.
    pub settles: Millis,
}

/// What kind of plan it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The manager is killed after a write.
    CrashAfterEachWrite,
    /// Events of one resource are hidden from a moment on, until a new list.
    EachEventHidden,
    /// Lists of one resource show a past state.
    EachStateShownAgain,
}

/// A row of the table.
#[derive(Clone, Debug)]
pub struct Row {
    /// The controller.
    pub controller: &'static str,
    /// The kind of plan.
    pub kind: Kind,
    /// How many worlds there were.
    pub runs: u64,
    /// Those that failed, with why.
    pub failures: Vec<(Plan, String)>,
}

/// All kinds of plans.
pub const KINDS: [Kind; 3] = [Kind::CrashAfterEachWrite, Kind::EachEventHidden, Kind::EachStateShownAgain];

/// No workload has more writes or events; one with more never ends.
const POINTS_MAX: usize = 400;
/// The time in which most controllers have done what a workload is about.
const SETTLES: Millis = minutes(3);

// === impl Kind ===

impl Kind {
    /// The name in the table.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CrashAfterEachWrite => "crash after each write",
            Self::EachEventHidden => "each event hidden",
            Self::EachStateShownAgain => "each past state shown",
        }
    }
}

// === impl Workload ===

impl Workload {
    /// The world without a fault.
    #[must_use]
    pub fn plan(&self) -> Plan {
        let ends = self.operations.last().map_or(0, |step| step.at) + self.settles;
        let options = Options { nodes: 2, furnished: true, ends, latency_max: 2, ..Options::default() };
        Plan { seed: 1, options, operations: self.operations.clone(), faults: Vec::new() }
    }

    /// Runs every plan of a kind, or as many as wanted, evenly spread.
    #[must_use]
    pub fn run(&self, kind: Kind, points_max: usize, mut told: impl FnMut(&Plan, &Outcome)) -> Row {
        let mut row = Row { controller: self.controller, kind, runs: 0, failures: Vec::new() };
        let calm = engine::run(&self.plan(), crate::trace::LINES_MAX);
        if let Some(problem) = self.is_of_no_use(&calm) {
            row.failures.push((self.plan(), problem));
            return row;
        }
        let wanted = gist::of(&calm.objects, self.results);
        let faults = self.faults(kind, &calm);
        let every = faults.len().div_ceil(points_max.max(1)).max(1);
        for fault in faults.into_iter().step_by(every) {
            let mut plan = self.plan();
            plan.faults.push(fault);
            let outcome = engine::run(&plan, 0);
            told(&plan, &outcome);
            row.runs += 1;
            let violation =
                outcome.violations.first().map(|violation| format!("{}: {}", violation.invariant, violation.text));
            let other = || gist::difference(&wanted, &gist::of(&outcome.objects, self.results));
            if let Some(problem) = violation.or_else(other) {
                row.failures.push((plan, problem));
            }
        }
        row
    }

    /// Why a run without faults shows nothing: it fails, a user is refused, or the controller has nothing to do.
    fn is_of_no_use(&self, calm: &Outcome) -> Option<String> {
        if let Some(violation) = calm.violations.first() {
            return Some(format!("without a fault, {}: {}", violation.invariant, violation.text));
        }
        let mut lines = calm.trace.lines().iter();
        if let Some(refused) = lines.find(|line| line.contains(" refused: ")) {
            return Some(format!("without a fault, a user is refused: {refused}"));
        }
        (self.writes(calm) == 0).then(|| "without a fault, the controller writes nothing".to_owned())
    }

    /// How often the controller wrote, without events.
    fn writes(&self, calm: &Outcome) -> usize {
        let by_controller = format!("/{} ", self.controller);
        let is_write = |line: &&String| is_change(line) && line.contains(&by_controller) && !line.contains(" events ");
        calm.trace.lines().iter().filter(is_write).count()
    }

    /// One fault per point, read off a run without faults.
    fn faults(&self, kind: Kind, calm: &Outcome) -> Vec<Window> {
        let first = self.operations.first().map_or(0, |step| step.at);
        let plan = self.plan();
        let mut windows = Vec::new();
        match kind {
            Kind::CrashAfterEachWrite => {
                for writes in (1..).take(self.writes(calm).min(POINTS_MAX)) {
                    let on =
                        Target { manager: Some(0), controller: Some(self.controller.to_owned()), ..Target::default() };
                    let fault = Fault::Killed { writes, away: seconds(5) };
                    windows.push(Window { from: 0, to: plan.options.ends, on, fault });
                }
            }
            Kind::EachEventHidden | Kind::EachStateShownAgain => {
                for resource in self.watches {
                    let about = format!(" {resource} ");
                    let lines = calm.trace.lines().iter().filter(|line| is_change(line) && line.contains(&about));
                    let mut times: Vec<Millis> = lines.filter_map(|line| time_of(line)).collect();
                    times.retain(|at| *at >= first);
                    times.dedup();
                    for at in times.into_iter().take(POINTS_MAX) {
                        let on = Target { resource: Some((*resource).to_owned()), ..Target::default() };
                        windows.push(match kind {
                            Kind::EachEventHidden => {
                                Window { from: at, to: at + seconds(20), on, fault: Fault::WatchHides }
                            }
                            // The state right before this write is shown once more, some time after it.
                            _ => {
                                let from = at + seconds(15);
                                let fault = Fault::ListsFromThePast(from - at + 1);
                                Window { from, to: from + seconds(20), on, fault }
                            }
                        });
                    }
                }
            }
        }
        windows
    }
}

/// Whether a line of a trace tells of a write at the store.
fn is_change(line: &str) -> bool {
    line.split(' ').nth(1).is_some_and(|word| word.starts_with('r') && word[1..].parse::<u64>().is_ok())
}

/// The time of a line of a trace.
fn time_of(line: &str) -> Option<Millis> {
    let (seconds, micros) = line.split_once(' ')?.0.split_once('.')?;
    Some(seconds.parse::<Millis>().ok()? * 1000 + micros.parse::<Millis>().ok()? / 1000)
}

/// The table of all rows, in Markdown.
#[must_use]
pub fn table(rows: &[Row]) -> String {
    let mut text = "| controller | plan | runs | failures |\n|---|---|--:|--:|\n".to_owned();
    for row in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {} | {} | {} | {} |", row.controller, row.kind.name(), row.runs, row.failures.len());
    }
    text
}

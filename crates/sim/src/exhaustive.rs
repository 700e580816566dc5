//! Exhaustive plans, after Sieve: for a small workload per controller, the manager is killed after each of its writes, each
//! event is hidden once, and each past state is shown once.

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
    /// What users do.
    pub operations: Vec<Step>,
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
/// Every controller that is needed for the workloads runs in all of them.
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
        let ends = self.operations.last().map_or(0, |step| step.at) + SETTLES;
        let options = Options { nodes: 2, ends, latency_max: 2, ..Options::default() };
        Plan { seed: 1, options, operations: self.operations.clone(), faults: Vec::new() }
    }

    /// Runs every plan of a kind.
    #[must_use]
    pub fn run(&self, kind: Kind, mut told: impl FnMut(&Plan, &Outcome)) -> Row {
        let mut row = Row { controller: self.controller, kind, runs: 0, failures: Vec::new() };
        let calm = engine::run(&self.plan(), crate::trace::LINES_MAX);
        for fault in self.faults(kind, &calm) {
            let mut plan = self.plan();
            plan.faults.push(fault);
            let outcome = engine::run(&plan, 0);
            told(&plan, &outcome);
            row.runs += 1;
            if let Some(violation) = outcome.violations.first() {
                row.failures.push((plan, format!("{}: {}", violation.invariant, violation.text)));
            }
        }
        row
    }

    /// One fault per point, read off a run without faults.
    fn faults(&self, kind: Kind, calm: &Outcome) -> Vec<Window> {
        let first = self.operations.first().map_or(0, |step| step.at);
        let plan = self.plan();
        let by_controller = format!("/{} ", self.controller);
        let mut windows = Vec::new();
        match kind {
            Kind::CrashAfterEachWrite => {
                // The lines of the trace before the first operation are those of an empty cluster.
                let writes = calm.trace.lines().iter().filter(|line| line.contains(&by_controller)).count();
                for writes in (1..).take(writes.min(POINTS_MAX)) {
                    let on =
                        Target { manager: Some(0), controller: Some(self.controller.to_owned()), ..Target::default() };
                    let fault = Fault::Killed { writes, away: seconds(5) };
                    windows.push(Window { from: 0, to: plan.options.ends, on, fault });
                }
            }
            Kind::EachEventHidden | Kind::EachStateShownAgain => {
                for resource in self.watches {
                    let about = format!(" {resource} ");
                    let lines = calm.trace.lines().iter().filter(|line| line.contains(&about));
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

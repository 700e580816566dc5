//! What came of a storm, and two of them side by side.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::managers::Kind;
use crate::invariants::{Count, catalogue};

/// What came of a storm.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// Whose managers they were.
    pub kind: Kind,
    /// The seed.
    pub seed: u64,
    /// How long the storm lasted, in seconds.
    pub storm_seconds: u64,
    /// How many changes were judged.
    pub changes: u64,
    /// The number of changes without a known author.
    pub unknown: u64,
    /// How many managers were started.
    pub managers: usize,
    /// What users did, and how often the server accepted it.
    pub operations: BTreeMap<String, u64>,
    /// What went wrong, and how often it acted.
    pub faults: BTreeMap<String, u64>,
    /// How long it took until the state matched the specs, in milliseconds; none if it never did.
    pub healed_after: Option<u64>,
    /// How many requests of managers were accepted while all was at rest, and for how many seconds that was watched.
    pub writes_at_rest: u64,
    /// For how many seconds that was watched.
    pub rest_seconds: u64,
    /// Per invariant: checked, excused by staleness, excused otherwise, violated.
    pub invariants: BTreeMap<String, [u64; 4]>,
    /// What did not hold, in words; bounded.
    pub violations: Vec<String>,
}

/// The rows of the summary: a title, and the invariants that they sum up.
const ROWS: [(&str, &[&str]); 4] = [
    ("pods created beyond what was ever missing", &["at_most_the_needed_pods_are_created"]),
    (
        "available pods taken down below the floor",
        &["rolling_updates_keep_their_available_pods", "scaling_down_stops_at_the_wanted_number"],
    ),
    ("writes by a deposed leader", &["no_write_by_a_deposed_leader"]),
    (
        "services with wrong endpoints at rest",
        &["slices_are_those_of_the_pods", "endpoints_are_those_of_the_pods", "no_endpoints_without_a_service"],
    ),
];

// === impl Outcome ===

impl Outcome {
    /// The counts of an invariant as they are kept.
    #[must_use]
    pub fn counts(counts: &BTreeMap<&'static str, Count>) -> BTreeMap<String, [u64; 4]> {
        let row = |count: &Count| [count.checked, count.stale, count.excused, count.violated];
        counts.iter().map(|(name, count)| ((*name).to_owned(), row(count))).collect()
    }

    /// How often invariants were violated, all in all.
    #[must_use]
    pub fn violated(&self) -> u64 {
        self.invariants.values().map(|counts| counts[3]).sum()
    }

    fn sum(&self, names: &[&str]) -> [u64; 4] {
        let mut sum = [0; 4];
        for counts in names.iter().filter_map(|name| self.invariants.get(*name)) {
            for (sum, count) in sum.iter_mut().zip(counts) {
                *sum += count;
            }
        }
        sum
    }
}

/// Outcomes side by side, in Markdown.
#[must_use]
pub fn table(outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    let mut row = |title: &str, cell: &dyn Fn(&Outcome) -> String| {
        let cells: Vec<String> = outcomes.iter().map(cell).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {title} | {} |", cells.join(" | "));
    };
    row("", &|outcome| match outcome.kind {
        Kind::Ours => "Steersman".to_owned(),
        Kind::Go => "kube-controller-manager".to_owned(),
    });
    row("---", &|_| "--:".to_owned());
    row("changes judged", &|outcome| outcome.changes.to_string());
    row("changes whose author is not known", &|outcome| outcome.unknown.to_string());
    row("processes started", &|outcome| outcome.managers.to_string());
    for (title, names) in ROWS {
        row(title, &|outcome| told(outcome.sum(names)));
    }
    row("seconds to heal", &|outcome| match outcome.healed_after {
        Some(millis) => format!("{}.{}", millis / 1000, millis % 1000 / 100),
        None => "not in time".to_owned(),
    });
    row("writes at rest", &|outcome| format!("{} in {} s", outcome.writes_at_rest, outcome.rest_seconds));
    row("violations, all invariants", &|outcome| outcome.violated().to_string());
    let listed = |name: &str| ROWS.iter().any(|(_, names)| names.contains(&name));
    for (name, _) in catalogue().filter(|(name, _)| !listed(name)) {
        let is_of_interest = |outcome: &Outcome| {
            outcome.invariants.get(name).is_some_and(|[_, stale, _, violated]| *violated > 0 || *stale > 0)
        };
        if outcomes.iter().any(is_of_interest) {
            row(&name.replace('_', " "), &|outcome| told(outcome.sum(&[name])));
        }
    }
    text
}

/// Violations, what staleness excused, and out of how many.
fn told([checked, stale, excused, violated]: [u64; 4]) -> String {
    let mut text = violated.to_string();
    if stale > 0 {
        let _ = write!(text, " (+ {stale} stale)");
    }
    if excused > 0 {
        let _ = write!(text, " (+ {excused} excused)");
    }
    let _ = write!(text, " of {checked}");
    text
}

/// How often each operation and fault came about, side by side.
#[must_use]
pub fn happened(outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    for (title, of) in [
        ("fault", (|outcome: &Outcome| &outcome.faults) as fn(&Outcome) -> &BTreeMap<String, u64>),
        ("operation", |outcome| &outcome.operations),
    ] {
        let names: std::collections::BTreeSet<&String> =
            outcomes.iter().flat_map(|outcome| of(outcome).keys()).collect();
        for name in names {
            let counts: Vec<String> =
                outcomes.iter().map(|outcome| of(outcome).get(name).copied().unwrap_or(0).to_string()).collect();
            let _ = writeln!(text, "{title} {name}: {}", counts.join(", "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(kind: Kind, violated: u64) -> Outcome {
        let ledger = [("at_most_the_needed_pods_are_created".to_owned(), [10, 2, 0, violated])];
        Outcome {
            kind,
            seed: 1,
            storm_seconds: 60,
            changes: 100,
            unknown: 0,
            managers: 3,
            operations: BTreeMap::new(),
            faults: BTreeMap::new(),
            healed_after: (violated == 0).then_some(12_340),
            writes_at_rest: 0,
            rest_seconds: 20,
            invariants: ledger.into_iter().collect(),
            violations: Vec::new(),
        }
    }

    #[test]
    fn outcomes_stand_side_by_side_with_what_staleness_excused() {
        let text = table(&[outcome(Kind::Ours, 0), outcome(Kind::Go, 3)]);
        for line in [
            "|  | Steersman | kube-controller-manager |",
            "| pods created beyond what was ever missing | 0 (+ 2 stale) of 10 | 3 (+ 2 stale) of 10 |",
            "| seconds to heal | 12.3 | not in time |",
            "| violations, all invariants | 0 | 3 |",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}

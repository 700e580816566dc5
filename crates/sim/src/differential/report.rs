//! What two clusters came to, in words and as tables. Pure.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Outcome;
use super::allowed::{ALLOWED, allows};
use super::compare::Difference;

/// The differences that nothing allows.
#[must_use]
pub fn findings(outcome: &Outcome) -> Vec<&Difference> {
    outcome.differences.iter().filter(|difference| allows(difference).is_none()).collect()
}

/// How often each entry of the table was used.
#[must_use]
pub fn uses(outcomes: &[Outcome]) -> [usize; ALLOWED.len()] {
    let mut uses = [0; ALLOWED.len()];
    for at in outcomes.iter().flat_map(|outcome| &outcome.differences).filter_map(allows) {
        uses[at] += 1;
    }
    uses
}

/// One difference in a line.
#[must_use]
pub fn told(difference: &Difference) -> String {
    let Difference { area, about, name, path, ours, go } = difference;
    format!("{area:?} {about} {name} {path}: ours {ours}, Go {go}")
}

/// What was compared, what is meant to differ, and requests side by side, in Markdown.
#[must_use]
pub fn tables(outcomes: &[Outcome]) -> String {
    let sum = |of: fn(&Outcome) -> u64| outcomes.iter().map(of).sum::<u64>();
    let seeds: Vec<String> = outcomes.iter().map(|outcome| outcome.seed.to_string()).collect();
    let mut text = format!(
        "Seeds {}: {} sequences, {} requests of users, {} objects and kinds of events compared, {} findings.\n",
        seeds.join(", "),
        sum(|outcome| outcome.sequences),
        sum(|outcome| outcome.requests),
        sum(|outcome| outcome.compared),
        outcomes.iter().map(|outcome| findings(outcome).len()).sum::<usize>()
    );
    // Writing to a string cannot fail.
    let _ = writeln!(text, "\n| meant to differ | where | times | why |\n|---|---|--:|---|");
    for (allowed, uses) in ALLOWED.iter().zip(uses(outcomes)) {
        let what = if allowed.path.is_empty() { allowed.name } else { allowed.path };
        let _ = writeln!(text, "| `{}` | `{what}` | {uses} | {} |", allowed.about, allowed.why);
    }
    let _ = writeln!(text, "\n| requests | Steersman | kube-controller-manager |\n|---|--:|--:|");
    for (verb, (ours, go)) in by_verb(outcomes) {
        let _ = writeln!(text, "| {verb} | {ours} | {go} |");
    }
    text
}

/// The sums of requests by verb.
fn by_verb(outcomes: &[Outcome]) -> BTreeMap<String, (u64, u64)> {
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for outcome in outcomes {
        let verb = |what: &str| what.split(' ').next().unwrap_or_default().to_owned();
        for what in outcome.ours.0.keys() {
            sums.entry(verb(what)).or_default().0 += outcome.ours.sum(what);
        }
        for what in outcome.go.0.keys() {
            sums.entry(verb(what)).or_default().1 += outcome.go.sum(what);
        }
    }
    sums
}

//! What many worlds came to: counts, figures, tables.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use crate::engine::Outcome;
use crate::invariants::{self, Count, Judged};
use crate::plan::{Fault, Operation};

/// The sum over worlds.
#[derive(Debug, Default)]
pub struct Report {
    /// How many worlds there were.
    pub worlds: u64,
    /// How many of them failed.
    pub failures: u64,
    /// How many writes were checked.
    pub writes: u64,
    operations: BTreeMap<&'static str, u64>,
    faults: BTreeMap<&'static str, u64>,
    invariants: BTreeMap<&'static str, Count>,
}

// === impl Report ===

impl Report {
    /// Adds a world.
    pub fn add(&mut self, outcome: &Outcome) {
        self.worlds += 1;
        self.failures += u64::from(!outcome.violations.is_empty());
        self.writes += outcome.writes;
        for (name, count) in &outcome.operations {
            *self.operations.entry(name).or_default() += count;
        }
        for (name, count) in &outcome.faults {
            *self.faults.entry(name).or_default() += count;
        }
        for (name, count) in &outcome.invariants {
            let sum = self.invariants.entry(name).or_default();
            sum.checked += count.checked;
            sum.stale += count.stale;
            sum.excused += count.excused;
            sum.violated += count.violated;
        }
    }

    /// The names of the operations, faults and invariants that never came about.
    #[must_use]
    pub fn never(&self) -> Vec<&'static str> {
        let operations = Operation::NAMES.into_iter().filter(|name| !self.operations.contains_key(name));
        let faults = Fault::NAMES.into_iter().filter(|name| !self.faults.contains_key(name));
        let asked = |name: &&str| self.invariants.get(name).is_some_and(|count| count.checked > 0);
        let invariants = invariants::catalogue().map(|(name, _)| name).filter(|name| !asked(name));
        operations.chain(faults).chain(invariants).collect()
    }

    /// Returns how many worlds there were and how fast they ran. On a machine that does other work, too, the processor
    /// time per world is the figure to compare.
    #[must_use]
    pub fn figures(&self, took: Duration) -> String {
        let seconds = took.as_secs_f64().max(0.001);
        #[expect(clippy::cast_precision_loss, reason = "figures for people")]
        let worlds = self.worlds as f64;
        #[expect(clippy::cast_precision_loss, reason = "figures for people")]
        let writes = self.writes as f64;
        let mut text = format!(
            "{} worlds, {} failures, in {seconds:.0} s: {:.0} worlds per minute, {:.0} checked writes per second",
            self.worlds,
            self.failures,
            worlds * 60.0 / seconds,
            writes / seconds
        );
        if let Some(used) = processor_seconds()
            && self.worlds > 0
        {
            text.push_str(&format!("; {:.2} s of processor time per world", used / worlds));
        }
        text
    }

    /// The tables, in Markdown.
    #[must_use]
    pub fn tables(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ =
            writeln!(text, "| invariant | judged | checked | stale | excused | violated |\n|---|---|--:|--:|--:|--:|");
        for (name, judged) in invariants::catalogue() {
            let Count { checked, stale, excused, violated } = self.invariants.get(name).copied().unwrap_or_default();
            let judged = match judged {
                Judged::Store => "by the store",
                Judged::Shown => "by what was shown",
                Judged::Rest => "at rest",
            };
            let name = name.replace('_', " ");
            let _ = writeln!(text, "| {name} | {judged} | {checked} | {stale} | {excused} | {violated} |");
        }
        for (title, names, counts) in
            [("operation", &Operation::NAMES[..], &self.operations), ("fault", &Fault::NAMES[..], &self.faults)]
        {
            let _ = writeln!(text, "\n| {title} | times |\n|---|--:|");
            for name in names {
                let _ = writeln!(text, "| {name} | {} |", counts.get(name).copied().unwrap_or(0));
            }
        }
        text
    }
}

/// Returns the processor time that this process has used, where the system reports it.
fn processor_seconds() -> Option<f64> {
    /// Linux counts in hundredths of a second.
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program is in parentheses and may contain spaces; `utime` and `stime` are the 12th and 13th behind it.
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks: Vec<f64> = fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse().ok()).collect();
    Some(ticks.iter().sum::<f64>() / TICKS_PER_SECOND)
}

/// Returns the largest amount of memory that this process has had, where the system reports it.
pub(crate) fn peak_megabytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").trim().parse::<u64>().ok()? / 1024)
}

/// Puts a text between two markers of a document.
///
/// # Errors
/// The document has no such markers.
pub fn insert(document: &str, marker: &str, text: &str) -> Result<String, String> {
    let begin = format!("<!-- {marker} -->");
    let end = format!("<!-- /{marker} -->");
    let missing = || format!("there is no `{begin}` … `{end}` in the document");
    let (before, rest) = document.split_once(&begin).ok_or_else(missing)?;
    let (_, after) = rest.split_once(&end).ok_or_else(missing)?;
    Ok(format!("{before}{begin}\n{}\n{end}{after}", text.trim_end()))
}

//! The load without pauses, for one manager: which errors it logs, what it costs, and whether its memory grows.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use steersman_testing::Failure;
use tokio::time::{Instant, sleep};

use super::load::{self, FAMILIES};
use super::normal::Normal;
use super::side::{Setting, Side};
use crate::chaos::managers::Kind;

/// What came of an hour or less.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Churned {
    /// Whose manager.
    pub kind: Kind,
    /// How many requests users made.
    pub requests: u64,
    /// How many sequences were begun.
    pub sequences: u64,
    /// The lines of errors, normalised, and how often each was logged.
    pub errors: BTreeMap<String, u64>,
    /// Seconds since the begin, processor seconds, and resident mebibytes.
    pub samples: Vec<(u64, f64, u64)>,
}

/// The time between two steps.
const STEP_EVERY: Duration = Duration::from_millis(1_500);
const SAMPLE_EVERY: Duration = Duration::from_secs(10);
/// How long the end of a sequence may take to be cleaned up.
const CLEARS_WITHIN: Duration = Duration::from_secs(20);
/// Linux counts processor time in hundredths of a second, and pages of four kibibytes.
const TICKS_PER_SECOND: f64 = 100.0;
const PAGES_PER_MEBIBYTE: u64 = 256;
/// The growth between the middle and the last third that is no leak: caches and the allocator's slack.
const GROWTH_PERCENT: u64 = 20;
const GROWTH_MEBIBYTES: u64 = 8;
/// What errors of Kubernetes say, whoever logs them: two lines that say the same are the same, whatever else they say.
const PHRASES: [&str; 12] = [
    "the object has been modified",
    "object is being deleted",
    "being terminated",
    "already exists",
    "not found",
    "exceeded quota",
    "is forbidden",
    "no matches for kind",
    "could not find the requested resource",
    "unable to fetch metrics",
    "connection refused",
    "the server is currently unable to handle the request",
];

// === impl Churned ===

impl Churned {
    /// Returns the errors that the other does not log, whatever their number.
    #[must_use]
    pub fn errors_beyond(&self, other: &Self) -> Vec<&String> {
        self.errors.keys().filter(|line| !other.errors.contains_key(*line)).collect()
    }

    /// Returns resident mebibytes in the middle and in the last third, if memory grew between them.
    #[must_use]
    pub fn grown(&self) -> Option<(u64, u64)> {
        let third = self.samples.len() / 3;
        if third == 0 {
            return None;
        }
        let mean = |samples: &[(u64, f64, u64)]| samples.iter().map(|sample| sample.2).sum::<u64>() / third as u64;
        let middle = mean(&self.samples[third..2 * third]);
        let last = mean(&self.samples[2 * third..3 * third]);
        (last > middle + middle * GROWTH_PERCENT / 100 + GROWTH_MEBIBYTES).then_some((middle, last))
    }
}

/// Lets a manager work for a time.
///
/// # Errors
/// The harness itself does not work.
pub async fn run(kind: Kind, seed: u64, lasts: Duration, setting: &Setting) -> Result<Churned, Failure> {
    let mut side = Side::start(kind, setting).await?;
    let pid = side.manager.id();
    let began = Instant::now();
    let mut churned = Churned { kind, requests: 0, sequences: 0, errors: BTreeMap::new(), samples: Vec::new() };
    let mut sampled = began;
    while began.elapsed() < lasts {
        let name = format!("seq-{}", churned.sequences);
        churned.sequences += 1;
        for step in load::sequence(seed.wrapping_add(churned.sequences), &name, &FAMILIES) {
            churned.requests += u64::try_from(side.perform(&step).await?.len())?;
            sleep(STEP_EVERY).await;
            if sampled.elapsed() >= SAMPLE_EVERY {
                sampled = Instant::now();
                let (cpu, resident) = used(pid)?;
                churned.samples.push((began.elapsed().as_secs(), cpu, resident));
            }
            if began.elapsed() >= lasts {
                break;
            }
        }
        side.clear(&name).await?;
        side.quiet(STEP_EVERY, CLEARS_WITHIN).await?;
    }
    churned.errors = errors(&side.manager.said()?);
    Ok(churned)
}

/// Processor seconds and resident mebibytes of a process.
fn used(pid: u32) -> Result<(f64, u64), Failure> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name of the program is in parentheses; `utime` and `stime` are the 12th and 13th behind it.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks: Vec<f64> = fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse().ok()).collect();
    let pages = std::fs::read_to_string(format!("/proc/{pid}/statm"))?;
    let pages: u64 = pages.split_whitespace().nth(1).and_then(|field| field.parse().ok()).unwrap_or(0);
    Ok((ticks.iter().sum::<f64>() / TICKS_PER_SECOND, pages / PAGES_PER_MEBIBYTE))
}

/// The error lines of a log in klog's format, by what they say.
fn errors(log: &str) -> BTreeMap<String, u64> {
    let normal = Normal::new();
    let mut counts = BTreeMap::new();
    for line in log.lines().filter(|line| is_error(line)) {
        let said = line.split_once("] ").map_or(line, |(_, said)| said);
        let text = match PHRASES.iter().find(|phrase| said.contains(**phrase)) {
            Some(phrase) => (*phrase).to_owned(),
            None => normal.text(said),
        };
        *counts.entry(text).or_default() += 1;
    }
    counts
}

/// Whether a line is an error of klog, or of a program that panics.
fn is_error(line: &str) -> bool {
    let is_klog = line
        .strip_prefix('E')
        .is_some_and(|rest| rest.len() > 4 && rest.as_bytes()[..4].iter().all(u8::is_ascii_digit));
    is_klog || line.contains("panicked at")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn churned(errors: &str, resident: &[u64]) -> Churned {
        let samples = resident.iter().enumerate().map(|(at, resident)| (at as u64, 0.0, *resident)).collect();
        Churned { kind: Kind::Ours, requests: 0, sequences: 0, errors: super::errors(errors), samples }
    }

    #[test]
    fn an_error_that_only_we_log_is_told_and_one_that_both_log_in_other_words_is_not() {
        let ours = "E1118 02:13:47.123456   12345 a.rs:1] \"giving up\" error=\"pods \\\"a\\\" not found\"\n\
                    I1118 02:13:47.123456   12345 a.rs:1] \"fine\"\nE1118 02:13:47.1 1 a.rs:1] \"alone with pod-x2k4z\"";
        let go = "E1118 02:13:47.123456   12345 x.go:1] \"Failed\" err=\"configmaps \\\"b\\\" not found\"";
        let ours = churned(ours, &[]);
        assert_eq!(ours.errors_beyond(&churned(go, &[])), ["\"alone with pod-<random>\""]);
        assert!(ours.errors_beyond(&ours).is_empty());
    }

    #[test]
    fn memory_that_grows_by_a_third_is_a_leak_and_by_a_tenth_is_not() {
        assert_eq!(churned("", &[50, 60, 100, 100, 133, 133]).grown(), Some((100, 133)));
        assert_eq!(churned("", &[50, 60, 100, 100, 110, 110]).grown(), None);
        assert_eq!(churned("", &[50]).grown(), None);
    }
}

//! The durations of the tiers of the suite: each is timed, and all are printed at the end, also after a failure.

use std::time::Duration;

use crate::clock::Stopwatch;
use crate::failure::Result;

/// The durations so far.
#[derive(Debug, Default)]
pub(crate) struct Timings {
    rows: Vec<(String, Duration)>,
}

// === impl Timings ===

impl Timings {
    /// Runs something and notes how long it takes.
    pub(crate) fn time<T>(&mut self, what: &str, run: impl FnOnce() -> Result<T>) -> Result<T> {
        let watch = Stopwatch::start();
        let outcome = run();
        self.rows.push((what.to_owned(), watch.elapsed()));
        outcome
    }

    /// Prints a table.
    pub(crate) fn print(&self) {
        print!("{}", self.table());
    }

    fn table(&self) -> String {
        let width = self.rows.iter().map(|(what, _)| what.chars().count()).max().unwrap_or_default();
        let row = |(what, time): &(String, Duration)| format!("  {what:width$}  {:>6.1} s\n", time.as_secs_f64());
        format!("\nhow long it took:\n{}", self.rows.iter().map(row).collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Timings;
    use crate::failure::Failure;

    #[test]
    fn everything_is_timed_also_what_fails() {
        let mut timings = Timings::default();
        assert_eq!(timings.time("works", || Ok(3)).ok(), Some(3));
        assert!(timings.time("fails", || Err::<(), _>(Failure::Reported)).is_err());
        let names: Vec<_> = timings.rows.iter().map(|(what, _)| what.as_str()).collect();
        assert_eq!(names, ["works", "fails"]);
    }

    #[test]
    fn the_table_is_in_seconds_and_in_order() {
        let seconds = |what: &str, seconds| (what.to_owned(), Duration::from_secs_f64(seconds));
        let timings = Timings { rows: vec![seconds("default suite", 75.25), seconds("rig", 9.0)] };
        assert_eq!(timings.table(), "\nhow long it took:\n  default suite    75.2 s\n  rig               9.0 s\n");
    }
}

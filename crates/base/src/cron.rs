//! Schedules of CronJobs: the grammar, the words of errors and the times of `robfig/cron` 3.0.1, which upstream uses.
//!
//! 1. Five fields (minute, hour, day of the month, month, day of the week) of lists, ranges, steps and names; `?` is `*`; `7` is not
//!    a day. Macros (`@daily`), `@every 1h30m`, and `TZ=Europe/Berlin ` or `CRON_TZ=…` in front.
//! 2. If both days are restricted, one of them is enough; a `*` with a step counts as restricted.
//! 3. In the hour that a change to summer time skips, nothing is due, except for jobs of every hour or minute, which go on; in
//!    the hour that is repeated, everything is due twice.
//! 4. A schedule that is not due within five years is never due.
//!
//! ```
//! use steersman_base::Time;
//! use steersman_base::cron::{Schedule, Zone};
//!
//! let schedule = Schedule::parse("30 2 * * MON-FRI", &Zone::find("Europe/Berlin")?)?;
//! let friday: Time = "2026-11-20T12:00:00Z".parse()?;
//! assert_eq!(schedule.next(friday), Some("2026-11-23T01:30:00Z".parse()?));
//! assert_eq!(Schedule::parse("30 2 30 2 *", &Zone::utc())?.next(friday), None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod duration;
mod fields;
mod next;
#[cfg(test)]
mod tests;
mod zone;

use crate::Time;
use fields::Fields;

pub use zone::Zone;

/// A schedule.
#[derive(Clone, Debug)]
pub struct Schedule(Kind);

#[derive(Clone, Debug)]
enum Kind {
    /// At the times that match the fields, in this zone.
    Fields(Fields, Zone),
    /// After this number of seconds.
    Every(i64),
}

/// A schedule or time zone that cannot be read, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CronError(pub(crate) String);

// === impl Schedule ===

impl Schedule {
    /// Parses a schedule; `zone` is its time zone, unless it names one itself.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn parse(text: &str, zone: &Zone) -> Result<Self, CronError> {
        if text.is_empty() {
            return Err(CronError("empty spec string".to_owned()));
        }
        let named = text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ="));
        let (zone, text) = match named.map(|rest| rest.split_once(' ')) {
            None => (zone.clone(), text),
            // Upstream's parser panics, and says so.
            Some(None) => {
                let text = "invalid schedule format: runtime error: slice bounds out of range [:-1]";
                return Err(CronError(text.to_owned()));
            }
            Some(Some((name, rest))) => {
                let bad = |error| CronError(format!("provided bad location {name}: {error}"));
                (Zone::find(name).map_err(bad)?, rest.trim())
            }
        };
        if text.starts_with('@') {
            return Self::of_macro(text, zone);
        }
        Fields::parse(text).map(|fields| Self(Kind::Fields(fields, zone)))
    }

    fn of_macro(text: &str, zone: Zone) -> Result<Self, CronError> {
        let fields = match text {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            _ => {
                let Some(every) = text.strip_prefix("@every ") else {
                    return Err(CronError(format!("unrecognized descriptor: {text}")));
                };
                let bad = |error| CronError(format!("failed to parse duration {text}: {error}"));
                let seconds = duration::seconds(every).map_err(bad)?;
                return Ok(Self(Kind::Every(seconds.max(1))));
            }
        };
        Fields::parse(fields).map(|fields| Self(Kind::Fields(fields, zone)))
    }

    /// Returns the next time that is due, after this one; `None` if there is none within five years.
    #[must_use]
    pub fn next(&self, after: Time) -> Option<Time> {
        match &self.0 {
            Kind::Fields(fields, zone) => next::next(fields, zone, after),
            Kind::Every(seconds) => Some(after.plus_seconds(*seconds)),
        }
    }
}

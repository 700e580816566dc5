//! Pure: when a CronJob is due, and which times it has missed. Follows `utils.go`.

use std::time::Duration;

use steersman_base::cron::{CronError, Schedule, Zone};
use steersman_base::{MicroTime, Time};
use steersman_model::View;
use steersman_model::batch::CronJobView;

/// The number of missed times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missed {
    None,
    Few,
    /// More than [`MANY`].
    Many,
}

/// A time that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) time: Time,
    pub(super) missed: Missed,
}

/// The times since the last one.
struct Recent {
    /// The last time that was due before, or the beginning.
    earliest: Time,
    /// The last time that is due and has passed.
    last: Option<Time>,
    missed: Missed,
}

/// The error of a schedule that can be parsed, but whose times are less than a second apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("time difference between two schedules is less than 1 second")]
pub(super) struct Impossible;

/// Upstream's figure: more missed times than this are a mistake, or a clock that is wrong.
const MANY: i64 = 100;
/// The steps from a time that is two intervals back to now. Intervals differ: after a gap of eleven months, a month of minutes
/// follows.
const STEPS_MAX: usize = 100_000;
/// The time that a pass comes after a time that is due: upstream's figure, for clocks that differ.
const AFTER: Duration = Duration::from_millis(100);

/// Parses the schedule of a CronJob, in its zone.
pub(super) fn schedule(job: &CronJobView) -> Result<Schedule, CronError> {
    let zone = job.spec.time_zone.as_deref().and_then(|name| Zone::find(name).ok());
    Schedule::parse(&job.spec.schedule, &zone.unwrap_or_else(Zone::utc))
}

/// Returns the last time that is due and was not started, if there is one.
pub(super) fn due(job: &CronJobView, schedule: &Schedule, now: Time) -> Result<Option<Due>, Impossible> {
    let recent = recent(job, schedule, now, Deadline::Counts)?;
    Ok(recent.last.map(|time| Due { time, missed: recent.missed }))
}

/// Returns how long it is until the next time.
pub(super) fn next_in(job: &CronJobView, schedule: &Schedule, now: MicroTime) -> Option<Duration> {
    let from = match recent(job, schedule, now.to_seconds(), Deadline::Ignored) {
        Err(Impossible) => now.to_seconds(),
        Ok(Recent { last: Some(last), .. }) => last,
        Ok(Recent { missed: Missed::None, earliest, .. }) => earliest,
        Ok(Recent { .. }) => now.to_seconds(),
    };
    let next = MicroTime::from(schedule.next(from)?) + AFTER;
    Some(next.since(now))
}

/// Whether times before the deadline count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Deadline {
    Counts,
    Ignored,
}

fn recent(job: &CronJobView, schedule: &Schedule, now: Time, deadline: Deadline) -> Result<Recent, Impossible> {
    let begin = job.status.last_schedule_time.or(job.meta().creation_timestamp).unwrap_or(now);
    let too_late = job.spec.starting_deadline_seconds.filter(|_| deadline == Deadline::Counts);
    let earliest = too_late.map_or(begin, |seconds| begin.max(now.plus_seconds(seconds.saturating_neg())));
    let none = Recent { earliest, last: None, missed: Missed::None };
    let first = schedule.next(earliest).ok_or(Impossible)?;
    if now < first {
        return Ok(none);
    }
    let second = schedule.next(first);
    if second.is_some_and(|second| now < second) {
        return Ok(Recent { last: Some(first), ..none });
    }
    let interval = second.ok_or(Impossible)?.unix() - first.unix();
    if interval < 1 {
        return Err(Impossible);
    }
    // Roughly: as if all intervals were equal. From two of them back on, the schedule itself is asked.
    let count = (now.unix() - first.unix()) / interval + 1;
    let from = first.plus_seconds((count - 2).saturating_mul(interval));
    let next = |time: &Time| schedule.next(*time).filter(|next| *next <= now);
    let last = std::iter::successors(next(&from), next).take(STEPS_MAX).last();
    let missed = if count > MANY { Missed::Many } else { Missed::Few };
    Ok(Recent { earliest, last, missed })
}

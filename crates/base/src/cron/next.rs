//! The next time that matches the fields of a schedule.
//!
//! Whether and when something is due around a change of daylight-saving time follows from how local times are made of fields,
//! so that is done as Go does it: a day has a midnight, hours and minutes pass as they do on a stopwatch.

use super::fields::Fields;
use super::zone::Zone;
use crate::Time;
use crate::calendar::{Date, days_of};

/// A schedule that is not due for so many years is never due.
const YEARS_MAX: i64 = 5;
/// Far more than the steps through five years: a bound for zones of which nobody has thought.
const STEPS_MAX: usize = 50_000;
const DAY: i64 = 24 * 3600;
const HOUR: i64 = 3600;
const MINUTE: i64 = 60;

/// A time, and its local fields.
#[derive(Clone, Copy)]
struct Local<'a> {
    zone: &'a Zone,
    unix: i64,
    /// Local seconds since 1970.
    seconds: i64,
    date: Date,
}

/// The field that was stepped over a boundary: the larger ones are to be checked again.
enum Stage {
    Found,
    Wrapped,
}

/// Returns the next time after `after`.
pub(super) fn next(fields: &Fields, zone: &Zone, after: Time) -> Option<Time> {
    let mut search =
        Search { fields, time: Local::at(zone, after.unix().saturating_add(1)), is_moved: false, steps: 0 };
    let last_year = search.time.date.year + YEARS_MAX;
    while search.time.date.year <= last_year && search.steps < STEPS_MAX {
        if let Stage::Found = search.pass() {
            let found = Time::from_unix(search.time.unix);
            return found.is_writable().then_some(found);
        }
    }
    None
}

/// A search for the next time.
struct Search<'a> {
    fields: &'a Fields,
    time: Local<'a>,
    /// Whether a field was stepped, so that the smaller ones start at their beginning.
    is_moved: bool,
    steps: usize,
}

// === impl Search ===

impl Search<'_> {
    /// Steps month, day, hour, minute and second, until one of them is at its beginning again.
    fn pass(&mut self) -> Stage {
        while !self.fields.month.has(small(self.time.date.month)) {
            if self.begin() {
                let Date { year, month, .. } = self.time.date;
                self.time = Local::made(self.time.zone, year, month, 1, 0);
            }
            let Date { year, month, day } = self.time.date;
            self.time = Local::made(self.time.zone, year, month + 1, day, self.time.clock());
            if self.time.date.month == 1 {
                return Stage::Wrapped;
            }
        }
        while !self.fields.has_day(small(self.time.date.day), self.time.weekday()) {
            if self.begin() {
                let Date { year, month, day } = self.time.date;
                self.time = Local::made(self.time.zone, year, month, day, 0);
            }
            let Date { year, month, day } = self.time.date;
            self.time = Local::made(self.time.zone, year, month, day + 1, self.time.clock());
            // There may be no midnight.
            let hour = self.time.hour();
            if hour > 12 {
                self.time = self.time.after((24 - hour) * HOUR);
            } else if hour != 0 {
                self.time = self.time.after(-hour * HOUR);
            }
            if self.time.date.day == 1 {
                return Stage::Wrapped;
            }
        }
        while !self.fields.hour.has(small(self.time.hour())) {
            if self.begin() {
                let Date { year, month, day } = self.time.date;
                self.time = Local::made(self.time.zone, year, month, day, self.time.hour() * HOUR);
            }
            self.time = self.time.after(HOUR);
            if self.time.hour() == 0 {
                return Stage::Wrapped;
            }
        }
        while !self.fields.minute.has(small(self.time.minute())) {
            if self.begin() {
                self.time = self.time.after(-self.time.unix.rem_euclid(MINUTE));
            }
            self.time = self.time.after(MINUTE);
            if self.time.minute() == 0 {
                return Stage::Wrapped;
            }
        }
        // Only the first second of a minute is due.
        while self.time.seconds.rem_euclid(MINUTE) != 0 {
            self.begin();
            self.time = self.time.towards_minute();
            if self.time.seconds.rem_euclid(MINUTE) == 0 {
                return Stage::Wrapped;
            }
        }
        Stage::Found
    }

    /// Whether this is the first field that is stepped. Counts the step.
    fn begin(&mut self) -> bool {
        self.steps += 1;
        !std::mem::replace(&mut self.is_moved, true)
    }
}

// === impl Local ===

impl<'a> Local<'a> {
    fn at(zone: &'a Zone, unix: i64) -> Self {
        let seconds = unix + zone.offset(unix);
        Self { zone, unix, seconds, date: Date::of_days(seconds.div_euclid(DAY)) }
    }

    /// Makes a time of local fields; a month or day too many belongs to the next year or month. A time that is skipped, or there
    /// twice, is made as Go does: with the offset of one of both sides.
    fn made(zone: &'a Zone, year: i64, month: i64, day: i64, clock: i64) -> Self {
        let seconds = days_of(year, month, day) * DAY + clock;
        let offset = zone.offset(seconds);
        let right = zone.offset(seconds - offset);
        Self::at(zone, seconds - right)
    }

    fn after(self, seconds: i64) -> Self {
        Self::at(self.zone, self.unix + seconds)
    }

    /// The next full minute; one second on, if clocks are changed before it.
    fn towards_minute(self) -> Self {
        let minute = self.after(MINUTE - self.seconds.rem_euclid(MINUTE));
        let is_same_offset = minute.seconds - minute.unix == self.seconds - self.unix;
        if is_same_offset { minute } else { self.after(1) }
    }

    /// The seconds of the local day.
    fn clock(&self) -> i64 {
        self.seconds.rem_euclid(DAY)
    }

    fn hour(&self) -> i64 {
        self.clock() / HOUR
    }

    fn minute(&self) -> i64 {
        self.clock() % HOUR / MINUTE
    }

    /// The day of the week; Sunday is zero, and 1970 began on a Thursday.
    fn weekday(&self) -> u32 {
        small((self.seconds.div_euclid(DAY) + 4).rem_euclid(7))
    }
}

/// A field as a number of a bit.
fn small(field: i64) -> u32 {
    u32::try_from(field).unwrap_or(0)
}

//! Schedules and time zones of CronJobs: what can be read has times that go forward, and within five years.

#![no_main]

use libfuzzer_sys::fuzz_target;
use steersman_base::Time;
use steersman_base::cron::{Schedule, Zone};

/// How many times of a schedule are looked at.
const TIMES_MAX: usize = 8;
const FIVE_YEARS_SECONDS: i64 = (5 * 366 + 1) * 24 * 3600;

/// An input is a start in hours since 1970, the name of a zone, and a schedule, separated by bars.
fn parts(text: &str) -> Option<(Time, Zone, &str)> {
    let mut parts = text.splitn(3, '|');
    let hours: i32 = parts.next()?.parse().ok()?;
    let zone = Zone::find(parts.next()?).ok()?;
    Some((Time::from_unix(i64::from(hours) * 3600), zone, parts.next()?))
}

fuzz_target!(|text: &str| {
    let (start, zone, schedule) = parts(text).unwrap_or((Time::from_unix(1_794_780_247), Zone::utc(), text));
    let _ = zone.rfc3339(start);
    let Ok(schedule) = Schedule::parse(schedule, &zone) else { return };
    let mut last = start;
    for _ in 0..TIMES_MAX {
        let Some(next) = schedule.next(last) else { return };
        assert!(next > last, "{next} is not after {last}");
        let is_interval = text.contains("@every");
        assert!(is_interval || next.unix() - last.unix() <= FIVE_YEARS_SECONDS, "{next} is years after {last}");
        last = next;
    }
});

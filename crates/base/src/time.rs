//! Points in time as Kubernetes writes them, and the one clock.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use tokio::time::Instant;

use crate::calendar::{Date, days_of};

/// `metav1.Time`: seconds since 1970, written as `2026-11-15T22:04:07Z`. Fractions are cut off, as upstream does.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Time(i64);

/// `metav1.MicroTime`: microseconds since 1970, written as `2026-11-15T22:04:07.000000Z`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MicroTime(i64);

/// A text that is not an RFC 3339 time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an RFC 3339 time such as 2026-11-15T22:04:07Z")]
pub struct ParseTimeError(String);

/// The source of `now`: the only place that reads the machine's wall clock.
///
/// A virtual clock is an epoch plus tokio's [`Instant`]; under tokio's paused time it stands still until the test
/// sleeps, and it never disagrees with timers.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    Virtual { epoch: MicroTime, start: Instant },
}

/// Practically forever, and yet a duration that a timer can handle, unlike [`Duration::MAX`]: thirty years.
pub const FOR_EVER: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

const MICROS: i64 = 1_000_000;

// === impl Time ===

impl Time {
    /// The first time that can be written: the year 0.
    pub const MIN: Self = Self(-62_167_219_200);
    /// The last time that can be written: 9999-12-30T22:00:00Z, where the calendar library ends.
    pub const MAX: Self = Self(253_402_207_200);

    /// The time this many seconds after 1970.
    #[must_use]
    pub const fn from_unix(seconds: i64) -> Self {
        Self(seconds)
    }

    /// Seconds since 1970.
    #[must_use]
    pub const fn unix(self) -> i64 {
        self.0
    }

    /// Whether it lies between [`Time::MIN`] and [`Time::MAX`]: others are written as the nearer of the two.
    #[must_use]
    pub const fn is_writable(self) -> bool {
        Self::MIN.0 <= self.0 && self.0 <= Self::MAX.0
    }

    /// Returns the duration since `earlier`; zero if it is not earlier.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_secs(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// This time, moved by whole seconds.
    #[must_use]
    pub const fn plus_seconds(self, seconds: i64) -> Self {
        Self(self.0.saturating_add(seconds))
    }
}

/// The form that every API server sends, read without a calendar library: it is on the path of every object.
fn parse_canonical(text: &[u8]) -> Option<i64> {
    let [y0, y1, y2, y3, b'-', m0, m1, b'-', d0, d1, b'T', h0, h1, b':', i0, i1, b':', s0, s1, b'Z'] = *text else {
        return None;
    };
    let digit = |byte: u8| byte.is_ascii_digit().then(|| i64::from(byte - b'0'));
    let two = |tens: u8, ones: u8| Some(digit(tens)? * 10 + digit(ones)?);
    let year = two(y0, y1)? * 100 + two(y2, y3)?;
    let month = two(m0, m1)?;
    let day = two(d0, d1)?;
    let hour = two(h0, h1)?;
    let minute = two(i0, i1)?;
    let second = two(s0, s1)?;
    // The 29th and later, and leap seconds, are left to the library, which knows months and refuses what is wrong.
    if !(1..=12).contains(&month) || !(1..=28).contains(&day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let days = days_of(year, month, day);
    Some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

/// The inverse of [`parse_canonical`], for the years 0 to 9999: every write has a time, and a format that is interpreted takes
/// ten times as long.
fn write_canonical(unix: i64, text: &mut [u8]) {
    let second = unix.rem_euclid(24 * 3600);
    let Date { year, month, day } = Date::of_days(unix.div_euclid(24 * 3600));
    write_digits(year, &mut text[..4]);
    write_digits(month, &mut text[5..7]);
    write_digits(day, &mut text[8..10]);
    write_digits(second / 3600, &mut text[11..13]);
    write_digits(second / 60 % 60, &mut text[14..16]);
    write_digits(second % 60, &mut text[17..19]);
}

/// Fills a field with a number that is not negative, with zeros in front.
fn write_digits(mut number: i64, field: &mut [u8]) {
    for digit in field.iter_mut().rev() {
        *digit = b'0' + u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
    }
}

fn parse_any(text: &str) -> Result<jiff::Timestamp, ParseTimeError> {
    text.parse().map_err(|_| ParseTimeError(text.to_owned()))
}

impl std::str::FromStr for Time {
    type Err = ParseTimeError;
    fn from_str(text: &str) -> Result<Self, ParseTimeError> {
        match parse_canonical(text.as_bytes()) {
            Some(seconds) => Ok(Self(seconds)),
            None => parse_any(text).map(|time| Self(time.as_second())),
        }
    }
}

/// Every time can be written: what no calendar has is written as the nearest that one has. `to_string` panics if this
/// fails, and times come from arithmetic on what clients send.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = *b"0000-00-00T00:00:00Z";
        write_canonical(self.0.clamp(Self::MIN.0, Self::MAX.0), &mut text);
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

// === impl MicroTime ===

impl MicroTime {
    /// The time this many microseconds after 1970.
    #[must_use]
    pub const fn from_unix_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970.
    #[must_use]
    pub const fn unix_micros(self) -> i64 {
        self.0
    }

    /// Whether its whole seconds are [writable](Time::is_writable).
    #[must_use]
    pub const fn is_writable(self) -> bool {
        self.to_seconds().is_writable()
    }

    /// The whole seconds of it.
    #[must_use]
    pub const fn to_seconds(self) -> Time {
        Time(self.0.div_euclid(MICROS))
    }

    /// Returns the duration since 1970; zero if it is before.
    #[must_use]
    pub fn since_epoch(self) -> Duration {
        self.since(Self(0))
    }

    /// Returns the duration since `earlier`; zero if it is not earlier.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl From<Time> for MicroTime {
    fn from(time: Time) -> Self {
        Self(time.0.saturating_mul(MICROS))
    }
}

impl std::ops::Add<Duration> for MicroTime {
    type Output = Self;
    fn add(self, after: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(after.as_micros()).unwrap_or(i64::MAX)))
    }
}

impl std::str::FromStr for MicroTime {
    type Err = ParseTimeError;
    fn from_str(text: &str) -> Result<Self, ParseTimeError> {
        parse_any(text).map(|time| Self(time.as_microsecond()))
    }
}

/// Every time can be written, as every [`Time`] can.
impl fmt::Display for MicroTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.0.clamp(Time::MIN.0.saturating_mul(MICROS), Time::MAX.0.saturating_mul(MICROS));
        let mut text = *b"0000-00-00T00:00:00.000000Z";
        write_canonical(shown.div_euclid(MICROS), &mut text);
        write_digits(shown.rem_euclid(MICROS), &mut text[20..26]);
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for MicroTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

macro_rules! as_text {
    ($($time:ty),*) => {$(
        impl Serialize for $time {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $time {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Parsing;
                impl de::Visitor<'_> for Parsing {
                    type Value = $time;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("an RFC 3339 time")
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$time, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Parsing)
            }
        }
    )*};
}
as_text!(Time, MicroTime);

// === impl Clock ===

impl Clock {
    /// The machine's wall clock.
    #[must_use]
    pub const fn system() -> Self {
        Self(Source::System)
    }

    /// Returns a clock that shows `epoch` now and follows tokio's time, which a test can pause.
    #[must_use]
    pub fn starting_at(epoch: Time) -> Self {
        Self(Source::Virtual { epoch: epoch.into(), start: Instant::now() })
    }

    /// The time, in seconds.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now_micros().to_seconds()
    }

    /// The time, in microseconds.
    #[must_use]
    #[allow(clippy::disallowed_methods, reason = "this is the one place")]
    pub fn now_micros(&self) -> MicroTime {
        match &self.0 {
            Source::System => MicroTime(jiff::Timestamp::now().as_microsecond()),
            Source::Virtual { epoch, start } => *epoch + start.elapsed(),
        }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_as_the_calendar_library_reads_them() {
        for text in [
            "1970-01-01T00:00:00Z",
            "1969-12-31T23:59:59Z",
            "2000-02-28T12:00:00Z",
            "2000-02-29T12:00:00Z",
            "2000-03-01T00:00:00Z",
            "2024-12-31T23:59:59Z",
            "2026-11-15T22:04:07Z",
            "2100-03-01T00:00:00Z",
            "0001-01-01T00:00:00Z",
            "2026-11-15T22:04:07.999Z",
            "2026-11-15T22:04:07+02:00",
        ] {
            let want = text.parse::<jiff::Timestamp>().unwrap();
            let seconds = if want.as_second() < 0 && want.subsec_nanosecond() != 0 {
                want.as_second() - 1
            } else {
                want.as_second()
            };
            assert_eq!(text.parse::<Time>().unwrap().unix(), seconds, "{text}");
        }
    }

    #[test]
    fn times_are_written_as_the_calendar_library_writes_them() {
        let check = |unix: i64| {
            let want = jiff::Timestamp::from_second(unix).unwrap();
            assert_eq!(Time(unix).to_string(), want.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(), "{unix}");
            let micros = unix * MICROS + unix.rem_euclid(MICROS);
            let want = jiff::Timestamp::from_microsecond(micros.min(Time::MAX.0 * MICROS)).unwrap();
            let shown = MicroTime(micros).to_string();
            assert_eq!(shown, want.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string(), "{micros}");
        };
        // All days of the year, at many times of the day.
        const STRIDE: usize = 97 * 24 * 3600 + 4801;
        (Time::MIN.0..=Time::MAX.0).step_by(STRIDE).for_each(check);
        for year in ["1600", "1900", "2000", "2024", "2100"] {
            for day in ["02-28T23:59:59Z", "03-01T00:00:00Z", "12-31T23:59:59Z", "01-01T00:00:00Z"] {
                let time: Time = format!("{year}-{day}").parse().unwrap();
                (-1..=1).for_each(|second| check(time.0 + second));
            }
        }
        check(Time::MIN.0);
        check(Time::MAX.0);
    }

    #[test]
    fn what_is_no_time_is_named_in_the_error() {
        for text in ["", "yesterday", "2026-02-30T00:00:00Z", "2026-11-15T24:04:07Z", "2026-13-15T22:04:07Z"] {
            let error = text.parse::<Time>().unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")), "{error}");
        }
    }

    #[test]
    fn times_print_as_upstream_prints_them() {
        assert_eq!(Time::from_unix(1_794_780_247).to_string(), "2026-11-15T22:04:07Z");
        assert_eq!(MicroTime::from_unix_micros(1_794_780_247_000_042).to_string(), "2026-11-15T22:04:07.000042Z");
        assert_eq!("2026-11-15T22:04:07.000042Z".parse::<MicroTime>().unwrap().unix_micros(), 1_794_780_247_000_042);
    }

    #[test]
    fn every_time_can_be_written_and_read_again() {
        for seconds in [i64::MIN, -62_167_219_201, -62_167_219_200, 0, 253_402_207_200, 253_402_207_201, i64::MAX] {
            let time = Time::from_unix(seconds);
            let micros = MicroTime::from_unix_micros(seconds);
            let nearest = Time::from_unix(seconds.clamp(Time::MIN.unix(), Time::MAX.unix()));
            assert_eq!(time.to_string().parse::<Time>().unwrap(), nearest, "{seconds}");
            assert_eq!(time.is_writable(), time == nearest);
            micros.to_string().parse::<MicroTime>().unwrap();
        }
        assert_eq!(Time::MIN.to_string(), "0000-01-01T00:00:00Z");
        assert_eq!(Time::MAX.to_string(), "9999-12-30T22:00:00Z");
    }

    #[tokio::test(start_paused = true)]
    async fn a_virtual_clock_goes_with_the_timers() {
        let clock = Clock::starting_at(Time::from_unix(1000));
        assert_eq!(clock.now().unix(), 1000);
        tokio::time::sleep(Duration::from_secs(90)).await;
        assert_eq!(clock.now().unix(), 1090);
    }
}

//! Times and durations, read and printed as Go does.

use std::fmt::Write;

/// Nanoseconds in a second.
const NANOS: i64 = 1_000_000_000;
/// The range of times in seconds: years 1 to 9999.
const SECONDS_MIN: i64 = -62_135_596_800;
const SECONDS_MAX: i64 = 253_402_300_799;

/// A moment, and the offset from UTC with which it was written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timestamp {
    /// Since 1970, in UTC.
    pub(crate) seconds: i64,
    pub(crate) nanos: u32,
    /// Seconds east of UTC.
    pub(crate) offset: i32,
}

/// A date and a time of day, at some offset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Civil {
    pub(crate) year: i64,
    /// From 1.
    pub(crate) month: i64,
    /// From 1.
    pub(crate) day: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
    /// From 0, Sunday.
    pub(crate) weekday: i64,
    /// From 0.
    pub(crate) yearday: i64,
}

// === impl Timestamp ===

impl Timestamp {
    pub(crate) fn utc(seconds: i64, nanos: u32) -> Self {
        Self { seconds, nanos, offset: 0 }
    }

    pub(crate) fn is_zero(self) -> bool {
        self.seconds == SECONDS_MIN && self.nanos == 0
    }

    pub(crate) fn in_range(self) -> bool {
        (SECONDS_MIN..=SECONDS_MAX).contains(&self.seconds)
    }

    /// The moment as a number that orders moments.
    pub(crate) fn moment(self) -> (i64, u32) {
        (self.seconds, self.nanos)
    }

    /// This much later, or none if that is out of range.
    pub(crate) fn add(self, nanos: i64) -> Option<Self> {
        let total = i128::from(self.seconds) * i128::from(NANOS) + i128::from(self.nanos) + i128::from(nanos);
        let seconds = i64::try_from(total.div_euclid(NANOS.into())).ok()?;
        let later = Self { seconds, nanos: total.rem_euclid(NANOS.into()) as u32, ..self };
        later.in_range().then_some(later)
    }

    /// Returns the time since the other, in nanoseconds.
    pub(crate) fn since(self, other: Self) -> Option<i64> {
        let seconds = self.seconds.checked_sub(other.seconds)?.checked_mul(NANOS)?;
        seconds.checked_add(i64::from(self.nanos) - i64::from(other.nanos))
    }

    pub(crate) fn civil(self, offset: i64) -> Civil {
        let local = self.seconds + offset;
        let days = local.div_euclid(86_400);
        let second = local.rem_euclid(86_400);
        let (year, month, day) = civil_from_days(days);
        Civil {
            year,
            month,
            day,
            hour: second / 3600,
            minute: second / 60 % 60,
            second: second % 60,
            weekday: (days + 4).rem_euclid(7),
            yearday: days - days_from_civil(year, 1, 1),
        }
    }

    /// As RFC 3339 with as many digits of a second as are needed.
    pub(crate) fn rfc3339(self) -> String {
        let civil = self.civil(self.offset.into());
        let mut text = format!(
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
            civil.year, civil.month, civil.day, civil.hour, civil.minute, civil.second
        );
        if self.nanos > 0 {
            let _ = write!(text, ".{:09}", self.nanos);
            text.truncate(text.trim_end_matches('0').len());
        }
        if self.offset == 0 {
            text.push('Z');
        } else {
            let minutes = self.offset.abs() / 60;
            let sign = if self.offset < 0 { '-' } else { '+' };
            let _ = write!(text, "{sign}{:02}:{:02}", minutes / 60, minutes % 60);
        }
        text
    }

    /// Reads RFC 3339.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (local, rest) = parse_local(text)?;
        let offset = match rest.as_bytes() {
            b"Z" => 0,
            [sign @ (b'+' | b'-'), hours @ .., b':', tens, ones] => {
                let hours = two_digits(hours)?;
                let minutes = two_digits(&[*tens, *ones])?;
                if hours > 24 || minutes > 60 {
                    return None;
                }
                let seconds = (hours * 60 + minutes) as i32 * 60;
                if *sign == b'-' { -seconds } else { seconds }
            }
            _ => return None,
        };
        Some(Self { seconds: local.seconds - i64::from(offset), offset, ..local })
    }

    /// Reads what the format `date-time` allows.
    pub(crate) fn parse_date_time(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::utc(0, 0));
        }
        Self::parse(text).or_else(|| parse_local(text).filter(|(_, rest)| rest.is_empty()).map(|(local, _)| local))
    }

    /// Reads what the format `date` allows.
    pub(crate) fn parse_date(text: &str) -> Option<Self> {
        let days = parse_days(text)?;
        Some(Self::utc(days * 86_400, 0))
    }
}

fn two_digits(digits: &[u8]) -> Option<i64> {
    match digits {
        [tens @ b'0'..=b'9', ones @ b'0'..=b'9'] => Some(i64::from(tens - b'0') * 10 + i64::from(ones - b'0')),
        _ => None,
    }
}

fn parse_days(date: &str) -> Option<i64> {
    let bytes = date.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let year = two_digits(&bytes[..2])? * 100 + two_digits(&bytes[2..4])?;
    let month = two_digits(&bytes[5..7])?;
    let day = two_digits(&bytes[8..])?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(leap),
        _ => return None,
    };
    (1..=last).contains(&day).then(|| days_from_civil(year, month, day))
}

/// A date and time of day, and what follows.
fn parse_local(text: &str) -> Option<(Timestamp, &str)> {
    let days = parse_days(text.get(..10)?)?;
    let time = text[10..].strip_prefix('T')?;
    // Go takes hours of one digit.
    let hour_digits = time.bytes().take(2).take_while(u8::is_ascii_digit).count();
    let hour: i64 = time[..hour_digits].parse().ok()?;
    let rest = &time.as_bytes()[hour_digits..];
    let [b':', m1, m2, b':', s1, s2, ..] = rest else { return None };
    let minute = two_digits(&[*m1, *m2])?;
    let second = two_digits(&[*s1, *s2])?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut rest = &time[hour_digits + 6..];
    let mut nanos = 0;
    if rest.starts_with(['.', ',']) {
        let digits = rest[1..].bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return None;
        }
        let fraction = &rest[1..=digits];
        let padded = format!("{:0<9}", &fraction[..digits.min(9)]);
        nanos = padded.parse().ok()?;
        rest = &rest[1 + digits..];
    }
    Some((Timestamp::utc(days * 86_400 + hour * 3600 + minute * 60 + second, nanos), rest))
}

fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

/// Reads a duration as `time.ParseDuration` does: `1h30m`, `-1.5s`; in nanoseconds.
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let whole_len = rest.bytes().take_while(u8::is_ascii_digit).count();
        let whole: u64 = if whole_len == 0 { 0 } else { rest[..whole_len].parse().ok()? };
        rest = &rest[whole_len..];
        let mut fraction = "";
        if let Some(after) = rest.strip_prefix('.') {
            let len = after.bytes().take_while(u8::is_ascii_digit).count();
            fraction = &after[..len];
            rest = &after[len..];
        }
        if whole_len == 0 && fraction.is_empty() {
            return None;
        }
        let unit_len = rest.bytes().take_while(|byte| *byte != b'.' && !byte.is_ascii_digit()).count();
        let unit: u64 = match &rest[..unit_len] {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        rest = &rest[unit_len..];
        let mut part = whole.checked_mul(unit)?;
        let mut scale = 1.0;
        let mut digits: u64 = 0;
        for digit in fraction.bytes() {
            match digits.checked_mul(10).and_then(|digits| digits.checked_add(u64::from(digit - b'0'))) {
                Some(more) if more <= 1 << 63 => {
                    digits = more;
                    scale *= 10.0;
                }
                _ => break,
            }
        }
        if digits > 0 {
            part = part.checked_add((digits as f64 * (unit as f64 / scale)) as u64)?;
        }
        total = total.checked_add(part).filter(|total| *total <= 1 << 63)?;
    }
    if negative { Some((total as i64).wrapping_neg()) } else { i64::try_from(total).ok() }
}

/// Reads what the format `duration` allows besides: `3 days`, `1 week 2h`.
pub(crate) fn parse_duration_format(text: &str) -> Option<i64> {
    if let Some(nanos) = parse_duration(text) {
        return Some(nanos);
    }
    let mut total: i64 = 0;
    let mut found = false;
    let chars: Vec<char> = text.chars().collect();
    let mut at = 0;
    while at < chars.len() {
        let digits = chars[at..].iter().take_while(|char| char.is_ascii_digit()).count();
        if digits == 0 {
            at += 1;
            continue;
        }
        let number: String = chars[at..at + digits].iter().collect();
        at += digits;
        at += chars[at..].iter().take_while(|char| char.is_ascii_whitespace()).count();
        let letters = chars[at..].iter().take_while(|char| char.is_ascii_alphabetic() || **char == 'µ').count();
        if letters == 0 {
            continue;
        }
        let unit: String = chars[at..at + letters].iter().collect::<String>().to_lowercase();
        at += letters;
        let number: i64 = number.parse().ok()?;
        for (names, nanos) in UNITS {
            let (last, others) = names.split_last()?;
            if unit.starts_with(last) || others.iter().any(|name| *name == unit) {
                found = true;
                total = total.wrapping_add(number.wrapping_mul(*nanos));
            }
        }
    }
    found.then_some(total)
}

const UNITS: &[(&[&str], i64)] = &[
    (&["ns", "nano"], 1),
    (&["us", "µs", "micro"], 1_000),
    (&["ms", "milli"], 1_000_000),
    (&["s", "sec"], NANOS),
    (&["m", "min"], 60 * NANOS),
    (&["h", "hr", "hour"], 3_600 * NANOS),
    (&["d", "day"], 86_400 * NANOS),
    (&["w", "wk", "week"], 604_800 * NANOS),
];

/// A duration in seconds, as Go's `Seconds` computes it.
pub(crate) fn seconds(nanos: i64) -> f64 {
    (nanos / NANOS) as f64 + (nanos % NANOS) as f64 / 1e9
}

/// A duration as its `String` method prints it.
pub(crate) fn duration_text(nanos: i64) -> String {
    let magnitude = nanos.unsigned_abs();
    let sign = if nanos < 0 { "-" } else { "" };
    let fraction = |value: u64, unit: u64| {
        let text = format!("{}.{:0width$}", value / unit, value % unit, width = unit.ilog10() as usize);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match magnitude {
        0 => "0s".to_owned(),
        1..1_000 => format!("{sign}{magnitude}ns"),
        1_000..1_000_000 => format!("{sign}{}µs", fraction(magnitude, 1_000)),
        1_000_000..1_000_000_000 => format!("{sign}{}ms", fraction(magnitude, 1_000_000)),
        _ => {
            let minutes = magnitude / 60_000_000_000;
            let seconds = fraction(magnitude % 60_000_000_000, 1_000_000_000);
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{sign}{seconds}s"),
                (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
                (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_printed() {
        for text in ["2024-02-29T23:59:59Z", "1969-12-31T00:00:00.5+02:00", "0001-01-01T00:00:00Z"] {
            assert_eq!(Timestamp::parse(text).map(Timestamp::rfc3339).as_deref(), Some(text));
        }
        for text in ["2023-02-29T00:00:00Z", "2024-01-01", "2024-01-01T24:00:00Z", "2024-01-01t00:00:00Z", ""] {
            assert!(Timestamp::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn durations_are_read_and_printed() {
        for (text, want) in
            [("1h30m", "1h30m0s"), ("-1.5s", "-1.5s"), ("0", "0s"), ("100ns", "100ns"), ("1.5h", "1h30m0s")]
        {
            assert_eq!(parse_duration(text).map(duration_text).as_deref(), Some(want));
        }
        for text in ["", "1", "1d", "s", "9223372036854775808ns", "1h-1m"] {
            assert!(parse_duration(text).is_none(), "{text}");
        }
        assert_eq!(parse_duration_format("3 days"), Some(3 * 86_400 * NANOS));
        assert_eq!(parse_duration_format("nonsense"), None);
    }
}

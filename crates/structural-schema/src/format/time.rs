//! Dates, times and durations.

/// `2006-01-02`, and a day that the month has.
pub(super) fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return false;
    }
    let number = |range: std::ops::Range<usize>| {
        let part = &bytes[range];
        part.iter().all(u8::is_ascii_digit).then(|| part.iter().fold(0, |sum, byte| sum * 10 + u32::from(byte - b'0')))
    };
    let (Some(year), Some(month), Some(day)) = (number(0..4), number(5..7), number(8..10)) else { return false };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// A date, `t`, a time, and an offset. What follows a second `t` is not looked at, as upstream.
pub(super) fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    is_date(date) && is_time(time)
}

/// `15:04:05`, a fraction behind any character, and `z` or `+07:00`.
fn is_time(text: &str) -> bool {
    let two = |text: &str| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    let (Some(clock), Some(rest)) = (text.get(..8), text.get(8..)) else { return false };
    let mut parts = clock.split(':');
    let (Some(hour), Some(minute), Some(second), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    if !two(hour) || !two(minute) || !two(second) || hour > "23" || minute > "59" || second > "59" {
        return false;
    }
    let is_offset = |text: &str| {
        text == "z"
            || (text.starts_with(['+', '-'])
                && text[1..].split_once(':').is_some_and(|(hours, minutes)| two(hours) && two(minutes)))
    };
    let fraction = || {
        let mut chars = rest.chars();
        chars.next()?;
        let digits = chars.as_str();
        let after = digits.trim_start_matches(|c: char| c.is_ascii_digit());
        // The fraction may be followed by an offset only; digits are taken greedily, and offsets begin with none.
        (after.len() < digits.len()).then_some(after)
    };
    is_offset(rest) || fraction().is_some_and(is_offset)
}

/// The units of durations; the last form of each may have any ending.
const UNITS: &[&[&str]] = &[
    &["ns", "nano"],
    &["us", "µs", "micro"],
    &["ms", "milli"],
    &["s", "sec"],
    &["m", "min"],
    &["h", "hr", "hour"],
    &["d", "day"],
    &["w", "wk", "week"],
];

/// A duration of Go (`1h30m`), or a text with a number and a unit in it (`3 weeks`).
pub(super) fn is_duration(text: &str) -> bool {
    if is_go_duration(text) {
        return true;
    }
    let mut found = false;
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let digits_end = rest[start..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |end| start + end);
        let digits = &rest[start..digits_end];
        let after = rest[digits_end..].trim_start_matches(['\t', '\n', '\u{c}', '\r', ' ']);
        let unit_end = after.find(|c: char| !(c.is_ascii_alphabetic() || c == 'µ')).unwrap_or(after.len());
        if unit_end == 0 {
            rest = &rest[digits_end..];
            continue;
        }
        if digits.parse::<i64>().is_err() {
            return false;
        }
        let unit = after[..unit_end].to_lowercase();
        found |= UNITS.iter().any(|forms| {
            forms.iter().enumerate().any(|(at, form)| {
                unit == *form || (at == forms.len() - 1 && unit.starts_with(form)) || (unit == "μs" && *form == "µs")
            })
        });
        rest = &after[unit_end..];
    }
    found
}

/// Whether `time.ParseDuration` accepts a text.
fn is_go_duration(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    if text == "0" {
        return true;
    }
    let mut total: f64 = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let whole = rest.bytes().take_while(u8::is_ascii_digit).count();
        let mut end = whole;
        let mut fraction = 0;
        if rest[end..].starts_with('.') {
            fraction = rest[end + 1..].bytes().take_while(u8::is_ascii_digit).count();
            end += 1 + fraction;
        }
        if whole == 0 && fraction == 0 {
            return false;
        }
        let unit_length = rest[end..].find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len() - end);
        let nanoseconds: f64 = match &rest[end..end + unit_length] {
            "ns" => 1.0,
            "us" | "µs" | "μs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" => 60e9,
            "h" => 3600e9,
            _ => return false,
        };
        total += rest[..end].parse::<f64>().unwrap_or_default() * nanoseconds;
        if total > 9_223_372_036_854_775_808.0 {
            return false;
        }
        rest = &rest[end + unit_length..];
    }
    !text.is_empty()
}

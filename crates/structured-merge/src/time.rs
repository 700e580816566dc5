//! Just enough of RFC 3339 to put times in order.

/// Seconds since 1970 of a time; 0 for none and for what is no time.
pub(crate) fn unix_seconds(time: Option<&str>) -> i64 {
    time.and_then(parse).unwrap_or(0)
}

fn parse(text: &str) -> Option<i64> {
    let number = |range: std::ops::Range<usize>| -> Option<i64> {
        let digits = text.get(range)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let bytes = text.as_bytes();
    let separators = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
    if bytes.len() < 20 || separators.iter().any(|(at, wanted)| bytes[*at] != *wanted) {
        return None;
    }
    let days = days_from_civil(number(0..4)?, number(5..7)?, number(8..10)?);
    let of_day = number(11..13)? * 3600 + number(14..16)? * 60 + number(17..19)?;
    // Behind the seconds come a fraction, which does not count, and the zone.
    let zone = text[19..].trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    let offset = match zone.as_bytes().first()? {
        b'Z' | b'z' => 0,
        sign => {
            let start = text.len() - zone.len();
            let seconds = number(start + 1..start + 3)? * 3600 + number(start + 4..start + 6)? * 60;
            if *sign == b'-' { -seconds } else { seconds }
        }
    };
    Some(days * 86_400 + of_day - offset)
}

/// Days from 1970-01-01 to a date of the Gregorian calendar.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::unix_seconds;

    #[test]
    fn times_are_read_in_any_zone_and_anything_else_is_the_beginning() {
        let rows = [
            ("1970-01-01T00:00:00Z", 0),
            ("2026-11-15T20:06:52Z", 1_794_773_212),
            ("2026-11-15T20:06:52.123456Z", 1_794_773_212),
            ("2026-11-15T22:06:52+02:00", 1_794_773_212),
            ("2024-02-29T23:59:59-01:30", 1_709_256_599),
            ("yesterday", 0),
            ("2026-11-15T20:06:52", 0),
            ("2026-11-15T20:06:52é", 0),
            ("2026-11-15T20:06:52+é2:00", 0),
            ("", 0),
        ];
        for (text, want) in rows {
            assert_eq!(unix_seconds(Some(text)), want, "{text}");
        }
        assert_eq!(unix_seconds(None), 0);
    }
}

//! Pure: durations as people and Go write them.

use std::fmt::Write;
use std::time::Duration;

/// The maximum: longer ones are mistakes, and sums stay far from overflow.
const MAX: Duration = Duration::from_secs(100 * 366 * 24 * 3600);

/// Parses `90`, `1.5`, `500ms`, `2m`, `1h30m`, `1d`; a number alone is in seconds. `None` if it is not a duration.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    if text.is_empty() {
        return None;
    }
    let mut sum = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(rest.len());
        let amount: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.find(|char: char| char.is_ascii_digit() || char == '.').unwrap_or(rest.len());
        let unit = match &rest[..letters] {
            // Only a number that stands alone may have no unit.
            "" if digits == text.len() => 1.0,
            "s" => 1.0,
            "ms" => 0.001,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86400.0,
            _ => return None,
        };
        rest = &rest[letters..];
        sum += Duration::try_from_secs_f64(amount * unit).unwrap_or(MAX).min(MAX);
    }
    Some(sum.min(MAX))
}

/// Formats whole seconds as Go does: `10s`, `1m20s`, `5m0s`.
pub(crate) fn go_text(time: Duration) -> String {
    let seconds = time.as_secs();
    let hours = seconds / 3600;
    let minutes = seconds / 60 % 60;
    let seconds = seconds % 60;
    let mut text = String::new();
    if hours > 0 {
        let _ = write!(text, "{hours}h");
    }
    if hours > 0 || minutes > 0 {
        let _ = write!(text, "{minutes}m");
    }
    let _ = write!(text, "{seconds}s");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        let millis = |millis| Some(Duration::from_millis(millis));
        for (text, want) in [
            ("5", millis(5_000)),
            ("0", millis(0)),
            ("0.5", millis(500)),
            ("500ms", millis(500)),
            ("2m", millis(120_000)),
            ("1h30m", millis(5_400_000)),
            ("1d", millis(86_400_000)),
            ("1.5s", millis(1_500)),
            ("", None),
            ("soon", None),
            ("5 s", None),
            ("-5s", None),
            ("5s5", None),
            ("1..5", None),
            ("99999999999999999999999", Some(MAX)),
        ] {
            assert_eq!(parse(text), want, "{text:?}");
        }
    }

    #[test]
    fn durations_print_as_go_prints_them() {
        for (seconds, want) in [(10, "10s"), (80, "1m20s"), (300, "5m0s"), (3600, "1h0m0s"), (0, "0s")] {
            assert_eq!(go_text(Duration::from_secs(seconds)), want);
        }
    }
}

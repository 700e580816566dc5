//! Durations as Go's `time.ParseDuration` reads them, in whole seconds.

/// Parses `1h30m`, `1.5s`, `-2m`. The error is in Go's words.
pub(super) fn seconds(text: &str) -> Result<i64, String> {
    let invalid = || format!("time: invalid duration {text:?}");
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
    if unsigned == "0" {
        return Ok(0);
    }
    if unsigned.is_empty() {
        return Err(invalid());
    }
    let mut rest = unsigned;
    let mut sum = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(rest.len());
        let number = &rest[..digits];
        if !number.contains(|char: char| char.is_ascii_digit()) {
            return Err(invalid());
        }
        let amount: f64 = number.parse().map_err(|_| invalid())?;
        rest = &rest[digits..];
        let letters = rest.find(|char: char| char.is_ascii_digit() || char == '.').unwrap_or(rest.len());
        let unit = match &rest[..letters] {
            "" => return Err(format!("time: missing unit in duration {text:?}")),
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            unit => return Err(format!("time: unknown unit {unit:?} in duration {text:?}")),
        };
        rest = &rest[letters..];
        sum += amount * unit;
    }
    /// Go's durations are nanoseconds in 63 bits.
    const SECONDS_MAX: f64 = 9_223_372_036.0;
    if sum > SECONDS_MAX {
        return Err(invalid());
    }
    #[allow(clippy::cast_possible_truncation, reason = "checked against the maximum")]
    // What floating point loses must not cost a second.
    let whole = (sum + 1e-7).floor() as i64;
    Ok(if sign < 0.0 { -whole } else { whole })
}

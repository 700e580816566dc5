//! Pure: values as Go's `strconv`, `time` and `encoding/csv` read and print them.

use std::fmt::Write;

const NANOS: [(&str, i64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000), // U+00B5, the micro sign
    ("μs", 1_000), // U+03BC, the Greek letter
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// `strconv.ParseBool`.
pub(super) fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

/// `strconv.ParseInt` with base 0: decimal, `0x`, `0o`, `0b`, a leading `0` for octal, and `_` between digits.
pub(super) fn parse_int(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    let lower = digits.to_ascii_lowercase();
    let (base, body) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..]),
        [b'0', b'o', ..] => (8, &lower[2..]),
        [b'0', b'b', ..] => (2, &lower[2..]),
        [b'0', _, ..] => (8, &lower[1..]),
        _ => (10, lower.as_str()),
    };
    let prefixed = body.len() < lower.len();
    // An underscore stands between digits, or between a prefix and digits.
    let misplaced = body.ends_with('_') || body.contains("__") || (body.starts_with('_') && !prefixed);
    let plain: String = body.chars().filter(|&letter| letter != '_').collect();
    if misplaced || plain.is_empty() || !plain.bytes().all(|digit| digit.is_ascii_alphanumeric()) {
        return None;
    }
    let size = i128::from_str_radix(&plain, base).ok()?;
    i64::try_from(if negative { -size } else { size }).ok()
}

/// A number as `strconv.ParseFloat` reads it.
#[derive(Debug, PartialEq)]
pub(super) enum Float {
    /// Digits that Rust reads as Go does.
    Decimal(String),
    /// `0x1.8p-2`, which Rust does not read.
    Hexadecimal(f64),
}

/// Parses what `strconv.ParseFloat` accepts: decimal or hexadecimal, `_` between digits, infinities, and a NaN without
/// a sign.
pub(super) fn parse_float(text: &str) -> Option<Float> {
    let lower = text.to_ascii_lowercase();
    if !underscores_separate_digits(&lower) || lower.trim_start_matches(['-', '+']) == "nan" && lower != "nan" {
        return None;
    }
    let plain = lower.replace('_', "");
    let unsigned = plain.strip_prefix(['-', '+']).unwrap_or(&plain);
    let Some(hexadecimal) = unsigned.strip_prefix("0x") else { return Some(Float::Decimal(plain)) };
    let (mantissa, exponent) = hexadecimal.split_once('p')?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut size = 0.0;
    for digit in whole.chars().chain(fraction.chars()) {
        size = size * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let bits = i32::try_from(fraction.len()).ok()?.checked_mul(4)?;
    let size = size * 2_f64.powi(exponent.parse::<i32>().ok()?.checked_sub(bits)?);
    Some(Float::Hexadecimal(if plain.starts_with('-') { -size } else { size }))
}

/// `underscoreOK`: each stands behind a digit or the prefix of a base, and before a digit.
fn underscores_separate_digits(lower: &str) -> bool {
    let unsigned = lower.strip_prefix(['-', '+']).unwrap_or(lower);
    let is_hexadecimal = unsigned.starts_with("0x");
    let is_digit = |letter: Option<char>| {
        letter.is_some_and(|letter| letter.is_ascii_digit() || is_hexadecimal && letter.is_ascii_hexdigit())
    };
    let letters: Vec<char> = unsigned.chars().collect();
    let at = |place: usize| letters.get(place).copied();
    let behind_prefix =
        |place: usize| place == 2 && unsigned.starts_with("0") && matches!(at(1), Some('b' | 'o' | 'x'));
    let places = letters.iter().enumerate().filter(|(_, letter)| **letter == '_').map(|(place, _)| place);
    places.into_iter().all(|place| {
        let before = behind_prefix(place) || place.checked_sub(1).is_some_and(|before| is_digit(at(before)));
        before && is_digit(at(place + 1))
    })
}

/// `time.ParseDuration`, in nanoseconds.
pub(super) fn parse_duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let number = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let (digits, after) = rest.split_at(number);
        let unit_end = after.find(|letter: char| letter.is_ascii_digit() || letter == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        let &(_, nanos) = NANOS.iter().find(|(name, _)| *name == unit)?;
        total = total.checked_add(scaled(digits, nanos)?)?;
        rest = after;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

/// A decimal number of units, cut to whole nanoseconds.
fn scaled(digits: &str, nanos: i64) -> Option<i128> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    // Further digits are less than a nanosecond of an hour.
    let fraction = &fraction[..fraction.len().min(18)];
    let part: i128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let part = part * i128::from(nanos) / 10_i128.pow(u32::try_from(fraction.len()).ok()?);
    whole.checked_mul(i128::from(nanos))?.checked_add(part)
}

/// `Duration.String`: `1h0m0s`, `1.5s`, `20ms`.
pub(super) fn show_duration(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let size = nanos.unsigned_abs();
    let decimal = |unit: u64, name: &str| {
        let fraction = format!("{:0width$}", size % unit, width = unit.ilog10() as usize);
        let fraction = fraction.trim_end_matches('0');
        let dot = if fraction.is_empty() { "" } else { "." };
        format!("{sign}{}{dot}{fraction}{name}", size / unit)
    };
    match size {
        0 => "0s".to_owned(),
        1..1_000 => format!("{sign}{size}ns"),
        1_000..1_000_000 => decimal(1_000, "µs"),
        1_000_000..1_000_000_000 => decimal(1_000_000, "ms"),
        _ => {
            let minutes = size / 60_000_000_000;
            let mut text = sign.to_owned();
            // Writing to a string does not fail.
            if minutes >= 60 {
                let _ = write!(text, "{}h", minutes / 60);
            }
            if minutes > 0 {
                let _ = write!(text, "{}m", minutes % 60);
            }
            let left = size % 60_000_000_000;
            let fraction = format!("{:09}", left % 1_000_000_000);
            let fraction = fraction.trim_end_matches('0');
            let dot = if fraction.is_empty() { "" } else { "." };
            let _ = write!(text, "{}{dot}{fraction}s", left / 1_000_000_000);
            text
        }
    }
}

/// One record of `encoding/csv`: fields between commas, in quotes where a comma belongs to one.
pub(super) fn parse_csv(text: &str) -> Result<Vec<String>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let mut fields = Vec::new();
    let mut rest = text;
    loop {
        let (field, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted_field(quoted)?,
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                if rest[..end].contains('"') {
                    return Err("has a quotation mark in the middle of an item".into());
                }
                (rest[..end].to_owned(), &rest[end..])
            }
        };
        fields.push(field);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None => return Ok(fields),
        }
    }
}

/// Returns the text before the closing quotation mark, and the rest.
fn quoted_field(text: &str) -> Result<(String, &str), String> {
    let mut field = String::new();
    let mut rest = text;
    loop {
        let end = rest.find('"').ok_or("has a quotation mark that is not closed")?;
        field.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            // Two of them are one of the text's own.
            Some(more) => {
                field.push('"');
                rest = more;
            }
            None if rest.is_empty() || rest.starts_with(',') => return Ok((field, rest)),
            None => return Err("has text behind a closing quotation mark".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_go_reads_them() {
        let check = |text, want| assert_eq!(parse_int(text), want, "{text}");
        check("10", Some(10));
        check("-7", Some(-7));
        check("+7", Some(7));
        check("0x1F", Some(31));
        check("010", Some(8));
        check("0b101", Some(5));
        check("1_000", Some(1000));
        check("0", Some(0));
        check("-9223372036854775808", Some(i64::MIN));
        for bad in ["", "-", "1__0", "_1", "1_", "09", "1.5", "ten", "0x", "9223372036854775808", "--1", "-+1"] {
            check(bad, None);
        }
    }

    #[test]
    fn fractions_are_read_as_go_reads_them() {
        let read = |text| match parse_float(text)? {
            Float::Decimal(text) => text.parse::<f64>().ok(),
            Float::Hexadecimal(number) => Some(number),
        };
        let check = |text, want: f64| assert_eq!(read(text), Some(want), "{text}");
        check("1.5", 1.5);
        check("1_0.5", 10.5);
        check("+1e3", 1000.0);
        check(".5", 0.5);
        check("-0x1p-2", -0.25);
        check("0x_1.8P1", 3.0);
        check("0xFp0", 15.0);
        check("-Infinity", f64::NEG_INFINITY);
        assert!(read("NaN").is_some_and(f64::is_nan));
        for bad in ["", "_1", "1_", "1__0", "1_.5", "1._5", "1e_3", "0x1", "0x", "0xp1", "0x1pz", "-nan", "1,5", " 1"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn durations_are_read_and_shown_as_go_does() {
        let check = |text, nanos: i64, shown: &str| {
            assert_eq!(parse_duration(text), Some(nanos), "{text}");
            assert_eq!(show_duration(nanos), shown, "{text}");
        };
        check("0", 0, "0s");
        check("1h2m3s", 3_723_000_000_000, "1h2m3s");
        check("12h", 43_200_000_000_000, "12h0m0s");
        check("90s", 90_000_000_000, "1m30s");
        check("1.5s", 1_500_000_000, "1.5s");
        check("-.5h", -1_800_000_000_000, "-30m0s");
        check("1h30m0.25s", 5_400_250_000_000, "1h30m0.25s");
        check("20ms", 20_000_000, "20ms");
        check("1.5us", 1_500, "1.5µs");
        check("7ns", 7, "7ns");
        for bad in ["", "5", "s", "1x", "1h2", "-", ".s", "1..5s", "3000000h", "1 s"] {
            assert_eq!(parse_duration(bad), None, "{bad}");
        }
    }

    #[test]
    fn lists_are_split_as_go_splits_csv() {
        let check = |text, want: &[&str]| assert_eq!(parse_csv(text).unwrap(), want, "{text}");
        check("", &[]);
        check("a", &["a"]);
        check("a,b", &["a", "b"]);
        check("a,,b,", &["a", "", "b", ""]);
        check(r#""a,b",c"#, &["a,b", "c"]);
        check(r#""say ""hi""",c"#, &[r#"say "hi""#, "c"]);
        for bad in [r#"a"b"#, r#""a"#, r#""a"b"#] {
            assert!(parse_csv(bad).is_err(), "{bad}");
        }
    }
}

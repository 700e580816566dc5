//! The syntax of quantities.
//!
//! ```text
//! quantity = [ "+" | "-" ] number suffix
//! number   = digits [ "." [ digits ] ] | "." digits
//! suffix   = "" | "n" | "u" | "m" | "k" | "M" | "G" | "T" | "P" | "E"
//!          | "Ki" | "Mi" | "Gi" | "Ti" | "Pi" | "Ei"
//!          | ( "e" | "E" ) [ "+" | "-" ] digits
//! ```
//! `1E` is ten to the eighteenth; `1E3` and `1e3` are a thousand.

use std::str::FromStr;

use super::{BINARY_NANOS_MAX, Format, NANOS, NANOS_MAX, Quantity};

/// A text that is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseQuantityError {
    /// It is not a number with a suffix.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$': {0:?}")]
    Format(String),
    /// The suffix is unknown.
    #[error("unable to parse quantity's suffix: {0:?}")]
    Suffix(String),
}

/// The factor of a suffix: 10^ten · 2^two.
struct Suffix {
    ten: i64,
    two: u32,
    format: Format,
}

// === impl Quantity ===

impl FromStr for Quantity {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Self, ParseQuantityError> {
        let malformed = || ParseQuantityError::Format(text.to_owned());
        let (negative, unsigned) = match text.as_bytes() {
            [b'-', ..] => (true, &text[1..]),
            [b'+', ..] => (false, &text[1..]),
            _ => (false, text),
        };
        let (whole, rest) = split_digits(unsigned);
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), split_digits);
        if whole.is_empty() && fraction.is_empty() || !looks_like_suffix(suffix) {
            return Err(malformed());
        }
        let suffix = Suffix::named(suffix).ok_or_else(|| ParseQuantityError::Suffix(text.to_owned()))?;

        let mut nanos = suffix.nanos(whole, fraction);
        let mut format = suffix.format;
        if format == Format::BinarySi {
            nanos = nanos.min(BINARY_NANOS_MAX);
            if 0 < nanos && nanos < NANOS {
                format = Format::DecimalSi;
            }
        }
        Ok(Self::from_nanos(if negative { -nanos } else { nanos }, format))
    }
}

// === impl Suffix ===

impl Suffix {
    fn named(text: &str) -> Option<Self> {
        let decimal = |ten| Some(Self { ten, two: 0, format: Format::DecimalSi });
        let binary = |two| Some(Self { ten: 0, two, format: Format::BinarySi });
        match text {
            "" => decimal(0),
            "n" => decimal(-9),
            "u" => decimal(-6),
            "m" => decimal(-3),
            "k" => decimal(3),
            "M" => decimal(6),
            "G" => decimal(9),
            "T" => decimal(12),
            "P" => decimal(15),
            "E" => decimal(18),
            "Ki" => binary(10),
            "Mi" => binary(20),
            "Gi" => binary(30),
            "Ti" => binary(40),
            "Pi" => binary(50),
            "Ei" => binary(60),
            _ => {
                let ten = text.strip_prefix(['e', 'E'])?.parse().ok()?;
                Some(Self { ten, two: 0, format: Format::DecimalExponent })
            }
        }
    }

    /// `whole.fraction` times this suffix in billionths: exact, rounded up to a whole number of them, and no more than
    /// [`NANOS_MAX`].
    ///
    /// The power of ten moves the decimal point; each digit before it counts a power of ten of `unit`, each digit behind
    /// it a tenth, a hundredth and so on.
    fn nanos(&self, whole: &str, fraction: &str) -> i128 {
        let unit = NANOS << self.two;
        let digits = whole.bytes().chain(fraction.bytes()).map(|digit| i128::from(digit - b'0'));
        let length = whole.len() + fraction.len();
        let point = self.ten.saturating_add(whole.len() as i64);
        let before = point.clamp(0, length as i64) as usize;
        let behind = point.saturating_neg().max(0);
        let ten_times = |number: i128| number.saturating_mul(10).min(NANOS_MAX);

        let mut integer = digits.clone().take(before).fold(0, |sum, digit| ten_times(sum).saturating_add(digit));
        let mut zeros_due = point.saturating_sub(length as i64);
        while zeros_due > 0 && 0 < integer && integer < NANOS_MAX {
            integer = ten_times(integer);
            zeros_due -= 1;
        }

        // From the last digit to the first. To round up at every step gives the same as to round up once at the end.
        let mut part = digits.rev().take(length - before).fold(0, |sum, digit| tenth_up(digit * unit + sum));
        let mut zeros_due = behind;
        while zeros_due > 0 && part > 1 {
            part = tenth_up(part);
            zeros_due -= 1;
        }
        integer.saturating_mul(unit).saturating_add(part).min(NANOS_MAX)
    }
}

fn tenth_up(number: i128) -> i128 {
    (number + 9) / 10
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

/// Letters of suffixes, a sign and digits; whether they mean anything is another question.
fn looks_like_suffix(text: &str) -> bool {
    let rest = text.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let rest = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    rest.bytes().all(|byte| byte.is_ascii_digit())
}

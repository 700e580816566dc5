//! Numbers with check digits, and colours. Follows `kube-openapi/pkg/internal/third_party/govalidator`.

use std::sync::LazyLock;

use regex::Regex;

/// Without white space and dashes.
fn sanitized(text: &str) -> Vec<u8> {
    let is_dropped = |byte: &u8| matches!(byte, b'\t' | b'\n' | 0x0C | b'\r' | b' ' | b'-');
    text.bytes().filter(|byte| !is_dropped(byte)).collect()
}

fn digit(byte: u8) -> i32 {
    i32::from(byte) - i32::from(b'0')
}

pub(super) fn is_isbn10(text: &str) -> bool {
    let digits = sanitized(text);
    let [body @ .., last] = &*digits else { return false };
    if body.len() != 9 || !body.iter().all(u8::is_ascii_digit) || !(last.is_ascii_digit() || *last == b'X') {
        return false;
    }
    let sum: i32 = (1..).zip(body).map(|(factor, byte)| factor * digit(*byte)).sum();
    let check = if *last == b'X' { 10 } else { digit(*last) };
    (sum + 10 * check) % 11 == 0
}

pub(super) fn is_isbn13(text: &str) -> bool {
    let digits = sanitized(text);
    if digits.len() != 13 || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let sum: i32 =
        digits[..12].iter().zip([1, 3].into_iter().cycle()).map(|(byte, factor)| factor * digit(*byte)).sum();
    digit(digits[12]) == (10 - sum % 10) % 10
}

pub(super) fn is_credit_card(text: &str) -> bool {
    static CARD: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$",
        )
        .ok()
    });
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    if !CARD.as_ref().is_some_and(|card| card.is_match(&digits)) {
        return false;
    }
    let doubled = |(at, byte): (usize, u8)| match (at % 2, digit(byte) * 2) {
        (1, twice) if twice >= 10 => twice % 10 + 1,
        (1, twice) => twice,
        _ => digit(byte),
    };
    digits.bytes().rev().enumerate().map(doubled).sum::<i32>() % 10 == 0
}

/// Nine digits in groups of three, two and four, with a separator after the first two: eleven characters.
pub(super) fn is_ssn(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 11
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            3 | 6 => matches!(byte, b'-' | b' '),
            _ => byte.is_ascii_digit(),
        })
}

pub(super) fn is_rgb_color(text: &str) -> bool {
    static COLOR: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let space = r"[\t\n\x0C\r ]*";
        let part = "(?:0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])";
        Regex::new(&format!(r"^rgb\({space}{part}{space},{space}{part}{space},{space}{part}{space}\)$")).ok()
    });
    COLOR.as_ref().is_some_and(|color| color.is_match(text))
}

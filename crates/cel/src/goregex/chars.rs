//! Characters, classes and counts of patterns.

use super::{Translated, error};

pub(super) const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
    "xdigit",
];

pub(super) fn class_char<'p>(rest: &'p str, whole: &str) -> Translated<(char, &'p str)> {
    match rest.chars().next() {
        None => error("missing closing ]", whole),
        Some('\\') => escaped_char(rest).map(|(char, length)| (char, &rest[length..])),
        Some(char) => Ok((char, &rest[char.len_utf8()..])),
    }
}

/// The character of an escape, and how long it is.
pub(super) fn escaped_char(rest: &str) -> Translated<(char, usize)> {
    let Some(char) = rest[1..].chars().next() else {
        return error("trailing backslash at end of expression", "");
    };
    let two = 1 + char.len_utf8();
    let bad = || error("invalid escape sequence", &rest[..two]);
    Ok(match char {
        'a' => ('\u{7}', 2),
        'f' => ('\u{c}', 2),
        'n' => ('\n', 2),
        'r' => ('\r', 2),
        't' => ('\t', 2),
        'v' => ('\u{b}', 2),
        '0'..='7' => {
            let digits = rest[1..].bytes().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
            if char != '0' && digits < 2 {
                return bad();
            }
            let code = u32::from_str_radix(&rest[1..=digits], 8).unwrap_or(0);
            (char::from_u32(code).unwrap_or_default(), 1 + digits)
        }
        'x' => {
            let (digits, length) = match rest[2..].strip_prefix('{') {
                Some(after) => {
                    let Some(end) = after.find('}') else { return bad() };
                    (&after[..end], end + 4)
                }
                None => (rest.get(2..4).unwrap_or_default(), 4),
            };
            match u32::from_str_radix(digits, 16).ok().and_then(char::from_u32) {
                Some(char) => (char, length),
                None => return bad(),
            }
        }
        char if char.is_ascii() && !char.is_ascii_alphanumeric() => (char, 2),
        _ => return bad(),
    })
}

pub(super) fn perl_class(char: char) -> Option<String> {
    let inside = match char.to_ascii_lowercase() {
        'd' => "0-9",
        's' => "\\t\\n\\x0C\\r ",
        'w' => "0-9A-Za-z_",
        _ => return None,
    };
    Some(if char.is_ascii_uppercase() { format!("[^{inside}]") } else { format!("[{inside}]") })
}

/// The length of `\pN` or `\p{Greek}`.
pub(super) fn unicode_class(rest: &str) -> Translated<usize> {
    match rest[2..].strip_prefix('{') {
        Some(after) => after.find('}').map_or_else(|| error("invalid character class range", rest), |end| Ok(end + 4)),
        None => rest[2..]
            .chars()
            .next()
            .map_or_else(|| error("invalid character class range", rest), |char| Ok(2 + char.len_utf8())),
    }
}

/// A count of repetitions such as `{2,3}`: how long it is, and its bounds.
pub(super) fn bounds(rest: &str) -> Option<(usize, u32, Option<u32>)> {
    let end = rest.find('}')?;
    let inside = &rest[1..end];
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let leading = text.len() > 1 && text.starts_with('0');
        (digits && !leading).then(|| text.parse().unwrap_or(u32::MAX))
    };
    let (low, high) = match inside.split_once(',') {
        None => (number(inside)?, None),
        Some((low, "")) => (number(low)?, None),
        Some((low, high)) => (number(low)?, Some(number(high)?)),
    };
    Some((end + 1, low, high))
}

/// A letter in all cases that fold to each other.
pub(super) fn cases(char: char) -> Vec<char> {
    let mut cases = vec![char];
    cases.extend(single_case(char.to_lowercase()).filter(|lower| *lower != char));
    cases.extend(single_case(char.to_uppercase()).filter(|upper| *upper != char));
    match char {
        'k' | 'K' => cases.push('\u{212a}'),
        's' | 'S' => cases.push('\u{17f}'),
        _ => {}
    }
    cases
}

fn single_case(mut chars: impl Iterator<Item = char>) -> Option<char> {
    let first = chars.next()?;
    chars.next().is_none().then_some(first)
}

pub(super) fn push_escaped(out: &mut String, char: char) {
    if char.is_ascii_punctuation() || char == ' ' {
        out.push_str(&regex::escape(&char.to_string()));
    } else {
        out.push(char);
    }
}

pub(super) fn push_class_char(out: &mut String, char: char) {
    if char.is_ascii_punctuation() {
        out.push('\\');
    }
    out.push(char);
}

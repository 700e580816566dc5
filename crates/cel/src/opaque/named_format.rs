//! Formats by name, and whether a text has one.

use steersman_base::validation;

use super::url::Url;
use crate::gotime::Timestamp;

/// A format.
#[derive(Debug)]
pub(crate) struct NamedFormat {
    /// The name in expressions.
    pub(crate) key: &'static str,
    pub(crate) name: &'static str,
    /// Returns the errors of a text, if any.
    pub(crate) check: fn(&str) -> Vec<String>,
    /// Length of the longest pattern it is matched with.
    pub(crate) regex_size: u64,
}

const DATE_TIME_PATTERN_LENGTH: u64 = 71;
const UUID_PATTERN_LENGTH: u64 = 70;

const fn format(key: &'static str, name: &'static str, regex_size: u64, check: fn(&str) -> Vec<String>) -> NamedFormat {
    NamedFormat { key, name, check, regex_size }
}

static FORMATS: [NamedFormat; 13] = [
    format("dns1123Label", "DNS1123Label", 30, validation::dns1123_label),
    format("dns1123Subdomain", "DNS1123Subdomain", 60, validation::dns1123_subdomain),
    format("dns1035Label", "DNS1035Label", 30, validation::dns1035_label),
    format("qualifiedName", "QualifiedName", 60, validation::qualified_name),
    format("dns1123LabelPrefix", "DNS1123LabelPrefix", 30, |text| validation::dns1123_label(&mask_dash(text))),
    format("dns1123SubdomainPrefix", "DNS1123SubdomainPrefix", 60, |text| {
        validation::dns1123_subdomain(&mask_dash(text))
    }),
    format("dns1035LabelPrefix", "DNS1035LabelPrefix", 30, |text| validation::dns1035_label(&mask_dash(text))),
    format("labelValue", "LabelValue", 40, validation::label_value),
    format("uri", "URI", 1103, |text| Url::parse_request(text).err().into_iter().collect()),
    format("uuid", "uuid", UUID_PATTERN_LENGTH, |text| problem(is_uuid(text), "does not match the UUID format")),
    format("byte", "byte", 84, |text| problem(is_base64(text), "invalid base64")),
    format("date", "date", DATE_TIME_PATTERN_LENGTH, |text| {
        problem(Timestamp::parse_date(text).is_some(), "invalid date")
    }),
    format("datetime", "datetime", DATE_TIME_PATTERN_LENGTH, |text| problem(is_date_time(text), "invalid datetime")),
];

/// The format of this name.
pub(crate) fn named(key: &str) -> Option<&'static NamedFormat> {
    FORMATS.iter().find(|format| format.key == key)
}

fn problem(good: bool, message: &str) -> Vec<String> {
    if good { Vec::new() } else { vec![message.to_owned()] }
}

/// A prefix may end with a dash, because something follows.
fn mask_dash(text: &str) -> String {
    match text.strip_suffix('-') {
        Some(before) if !before.is_empty() => {
            let keep = before.char_indices().last().map_or(0, |(at, _)| at);
            format!("{}a", &before[..keep])
        }
        _ => text.to_owned(),
    }
}

fn is_uuid(text: &str) -> bool {
    let mut rest = text.as_bytes();
    for (at, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if at > 0 {
            rest = rest.strip_prefix(b"-").unwrap_or(rest);
        }
        if rest.len() < length || !rest[..length].iter().all(u8::is_ascii_hexdigit) {
            return false;
        }
        rest = &rest[length..];
    }
    rest.is_empty()
}

fn is_base64(text: &str) -> bool {
    let bytes = text.as_bytes();
    let content = text.trim_end_matches('=');
    !bytes.is_empty()
        && bytes.len().is_multiple_of(4)
        && bytes.len() - content.len() <= 2
        && content.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/')
}

fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let date = parts.next().unwrap_or_default();
    let Some(time) = parts.next() else { return false };
    if text.len() < 4 || Timestamp::parse_date(date).is_none() {
        return false;
    }
    let digits = |from: usize| time.get(from..from + 2).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let (Some(hour), Some(minute), Some(second)) = (digits(0), digits(3), digits(6)) else { return false };
    if time.as_bytes()[2] != b':' || time.as_bytes()[5] != b':' || hour > "23" || minute > "59" || second > "59" {
        return false;
    }
    let mut rest = &time[8..];
    // Any character may stand where the point is meant.
    let fraction = rest.char_indices().nth(1).map_or("", |(at, _)| &rest[at..]);
    let fraction_len = fraction.bytes().take_while(u8::is_ascii_digit).count();
    if fraction_len > 0 && !rest.starts_with(['+', '-']) {
        rest = &fraction[fraction_len..];
    }
    match rest.as_bytes() {
        b"z" => true,
        [b'+' | b'-', h1, h2, b':', m1, m2] => [h1, h2, m1, m2].iter().all(|byte| byte.is_ascii_digit()),
        _ => false,
    }
}

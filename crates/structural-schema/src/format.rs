//! Formats of strings: which are checked, and how.
//!
//! Follows `apiextensions-apiserver/pkg/apiserver/validation/formats.go` and `kube-openapi/pkg/validation/strfmt`; dashes in
//! the name of a format do not matter.

mod email;
mod net;
mod number;
mod time;
mod uri;

use std::sync::LazyLock;

use regex::Regex;

use crate::schema::TypeName;

/// A check of a string of a format.
type Check = fn(&str) -> bool;

/// The formats of strings, by their name without dashes.
const FORMATS: &[(&str, Check)] = &[
    ("bsonobjectid", |text| text.len() == 24 && is_hex(text)),
    ("uri", uri::is_request_uri),
    ("email", email::is_address),
    ("hostname", is_hostname),
    ("ipv4", |text| text.contains('.') && net::ip_sloppy(text).is_some()),
    ("ipv6", |text| text.contains(':') && text.parse::<std::net::IpAddr>().is_ok()),
    ("cidr", net::is_cidr_sloppy),
    ("mac", net::is_mac),
    ("uuid", |text| is_uuid(text, None)),
    ("uuid3", |text| is_uuid(text, Some('3'))),
    ("uuid4", |text| is_uuid(text, Some('4'))),
    ("uuid5", |text| is_uuid(text, Some('5'))),
    ("isbn", |text| number::is_isbn10(text) || number::is_isbn13(text)),
    ("isbn10", number::is_isbn10),
    ("isbn13", number::is_isbn13),
    ("creditcard", number::is_credit_card),
    ("ssn", number::is_ssn),
    ("hexcolor", is_hex_color),
    ("rgbcolor", number::is_rgb_color),
    ("byte", is_base64),
    ("password", |_| true),
    ("date", time::is_date),
    ("duration", time::is_duration),
    ("datetime", time::is_date_time),
    ("k8sshortname", is_short_name),
    ("k8slongname", is_long_name),
];

/// The check of a format of strings, if it is one that is checked.
pub(crate) fn check(format: &str) -> Option<Check> {
    if format.is_empty() {
        return None;
    }
    let same = |known: &str| format.chars().filter(|c| *c != '-').eq(known.chars());
    FORMATS.iter().find(|(known, _)| same(known)).map(|(_, check)| *check)
}

/// Whether a format means something for a type; others are ignored.
#[must_use]
pub fn is_supported(format: &str, type_name: &TypeName) -> bool {
    match type_name {
        TypeName::None | TypeName::String => check(format).is_some(),
        TypeName::Integer => matches!(format, "int32" | "int64"),
        TypeName::Number => matches!(format, "float" | "double"),
        _ => false,
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_hostname(text: &str) -> bool {
    static HOSTNAME: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$",
        )
        .ok()
    });
    text.len() <= 255
        && text.split('.').all(|part| part.len() <= 63)
        && HOSTNAME.as_ref().is_some_and(|regex| regex.is_match(text))
}

/// Five runs of hexadecimal digits, with or without dashes between them.
fn is_uuid(text: &str, version: Option<char>) -> bool {
    let mut rest = text;
    for (at, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if at > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((run, after)) = rest.split_at_checked(length) else { return false };
        let begins_right = match (at, version) {
            (2, Some(version)) => run.starts_with(version),
            (3, Some('4' | '5')) => run.starts_with(['8', '9', 'a', 'b', 'A', 'B']),
            _ => true,
        };
        if !is_hex(run) || !begins_right {
            return false;
        }
        rest = after;
    }
    rest.is_empty()
}

fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && is_hex(digits)
}

/// Base 64 with padding; not empty.
fn is_base64(text: &str) -> bool {
    let digits = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && digits.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

fn is_short_name(text: &str) -> bool {
    text.len() <= 63 && is_label(text)
}

fn is_long_name(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_label)
}

fn is_label(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.bytes().all(|byte| is_inner(byte) || byte == b'-')
        && text.bytes().next().is_some_and(is_inner)
        && text.bytes().last().is_some_and(is_inner)
}

//! URIs, as `net/url.ParseRequestURI` of Go 1.26 reads them.

use std::net::{IpAddr, Ipv6Addr};

/// The part of a URI, which decides what may be escaped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Host,
    Zone,
    Other,
}

/// Whether this is an absolute URI or an absolute path.
pub(super) fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|byte| byte < b' ' || byte == 0x7F) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = scheme(text) else { return false };
    let rest = rest.split_once('?').map_or(rest, |(rest, _)| rest);
    if !rest.starts_with('/') {
        return !scheme.is_empty();
    }
    let path = match rest.strip_prefix("//").filter(|_| !scheme.is_empty()) {
        None => rest,
        Some(after) => {
            let end = after.find('/').unwrap_or(after.len());
            if !is_authority(scheme, &after[..end]) {
                return false;
            }
            &after[end..]
        }
    };
    unescape(path, Part::Other).is_some()
}

/// The scheme, which may be empty, and the rest; `None` if it is missing before `:`.
fn scheme(text: &str) -> Option<(&str, &str)> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return None,
            b':' => return Some((&text[..at], &text[at + 1..])),
            _ => return Some(("", text)),
        }
    }
    Some(("", text))
}

fn is_authority(scheme: &str, authority: &str) -> bool {
    let Some((user, host)) = authority.rsplit_once('@') else { return is_host(scheme, authority) };
    let is_user = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    is_host(scheme, host) && user.chars().all(is_user) && unescape(user, Part::Other).is_some()
}

fn is_host(scheme: &str, host: &str) -> bool {
    match host.rfind('[') {
        Some(0) => {
            let Some((literal, port)) = host[1..].rsplit_once(']') else { return false };
            let zone_at = literal.find("%25");
            let address = zone_at.map_or(literal, |at| &literal[..at]);
            let zone = zone_at.map(|at| &literal[at + 3..]);
            is_optional_port(port)
                && unescape(address, Part::Host).is_some_and(|address| address.parse::<Ipv6Addr>().is_ok())
                && zone.is_none_or(|zone| !zone.is_empty() && unescape(zone, Part::Zone).is_some())
        }
        Some(_) => false,
        None => {
            let is_strict = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
            let colon = if is_strict { host.find(':') } else { host.rfind(':') };
            colon.is_none_or(|at| is_optional_port(&host[at..])) && unescape(host, Part::Host).is_some()
        }
    }
}

fn is_optional_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The text without escapes, if they are right.
fn unescape(text: &str, part: Part) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        if byte != b'%' {
            if part != Part::Other && byte.is_ascii() && !is_host_byte(byte) {
                return None;
            }
            out.push(byte);
            at += 1;
            continue;
        }
        let hex = text.get(at + 1..at + 3).filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        let value = u8::from_str_radix(hex, 16).ok()?;
        let is_allowed = match part {
            Part::Other => true,
            Part::Host => value >= 0x80 || hex == "25",
            Part::Zone => hex == "25" || value == b' ' || is_host_byte(value),
        };
        if !is_allowed {
            return None;
        }
        out.push(value);
        at += 3;
    }
    Some(String::from_utf8_lossy(&out).into_owned())
}

fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=?@!'()*[]<>\"".contains(&byte) && !b"/?@".contains(&byte)
}

/// An address as `net.ParseIP` reads it.
pub(super) fn parse_ip(text: &str) -> Option<IpAddr> {
    text.parse().ok()
}

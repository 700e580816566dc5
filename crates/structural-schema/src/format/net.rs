//! Addresses. Go read leading zeros in IPv4 addresses before 1.17, and `k8s.io/utils/net` still does.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address, where an IPv4 part may have leading zeros.
pub(super) fn ip_sloppy(text: &str) -> Option<IpAddr> {
    if !text.contains(':') {
        return ipv4_sloppy(text).map(IpAddr::V4);
    }
    if text.contains('%') {
        return None;
    }
    let Some((before, last)) = text.rsplit_once(':').filter(|(_, last)| last.contains('.')) else {
        return text.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    };
    format!("{before}:{}", ipv4_sloppy(last)?).parse::<Ipv6Addr>().ok().map(IpAddr::V6)
}

fn ipv4_sloppy(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next()?;
        let is_digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        *octet = Some(part).filter(|_| is_digits)?.parse().ok()?;
    }
    parts.next().is_none().then(|| Ipv4Addr::from(octets))
}

/// An address and the length of a prefix.
pub(super) fn is_cidr_sloppy(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let bits_max = match ip_sloppy(address) {
        Some(IpAddr::V4(_)) => 32,
        Some(IpAddr::V6(_)) => 128,
        None => return false,
    };
    let is_digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    is_digits && length.parse::<u32>().is_ok_and(|length| length <= bits_max)
}

/// A hardware address of 6, 8 or 20 bytes.
pub(super) fn is_mac(text: &str) -> bool {
    let is_right = |bytes: usize| matches!(bytes, 6 | 8 | 20);
    let runs = |separator: char, length: usize| {
        let mut count = 0;
        let all = text.split(separator).all(|run| {
            count += 1;
            run.len() == length && super::is_hex(run)
        });
        all.then_some(count)
    };
    let Some(&third) = text.as_bytes().get(2) else { return false };
    match third {
        b':' | b'-' => runs(char::from(third), 2).is_some_and(is_right),
        _ if text.as_bytes().get(4) == Some(&b'.') => runs('.', 4).is_some_and(|count| is_right(2 * count)),
        _ => text.len().is_multiple_of(2) && is_right(text.len() / 2) && super::is_hex(text),
    }
}

//! Addresses and networks, read as Go's `net/netip` reads them, with its errors.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::gofmt::quote;

/// An address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ip(pub(crate) IpAddr);

/// A network: an address in it, and how many bits all its addresses share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cidr {
    pub(crate) ip: IpAddr,
    pub(crate) bits: u8,
}

struct Problem {
    message: &'static str,
    at: Option<String>,
}

fn problem<T>(message: &'static str) -> Result<T, Problem> {
    Err(Problem { message, at: None })
}

fn problem_at<T>(message: &'static str, at: &[u8]) -> Result<T, Problem> {
    Err(Problem { message, at: Some(String::from_utf8_lossy(at).into_owned()) })
}

// === impl Ip ===

impl Ip {
    /// Reads an address as Kubernetes allows it in expressions.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let quoted = quote(text);
        let (ip, zone) = parse_addr(text)
            .map_err(|error| format!("IP Address {quoted} parse error during conversion from string: {error}"))?;
        if zone {
            return Err(format!("IP address {quoted} with zone value is not allowed"));
        }
        if is_mapped(ip) {
            return Err(format!("IPv4-mapped IPv6 address {quoted} is not allowed"));
        }
        Ok(Self(ip))
    }

    pub(crate) fn is_v4(self) -> bool {
        self.0.is_ipv4()
    }

    pub(crate) fn is_loopback(self) -> bool {
        self.0.is_loopback()
    }

    pub(crate) fn is_link_local_multicast(self) -> bool {
        match self.0 {
            IpAddr::V4(ip) => ip.octets()[..3] == [224, 0, 0],
            IpAddr::V6(ip) => ip.segments()[0] & 0xff0f == 0xff02,
        }
    }

    pub(crate) fn is_link_local_unicast(self) -> bool {
        match self.0 {
            IpAddr::V4(ip) => ip.is_link_local(),
            IpAddr::V6(ip) => ip.segments()[0] & 0xffc0 == 0xfe80,
        }
    }

    pub(crate) fn is_global_unicast(self) -> bool {
        let broadcast = self.0 == IpAddr::V4(Ipv4Addr::BROADCAST);
        !broadcast
            && !self.0.is_unspecified()
            && !self.0.is_loopback()
            && !self.0.is_multicast()
            && !self.is_link_local_unicast()
    }
}

impl fmt::Display for Ip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// === impl Cidr ===

impl Cidr {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let prefix = "network address parse error during conversion from string: ";
        let error = |message: &str| format!("{prefix}netip.ParsePrefix({}): {message}", quote(text));
        let (address, bits) = text.rsplit_once('/').ok_or_else(|| error("no '/'"))?;
        let (ip, zone) = parse_addr(address).map_err(|message| error(&message))?;
        if zone {
            return Err(error("IPv6 zones cannot be present in a prefix"));
        }
        let bad = || error(&format!("bad bits after slash: {}", quote(bits)));
        if bits.len() > 1 && !matches!(bits.as_bytes()[0], b'1'..=b'9') {
            return Err(bad());
        }
        let bits: u32 = bits.parse().map_err(|_| bad())?;
        if bits > if ip.is_ipv4() { 32 } else { 128 } {
            return Err(error("prefix length out of range"));
        }
        if is_mapped(ip) {
            return Err(format!("IPv4-mapped IPv6 address {} is not allowed", quote(text)));
        }
        Ok(Self { ip, bits: bits as u8 })
    }

    /// The address with all but the shared bits zero.
    pub(crate) fn masked(self) -> Self {
        Self { ip: mask(self.ip, self.bits), ..self }
    }

    pub(crate) fn contains(self, ip: Ip) -> bool {
        self.ip.is_ipv4() == ip.is_v4() && mask(self.ip, self.bits) == mask(ip.0, self.bits)
    }

    pub(crate) fn contains_cidr(self, other: Self) -> bool {
        self.bits <= other.bits && self.contains(Ip(other.ip))
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ip, self.bits)
    }
}

fn mask(ip: IpAddr, bits: u8) -> IpAddr {
    match ip {
        IpAddr::V4(ip) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            Ipv4Addr::from_bits(ip.to_bits() & mask).into()
        }
        IpAddr::V6(ip) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            Ipv6Addr::from_bits(ip.to_bits() & mask).into()
        }
    }
}

fn is_mapped(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some())
}

/// An address, and whether it has a zone.
fn parse_addr(text: &str) -> Result<(IpAddr, bool), String> {
    let parsed = match text.bytes().find(|byte| b".:%".contains(byte)) {
        Some(b'.') => parse_v4(text.as_bytes()).map(|ip| (IpAddr::from(ip), false)),
        Some(b':') => parse_v6(text).map(|(ip, zone)| (IpAddr::from(ip), zone)),
        Some(_) => problem("missing IPv6 address"),
        None => problem("unable to parse IP"),
    };
    parsed.map_err(|Problem { message, at }| {
        let at = at.map_or_else(String::new, |at| format!(" (at {})", quote(&at)));
        format!("ParseAddr({}): {message}{at}", quote(text))
    })
}

fn parse_v4(text: &[u8]) -> Result<[u8; 4], Problem> {
    let mut fields = [0; 4];
    let mut value: u32 = 0;
    let mut digits = 0;
    let mut field = 0;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                if digits == 1 && value == 0 {
                    return problem("IPv4 field has octet with leading zero");
                }
                value = value * 10 + u32::from(byte - b'0');
                digits += 1;
                if value > 255 {
                    return problem("IPv4 field has value >255");
                }
            }
            b'.' => {
                if at == 0 || at == text.len() - 1 || text[at - 1] == b'.' {
                    return problem_at("IPv4 field must have at least one digit", &text[at..]);
                }
                if field == 3 {
                    return problem("IPv4 address too long");
                }
                fields[field] = value as u8;
                field += 1;
                value = 0;
                digits = 0;
            }
            _ => return problem_at("unexpected character", &text[at..]),
        }
    }
    if field < 3 {
        return problem("IPv4 address too short");
    }
    fields[3] = value as u8;
    Ok(fields)
}

fn parse_v6(text: &str) -> Result<([u8; 16], bool), Problem> {
    let (address, zone) = text.split_once('%').map_or((text, None), |(address, zone)| (address, Some(zone)));
    if zone == Some("") {
        return problem("zone must be a non-empty string");
    }
    let mut rest = address.as_bytes();
    let mut ip = [0; 16];
    let mut ellipsis = None;
    if let Some(after) = rest.strip_prefix(b"::") {
        ellipsis = Some(0);
        rest = after;
        if rest.is_empty() {
            return Ok((ip, zone.is_some()));
        }
    }
    let mut at = 0;
    while at < 16 {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        if digits > 4 {
            return problem_at("each group must have 4 or less digits", rest);
        }
        if digits == 0 {
            return problem_at("each colon-separated field must have at least one digit", rest);
        }
        if rest.get(digits) == Some(&b'.') {
            if ellipsis.is_none() && at != 12 {
                return problem_at("embedded IPv4 address must replace the final 2 fields of the address", rest);
            }
            if at + 4 > 16 {
                return problem_at("too many hex fields to fit an embedded IPv4 at the end of the address", rest);
            }
            ip[at..at + 4].copy_from_slice(&parse_v4(rest)?);
            rest = &[];
            at += 4;
            break;
        }
        let group = std::str::from_utf8(&rest[..digits]).ok().and_then(|group| u16::from_str_radix(group, 16).ok());
        ip[at..at + 2].copy_from_slice(&group.unwrap_or(0).to_be_bytes());
        at += 2;
        rest = &rest[digits..];
        match rest {
            [] => break,
            [b':'] => return problem_at("colon must be followed by more characters", rest),
            [b':', b':', after @ ..] => {
                if ellipsis.is_some() {
                    return problem_at("multiple :: in address", &rest[1..]);
                }
                ellipsis = Some(at);
                rest = after;
                if rest.is_empty() {
                    break;
                }
            }
            [b':', after @ ..] => rest = after,
            _ => return problem_at("unexpected character, want colon", rest),
        }
    }
    if !rest.is_empty() {
        return problem_at("trailing garbage after address", rest);
    }
    Ok((expand(ip, at, ellipsis)?, zone.is_some()))
}

/// The address with zeros where the `::` is.
fn expand(mut ip: [u8; 16], length: usize, ellipsis: Option<usize>) -> Result<[u8; 16], Problem> {
    match ellipsis {
        None if length < 16 => problem("address string too short"),
        Some(_) if length == 16 => problem("the :: must expand to at least one field of zeros"),
        Some(ellipsis) => {
            let tail = length - ellipsis;
            ip.copy_within(ellipsis..length, 16 - tail);
            ip[ellipsis..16 - tail].fill(0);
            Ok(ip)
        }
        None => Ok(ip),
    }
}

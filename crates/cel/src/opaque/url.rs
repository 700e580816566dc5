//! URLs, read as Go's `net/url` reads them.

use std::collections::BTreeMap;

use crate::gofmt::quote;

/// A URL.
#[derive(Clone, Debug)]
pub(crate) struct Url {
    /// As it was written, but for the case of the scheme.
    pub(crate) text: String,
    pub(crate) scheme: String,
    pub(crate) host: String,
    path: String,
    query: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Path,
    Host,
    Query,
}

// === impl Url ===

impl Url {
    /// Reads a URL as the request line of HTTP has it; the error is Go's.
    pub(crate) fn parse_request(text: &str) -> Result<Self, String> {
        Self::parse(text, true)
    }

    /// Reads a URL that may have a fragment, and a host without a scheme.
    pub(crate) fn parse_any(text: &str) -> Result<Self, String> {
        Self::parse(text.split('#').next().unwrap_or_default(), false)
    }

    fn parse(text: &str, via_request: bool) -> Result<Self, String> {
        parse(text, via_request).map_err(|message| format!("parse {}: {message}", quote(text)))
    }

    /// The host without the port, and without the brackets of an address.
    pub(crate) fn hostname(&self) -> &str {
        let host = self.port_colon().map_or(&*self.host, |at| &self.host[..at]);
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    pub(crate) fn port(&self) -> &str {
        self.port_colon().map_or("", |at| &self.host[at + 1..])
    }

    fn port_colon(&self) -> Option<usize> {
        let at = self.host.rfind(':')?;
        let digits = self.host[at + 1..].bytes().all(|byte| byte.is_ascii_digit());
        (digits && !self.host[at..].contains(']')).then_some(at)
    }

    pub(crate) fn escaped_path(&self) -> String {
        let is_valid = |byte: u8| b"!$&'()*+,;=:@[]%".contains(&byte) || !should_escape(byte);
        if self.path.bytes().all(is_valid) || self.path == "*" {
            return self.path.clone();
        }
        let path = unescape(&self.path, Part::Path).unwrap_or_default();
        let mut escaped = String::new();
        for byte in path {
            if should_escape(byte) {
                escaped.push_str(&format!("%{byte:02X}"));
            } else {
                escaped.push(byte.into());
            }
        }
        escaped
    }

    /// The parameters by their names.
    pub(crate) fn query(&self) -> BTreeMap<String, Vec<String>> {
        let mut parameters: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for pair in self.query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let text = |part| unescape(part, Part::Query).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            if let (Ok(name), Ok(value)) = (text(name), text(value)) {
                parameters.entry(name).or_default().push(value);
            }
        }
        parameters
    }
}

fn should_escape(byte: u8) -> bool {
    !byte.is_ascii_alphanumeric() && !b"-_.~$&+,/:;=@".contains(&byte)
}

fn parse(text: &str, via_request: bool) -> Result<Url, String> {
    if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() {
        return Err("empty url".to_owned());
    }
    let mut url = Url {
        text: text.to_owned(),
        scheme: String::new(),
        host: String::new(),
        path: String::new(),
        query: String::new(),
    };
    if text == "*" {
        url.path = "*".to_owned();
        return Ok(url);
    }
    let (scheme, rest) = split_scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    if !scheme.is_empty() {
        url.text = format!("{}:{rest}", url.scheme);
    }
    let (mut rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    query.clone_into(&mut url.query);
    if !rest.starts_with('/') {
        // What has a scheme but no slash is opaque.
        return if scheme.is_empty() && via_request { Err("invalid URI for request".to_owned()) } else { Ok(url) };
    }
    if let Some(after) =
        rest.strip_prefix("//").filter(|_| !scheme.is_empty() || !via_request && !rest.starts_with("///"))
    {
        let slash = after.find('/').unwrap_or(after.len());
        url.host = parse_authority(&after[..slash])?;
        rest = &after[slash..];
    }
    unescape(rest, Part::Path)?;
    rest.clone_into(&mut url.path);
    Ok(url)
}

fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn parse_authority(authority: &str) -> Result<String, String> {
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    let host = parse_host(host)?;
    if let Some(user) = user {
        let valid = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
        if !user.bytes().all(valid) {
            return Err("net/url: invalid userinfo".to_owned());
        }
        unescape(user, Part::Path)?;
    }
    Ok(host)
}

fn parse_host(host: &str) -> Result<String, String> {
    let is_port = |text: &str| {
        text.is_empty() || text.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let port = if host.starts_with('[') {
        let close = host.rfind(']').ok_or("missing ']' in host")?;
        &host[close + 1..]
    } else {
        host.find(':').map_or("", |at| &host[at..])
    };
    if !is_port(port) {
        return Err(format!("invalid port {} after host", quote(port)));
    }
    let bytes = unescape(host, Part::Host)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn unescape(text: &str, part: Part) -> Result<Vec<u8>, String> {
    let source = text.as_bytes();
    let mut bytes = Vec::with_capacity(source.len());
    let mut at = 0;
    while at < source.len() {
        let byte = source[at];
        match byte {
            b'%' => {
                let code = text.get(at + 1..at + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
                let Some(code) = code.filter(|_| source[at + 1] != b'+') else {
                    let end = (at + 3).min(source.len());
                    let escape = String::from_utf8_lossy(&source[at..end]).into_owned();
                    return Err(format!("invalid URL escape {}", quote(&escape)));
                };
                if part == Part::Host && code < 0x80 && &source[at..at + 3] != b"%25" {
                    return Err(format!("invalid URL escape {}", quote(&text[at..at + 3])));
                }
                bytes.push(code);
                at += 3;
                continue;
            }
            b'+' if part == Part::Query => bytes.push(b' '),
            _ if part == Part::Host && byte < 0x80 && is_bad_host(byte) => {
                return Err(format!("invalid character {} in host name", quote(&char::from(byte).to_string())));
            }
            _ => bytes.push(byte),
        }
        at += 1;
    }
    Ok(bytes)
}

fn is_bad_host(byte: u8) -> bool {
    !byte.is_ascii_alphanumeric() && !b"-_.~!$&'()*+,;=:[]<>\"".contains(&byte)
}

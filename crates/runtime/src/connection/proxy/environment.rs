//! The proxy that the environment names: `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`, or the same in lower case.
//!
//! The rules are those of Go's `net/http`:
//!
//! 1. `HTTPS_PROXY` is for servers with `https://`, `HTTP_PROXY` for those with `http://`. A value without a scheme means an
//!    HTTP proxy; one that is no address is ignored.
//! 2. Servers at `localhost`, 127.0.0.0/8 and `::1` are always reached directly.
//! 3. `NO_PROXY` is a list, separated by commas, of servers that are reached directly: an address (`10.0.0.1`), a network
//!    (`10.0.0.0/8`), a domain and what is below it (`example.com`), only what is below it (`.example.com`,
//!    `*.example.com`), or everything (`*`). Addresses and domains may have a port; a domain never means an address.

use std::net::IpAddr;

use http::Uri;
use kube::Config;

use super::{bare, without_credentials};
use crate::connection::source::Environment;

/// An entry of `NO_PROXY`.
#[derive(Debug, PartialEq, Eq)]
enum Direct {
    Everything,
    Network(IpAddr, u8),
    Address(IpAddr, Option<String>),
    Domain {
        /// With a leading dot.
        suffix: String,
        port: Option<String>,
        /// Whether the domain itself is meant, too.
        itself: bool,
    },
}

/// Sets the proxy for a configuration that names none.
pub(in crate::connection) fn apply(config: &mut Config, environment: Environment<'_>) {
    if config.proxy_url.is_some() {
        return;
    }
    config.proxy_url = proxy_for(&config.cluster_url, environment);
    if let Some(proxy) = &config.proxy_url {
        let proxy = without_credentials(proxy);
        tracing::info!(proxy, server = %config.cluster_url, "the environment names a proxy for this server");
    }
}

/// Removes the proxy that kube itself has read from the environment: it may not know `NO_PROXY`, and [`apply`] does.
pub(in crate::connection) fn forget(config: &mut Config, environment: Environment<'_>) {
    let read_by_kube = first_set(["HTTPS_PROXY", "https_proxy"], environment).and_then(|text| text.parse::<Uri>().ok());
    config.proxy_url = config.proxy_url.take().filter(|proxy| read_by_kube.as_ref() != Some(proxy));
}

/// Returns the proxy for a server; `None`, if it is reached directly.
fn proxy_for(server: &Uri, environment: Environment<'_>) -> Option<Uri> {
    let (names, default_port) = match server.scheme_str() {
        Some("https") => (["HTTPS_PROXY", "https_proxy"], 443),
        Some("http") => (["HTTP_PROXY", "http_proxy"], 80),
        _ => return None,
    };
    let proxy = address(&first_set(names, environment)?)?;
    let host = bare(server.host()?).to_ascii_lowercase();
    let port = server.port_u16().unwrap_or(default_port).to_string();
    let ip = host.parse::<IpAddr>().ok().map(|ip| ip.to_canonical());
    if host == "localhost" || ip.is_some_and(|ip| ip.is_loopback()) {
        return None;
    }
    let list = first_set(["NO_PROXY", "no_proxy"], environment).unwrap_or_default();
    let is_direct = list.split(',').filter_map(Direct::parse).any(|entry| entry.matches(&host, &port, ip));
    (!is_direct).then_some(proxy)
}

fn first_set(names: [&str; 2], environment: Environment<'_>) -> Option<String> {
    let values = names.into_iter().filter_map(environment);
    values.filter_map(|value| value.into_string().ok()).find(|value| !value.is_empty())
}

fn address(text: &str) -> Option<Uri> {
    let whole = text.parse::<Uri>().ok().filter(|uri| uri.scheme().is_some() && uri.host().is_some());
    whole.or_else(|| format!("http://{text}").parse().ok())
}

// === impl Direct ===

impl Direct {
    /// Reads an entry; malformed ones are ignored.
    fn parse(entry: &str) -> Option<Self> {
        let entry = entry.trim().to_ascii_lowercase();
        if entry == "*" {
            return Some(Self::Everything);
        }
        if let Some((network, bits)) = entry.split_once('/')
            && let (Ok(network), Ok(bits)) = (network.parse::<IpAddr>(), bits.parse::<u8>())
            && bits <= if network.is_ipv4() { 32 } else { 128 }
        {
            return Some(Self::Network(network, bits));
        }
        let (host, port) = split_port(&entry);
        let port = port.map(str::to_owned);
        if let Ok(ip) = host.parse::<IpAddr>() {
            return Some(Self::Address(ip.to_canonical(), port));
        }
        let host = host.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(host);
        match host.strip_prefix('.') {
            _ if host.is_empty() => None,
            Some(_) => Some(Self::Domain { suffix: host.to_owned(), port, itself: false }),
            None => Some(Self::Domain { suffix: format!(".{host}"), port, itself: true }),
        }
    }

    fn matches(&self, host: &str, port: &str, ip: Option<IpAddr>) -> bool {
        let is_port =
            |wanted: &Option<String>| wanted.as_deref().is_none_or(|wanted| wanted.is_empty() || wanted == port);
        match self {
            Self::Everything => true,
            Self::Network(network, bits) => ip.is_some_and(|ip| contains(*network, *bits, ip)),
            Self::Address(address, wanted) => ip == Some(*address) && is_port(wanted),
            Self::Domain { suffix, port: wanted, itself } => {
                let is_host = host.ends_with(suffix) || (*itself && host == &suffix[1..]);
                ip.is_none() && is_host && is_port(wanted)
            }
        }
    }
}

/// Splits `host:port` and `[address]:port`; an IPv6 address without brackets has no port.
fn split_port(entry: &str) -> (&str, Option<&str>) {
    match entry.rsplit_once(':') {
        Some((host, port)) if host.starts_with('[') && host.ends_with(']') => (bare(host), Some(port)),
        Some((host, port)) if !host.contains(':') => (host, Some(port)),
        _ => (entry, None),
    }
}

/// Whether an address is in a network. One of IPv4 is in no network of IPv6.
fn contains(network: IpAddr, bits: u8, ip: IpAddr) -> bool {
    match (network, ip) {
        (IpAddr::V4(network), IpAddr::V4(ip)) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            (network.to_bits() ^ ip.to_bits()) & mask == 0
        }
        (IpAddr::V6(network), IpAddr::V6(ip)) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            (network.to_bits() ^ ip.to_bits()) & mask == 0
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    /// Returns the proxy of a server, in an environment.
    fn proxy(server: &str, variables: &[(&str, &str)]) -> Option<String> {
        let variables: Vec<_> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), OsString::from(value))).collect();
        let environment =
            move |name: &str| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        proxy_for(&server.parse().unwrap(), &environment).map(|proxy| proxy.to_string())
    }

    #[test]
    fn each_scheme_has_its_variable_and_upper_case_wins() {
        let both = [("HTTPS_PROXY", "http://secure:1"), ("HTTP_PROXY", "http://plain:2")];
        assert_eq!(proxy("https://api", &both).as_deref(), Some("http://secure:1/"));
        assert_eq!(proxy("http://api", &both).as_deref(), Some("http://plain:2/"));
        assert_eq!(proxy("https://api", &[("HTTP_PROXY", "http://plain:2")]), None);
        let lower = [("https_proxy", "http://lower:1"), ("HTTPS_PROXY", "http://upper:1")];
        assert_eq!(proxy("https://api", &lower).as_deref(), Some("http://upper:1/"));
        let empty = [("https_proxy", "http://lower:1"), ("HTTPS_PROXY", "")];
        assert_eq!(proxy("https://api", &empty).as_deref(), Some("http://lower:1/"), "an empty one is not set");
    }

    #[test]
    fn a_proxy_without_a_scheme_is_an_http_proxy_and_nonsense_is_ignored() {
        let given = |value: &str| proxy("https://api", &[("HTTPS_PROXY", value)]);
        assert_eq!(given("squid:3128").as_deref(), Some("http://squid:3128/"));
        assert_eq!(given("squid").as_deref(), Some("http://squid/"));
        assert_eq!(given("10.0.0.7:3128/").as_deref(), Some("http://10.0.0.7:3128/"));
        assert_eq!(given("socks5://hop:1080").as_deref(), Some("socks5://hop:1080/"));
        assert_eq!(given("not an address"), None);
    }

    #[test]
    fn a_proxy_that_is_configured_wins_and_one_that_kube_read_from_the_environment_is_read_again() {
        let environment = |name: &str| match name {
            "HTTPS_PROXY" => Some(OsString::from("http://squid:3128")),
            "NO_PROXY" => Some(OsString::from("internal")),
            _ => None,
        };
        for (server, configured, want) in [
            ("https://api", None, Some("http://squid:3128/")),
            ("https://api", Some("http://other:1"), Some("http://other:1/")),
            ("https://internal", Some("http://other:1"), Some("http://other:1/")),
            ("https://internal", Some("http://squid:3128"), None),
            ("https://api", Some("http://squid:3128"), Some("http://squid:3128/")),
        ] {
            let mut config = Config::new(server.parse().unwrap());
            config.proxy_url = configured.map(|proxy: &str| proxy.parse().unwrap());
            forget(&mut config, &environment);
            apply(&mut config, &environment);
            assert_eq!(config.proxy_url.map(|proxy| proxy.to_string()).as_deref(), want, "{server} {configured:?}");
        }
    }

    #[test]
    fn what_no_proxy_names_is_reached_directly() {
        let is_direct = |server: &str, list: &str| {
            proxy(server, &[("HTTPS_PROXY", "http://squid:3128"), ("NO_PROXY", list)]).is_none()
        };
        for (server, list, direct) in [
            // Go's answers (`golang.org/x/net/http/httpproxy`).
            ("https://localhost:6443", "", true),
            ("https://127.1.2.3", "", true),
            ("https://[::1]:6443", "", true),
            ("https://api.example.com", "*", true),
            ("https://api.example.com", "example.com", true),
            ("https://API.example.com", "EXAMPLE.com", true),
            ("https://example.com", "example.com", true),
            ("https://notexample.com", "example.com", false),
            ("https://example.com", ".example.com", false),
            ("https://api.example.com", ".example.com", true),
            ("https://example.com", "*.example.com", false),
            ("https://api.example.com", "*.example.com", true),
            ("https://api.example.com:6443", "example.com:6443", true),
            ("https://api.example.com", "example.com:443", true),
            ("https://api.example.com:6443", "example.com:443", false),
            ("https://10.1.2.3:6443", "10.0.0.0/8", true),
            ("https://11.1.2.3:6443", "10.0.0.0/8", false),
            ("https://10.1.2.3:6443", "0.0.0.0/0", true),
            ("https://10.1.2.3", "10.1.2.3", true),
            ("https://10.1.2.3:6443", "10.1.2.3:6443", true),
            ("https://10.1.2.3:6443", "10.1.2.3:443", false),
            ("https://[fd00::7]:6443", "fd00::/16", true),
            ("https://[fd00::7]:6443", "[fd00::7]:6443", true),
            ("https://[fd00::7]:6443", "fd00::7", true),
            ("https://[fe00::7]:6443", "fd00::/16", false),
            ("https://10.1.2.3", "2.3", false),
            ("https://10.1.2.3", "fd00::/16", false),
            ("https://api.example.com", "other.com , , :443, example.com", true),
            ("https://api.example.com", "10.0.0.0/99, :443, .", false),
        ] {
            assert_eq!(is_direct(server, list), direct, "{server} with NO_PROXY={list}");
        }
    }
}

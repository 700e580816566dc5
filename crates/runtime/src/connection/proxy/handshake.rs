//! The conversations that open a tunnel: HTTP `CONNECT`, and SOCKS 5 (RFC 1928 and 1929).

use std::io;
use std::net::IpAddr;

use http::Uri;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::{Credentials, bare};

/// The server at the end of a tunnel.
pub(super) struct Target<'a> {
    /// Without brackets.
    host: &'a str,
    port: u16,
}

/// The maximum size of an answer's head.
const HEAD_MAX: usize = 16 * 1024;

const VERSION: u8 = 5;
const NO_CREDENTIALS: u8 = 0;
const NAME_AND_PASSWORD: u8 = 2;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const DOMAIN: u8 = 3;
const IPV6: u8 = 4;

/// Asks an HTTP proxy for a tunnel.
///
/// # Errors
/// The proxy refuses it, or what it answers is not HTTP.
pub(super) async fn connect<S>(stream: &mut S, target: &Target<'_>, credentials: Option<&Credentials>) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let place = target.place();
    let mut request = format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n");
    if let Some(credentials) = credentials {
        request.push_str("Proxy-Authorization: ");
        request.push_str(&credentials.basic());
        request.push_str("\r\n");
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    let mut head = Vec::new();
    // Byte by byte: what follows belongs to the server.
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == HEAD_MAX {
            return Err(io::Error::other(format!("its answer to CONNECT is longer than {HEAD_MAX} bytes")));
        }
        head.push(stream.read_u8().await.map_err(|error| ended(error, "in its answer to CONNECT"))?);
    }
    let head = String::from_utf8_lossy(&head);
    let line = head.lines().next().unwrap_or_default();
    match line.split_once(' ') {
        Some((version, status)) if version.starts_with("HTTP/1.") => match status.split_whitespace().next() {
            Some("200") => Ok(()),
            _ => Err(io::Error::other(format!("it answers \"{}\" to CONNECT {place}", status.trim()))),
        },
        _ => Err(io::Error::other("its answer to CONNECT is not HTTP")),
    }
}

/// Asks a SOCKS proxy for a tunnel.
///
/// # Errors
/// The proxy refuses it, or what it answers is not SOCKS 5.
pub(super) async fn socks5<S>(stream: &mut S, target: &Target<'_>, credentials: Option<&Credentials>) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let hello: &[u8] = match credentials {
        None => &[VERSION, 1, NO_CREDENTIALS],
        Some(_) => &[VERSION, 2, NO_CREDENTIALS, NAME_AND_PASSWORD],
    };
    let [version, method] = ask(stream, hello).await?;
    if version != VERSION {
        return Err(io::Error::other("its answer is not SOCKS 5"));
    }
    match (method, credentials) {
        (NO_CREDENTIALS, _) => {}
        (NAME_AND_PASSWORD, Some(credentials)) => {
            let mut login = vec![1];
            push_short(&mut login, &credentials.name)?;
            push_short(&mut login, &credentials.password)?;
            let [_, refused] = ask(stream, &login).await?;
            if refused != 0 {
                return Err(io::Error::other("it does not accept name and password"));
            }
        }
        (_, Some(_)) => return Err(io::Error::other("it accepts neither name and password nor their absence")),
        (_, None) => return Err(io::Error::other("it requires credentials")),
    }
    let mut request = vec![VERSION, CONNECT, 0];
    match target.host.parse() {
        Ok(IpAddr::V4(ip)) => {
            request.push(IPV4);
            request.extend(ip.octets());
        }
        Ok(IpAddr::V6(ip)) => {
            request.push(IPV6);
            request.extend(ip.octets());
        }
        Err(_) => {
            request.push(DOMAIN);
            push_short(&mut request, target.host.as_bytes())?;
        }
    }
    request.extend(target.port.to_be_bytes());
    let [_, refused, _, kind] = ask(stream, &request).await?;
    if refused != 0 {
        return Err(io::Error::other(format!("it answers \"{}\" for {}", socks_reason(refused), target.place())));
    }
    // The address that the proxy uses, which is of no interest.
    let rest = match kind {
        IPV4 => 4,
        IPV6 => 16,
        DOMAIN => usize::from(stream.read_u8().await?),
        _ => return Err(io::Error::other("its answer is not SOCKS 5")),
    };
    let mut used = vec![0; rest + 2];
    stream.read_exact(&mut used).await.map_err(|error| ended(error, "in its answer"))?;
    Ok(())
}

/// Sends a message, and reads the beginning of the answer.
async fn ask<S, const N: usize>(stream: &mut S, message: &[u8]) -> io::Result<[u8; N]>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream.write_all(message).await?;
    stream.flush().await?;
    let mut answer = [0; N];
    stream.read_exact(&mut answer).await.map_err(|error| ended(error, "in its answer"))?;
    Ok(answer)
}

/// Appends a text with its length, which is one byte.
fn push_short(message: &mut Vec<u8>, text: &[u8]) -> io::Result<()> {
    let length = u8::try_from(text.len()).map_err(|_| io::Error::other("SOCKS has names of 255 bytes at most"))?;
    message.push(length);
    message.extend_from_slice(text);
    Ok(())
}

fn ended(error: io::Error, place: &str) -> io::Error {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return io::Error::new(error.kind(), format!("it closed the connection {place}"));
    }
    error
}

/// Returns the words of RFC 1928 for a code.
fn socks_reason(code: u8) -> String {
    let words = match code {
        1 => "general SOCKS server failure",
        2 => "connection not allowed by ruleset",
        3 => "network unreachable",
        4 => "host unreachable",
        5 => "connection refused",
        6 => "TTL expired",
        7 => "command not supported",
        8 => "address type not supported",
        other => return format!("code {other}"),
    };
    words.to_owned()
}

// === impl Target ===

impl<'a> Target<'a> {
    /// Returns the server of an address.
    ///
    /// # Errors
    /// It has no host.
    pub(super) fn of(server: &'a Uri) -> Result<Self, String> {
        let host = server.host().ok_or("the address of the server has no host")?;
        let default_port = if server.scheme_str() == Some("http") { 80 } else { 443 };
        Ok(Self { host: bare(host), port: server.port_u16().unwrap_or(default_port) })
    }

    /// Returns `host:port`, with brackets around an IPv6 address.
    fn place(&self) -> String {
        let Self { host, port } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

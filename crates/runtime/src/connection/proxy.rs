//! Connections through a proxy: HTTP, HTTPS and SOCKS5, as in Go's `net/http`.
//!
//! 1. The proxy is the `proxy-url` of the kubeconfig's cluster; without one, what [`environment`] says. It is the same for all
//!    requests of a client.
//! 2. A server with `https://` is reached through a tunnel (`CONNECT`, or SOCKS), so that the proxy sees addresses only. To a
//!    server with `http://`, an HTTP proxy forwards each request.
//! 3. The proxy resolves the name of the server.
//! 4. A proxy with `https://` is trusted for the same reasons as the API server.
//! 5. What a proxy refuses was never sent, and the error names the proxy; never its password.

pub(super) mod environment;
mod handshake;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use base64::Engine as _;
use futures::future::BoxFuture;
use http::{HeaderName, HeaderValue, Uri, header};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tower::{BoxError, Service};

use super::root_cause;
use handshake::Target;

/// A proxy.
#[derive(Clone)]
pub(super) struct Proxy {
    protocol: Protocol,
    /// The name or the address, without brackets.
    host: String,
    /// Host and port to dial, with a scheme that has no meaning.
    address: Uri,
    credentials: Option<Credentials>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Http,
    Https,
    Socks5,
}

/// A name and a password for the proxy.
#[derive(Clone)]
struct Credentials {
    name: Vec<u8>,
    password: Vec<u8>,
}

/// The connector to a server, directly or through a proxy.
#[derive(Clone)]
pub(super) struct Through {
    tcp: HttpConnector,
    proxy: Option<Arc<Way>>,
}

/// A proxy, and how it is reached.
struct Way {
    proxy: Proxy,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

/// A connection to a server or to a proxy, which may be encrypted up to the proxy.
pub(super) struct Dialed {
    stream: MaybeHttpsStream<TokioIo<TcpStream>>,
    /// Whether the proxy reads the requests, and needs to be told the server in each.
    forwards: bool,
}

// === impl Proxy ===

impl Proxy {
    /// Reads the address of a proxy.
    ///
    /// # Errors
    /// It has no host, or a scheme that is not supported.
    pub(super) fn parse(url: &Uri) -> Result<Self, String> {
        let (protocol, default_port) = match url.scheme_str() {
            Some("http") => (Protocol::Http, 80),
            Some("https") => (Protocol::Https, 443),
            Some("socks5" | "socks5h") => (Protocol::Socks5, 1080),
            Some(other) => return Err(format!("unsupported scheme \"{other}\", must be http, https, or socks5")),
            None => return Err("it has no scheme, must be http, https, or socks5".to_owned()),
        };
        let authority = url.authority().filter(|authority| !authority.host().is_empty()).ok_or("it has no host")?;
        let host = authority.host();
        let port = authority.port_u16().unwrap_or(default_port);
        let address =
            format!("http://{host}:{port}").parse().map_err(|error: http::uri::InvalidUri| error.to_string())?;
        let credentials = authority.as_str().rsplit_once('@').map(|(user, _)| Credentials::parse(user));
        Ok(Self { protocol, host: bare(host).to_owned(), address, credentials })
    }

    /// Returns the header with the credentials, if the proxy forwards requests to this server: it is sent with each of them.
    pub(super) fn header_for(&self, server: &Uri) -> Option<(HeaderName, HeaderValue)> {
        let credentials = self.credentials.as_ref().filter(|_| self.forwards(server))?;
        let mut value = HeaderValue::try_from(credentials.basic()).ok()?;
        value.set_sensitive(true);
        Some((header::PROXY_AUTHORIZATION, value))
    }

    /// Whether requests to this server are forwarded one by one, not tunnelled.
    fn forwards(&self, server: &Uri) -> bool {
        self.protocol != Protocol::Socks5 && server.scheme_str() == Some("http")
    }
}

/// Without credentials, for logs and errors.
impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.protocol {
            Protocol::Http => "http",
            Protocol::Https => "https",
            Protocol::Socks5 => "socks5",
        };
        write!(f, "{scheme}://{}", self.address.authority().map_or("", http::uri::Authority::as_str))
    }
}

/// Returns the address of a proxy without credentials, also of one that cannot be used.
pub(super) fn without_credentials(url: &Uri) -> String {
    let text = url.to_string();
    let whole = text.trim_end_matches('/');
    match (whole.split_once("://"), whole.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, place))) => format!("{scheme}://{place}"),
        (None, Some((_, place))) => place.to_owned(),
        (_, None) => whole.to_owned(),
    }
}

/// Returns a host without the brackets of an IPv6 address.
fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

// === impl Credentials ===

impl Credentials {
    fn parse(user: &str) -> Self {
        let (name, password) = user.split_once(':').unwrap_or((user, ""));
        Self { name: decoded(name), password: decoded(password) }
    }

    /// Returns the value of a header.
    fn basic(&self) -> String {
        let pair = [self.name.as_slice(), b":", self.password.as_slice()].concat();
        format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair))
    }
}

/// Decodes `%2F` and its like.
fn decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 3).filter(|_| byte == b'%').and_then(|digits| str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(code) => {
                plain.push(code);
                at += 3;
            }
            None => {
                plain.push(byte);
                at += 1;
            }
        }
    }
    plain
}

// === impl Through ===

impl Through {
    /// Connects through the proxy, if there is one. `tls` is the configuration for the API server.
    ///
    /// # Errors
    /// The address of the proxy is invalid.
    pub(super) fn new(tcp: HttpConnector, proxy: Option<&Uri>, tls: &rustls::ClientConfig) -> Result<Self, BoxError> {
        let way = |url| {
            let proxy = Proxy::parse(url)?;
            let tls = match proxy.protocol {
                Protocol::Https => {
                    let name = ServerName::try_from(proxy.host.clone()).map_err(|error| error.to_string())?;
                    let mut tls = tls.clone();
                    // The tunnel is opened in HTTP/1.1.
                    tls.alpn_protocols.clear();
                    Some((TlsConnector::from(Arc::new(tls)), name))
                }
                Protocol::Http | Protocol::Socks5 => None,
            };
            Ok::<_, String>(Arc::new(Way { proxy, tls }))
        };
        Ok(Self { tcp, proxy: proxy.map(way).transpose()? })
    }
}

impl Service<Uri> for Through {
    type Response = Dialed;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Dialed, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.tcp.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let Some(way) = self.proxy.clone() else {
            let connecting = self.tcp.call(server);
            return Box::pin(async move { Ok(Dialed { stream: connecting.await?.into(), forwards: false }) });
        };
        let connecting = self.tcp.call(way.proxy.address.clone());
        Box::pin(async move {
            let connected = async { way.open(connecting.await.map_err(|error| root_cause(&error))?, &server).await };
            // One sentence, which is shown instead of what it is caused by.
            connected.await.map_err(|problem: String| format!("proxy {}: {problem}", way.proxy).into())
        })
    }
}

// === impl Way ===

impl Way {
    /// Opens a tunnel to the server on a connection to the proxy, unless the proxy forwards requests.
    async fn open(&self, tcp: TokioIo<TcpStream>, server: &Uri) -> Result<Dialed, String> {
        let mut stream = match &self.tls {
            None => MaybeHttpsStream::from(tcp),
            Some((tls, name)) => {
                let encrypted = tls.connect(name.clone(), TokioIo::new(tcp)).await;
                encrypted.map_err(|error| root_cause(&error))?.into()
            }
        };
        let forwards = self.proxy.forwards(server);
        if !forwards {
            let target = Target::of(server)?;
            let mut plain = TokioIo::new(&mut stream);
            let credentials = self.proxy.credentials.as_ref();
            let opened = match self.proxy.protocol {
                Protocol::Socks5 => handshake::socks5(&mut plain, &target, credentials).await,
                Protocol::Http | Protocol::Https => handshake::connect(&mut plain, &target, credentials).await,
            };
            opened.map_err(|error| error.to_string())?;
        }
        Ok(Dialed { stream, forwards })
    }
}

// === impl Dialed ===

impl Connection for Dialed {
    fn connected(&self) -> Connected {
        self.stream.connected().proxy(self.forwards)
    }
}

impl Read for Dialed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl Write for Dialed {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }
}

#[cfg(test)]
mod tests;

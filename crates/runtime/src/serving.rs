//! A small HTTP server for a manager's pages and for webhooks.
//!
//! 1. It serves a [`Service`]: a function from a whole request to a whole response, which can be tested without a
//!    socket.
//! 2. Every resource that a client can use is bounded: connections, streams, the size of headers and bodies, the time
//!    for a handshake, for headers, for a body, and the time a connection may idle. See [`ServeOptions`].
//! 3. A panic in a service is a response of 500 to that one request.
//! 4. On the stop signal, no connection is accepted any more, requests in flight finish, and those that have not
//!    finished after [`ServeOptions::drain`] are cut off: [`Serving::run`] always ends.
//! 5. Certificates are read again when their files change. A pair that cannot be used is logged once and ignored: the
//!    old one stays. New connections use the new one; open ones go on.
//! 6. With [`ClientCertificates::Requested`] a client's certificates are passed to the service, which decides about
//!    them; [`ClientCertificates::Required`] verifies them in the handshake.

pub(crate) mod client;
mod connection;
mod names;
mod pair;
mod self_signed;
mod tls;

#[cfg(test)]
mod tests;

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use steersman_base::Clock;
use tokio::net::{TcpListener, TcpSocket};
use tokio_util::sync::CancellationToken;

pub use client::AuthorityError;
pub(crate) use client::{ClientAuthority, PeerCertificates};
pub use names::{CipherSuites, KeyExchanges, TlsVersion, UnknownTlsName};
pub use pair::PairError;
pub use tls::{CertificateSource, ClientCertificates, SniCertificate, Tls};

use connection::Acceptor;
use tls::Secured;

/// A request with its body.
pub type Request = http::Request<Bytes>;

/// A response with its body.
pub type Response = http::Response<Bytes>;

/// A service. Every `Fn(Request) -> impl Future<Output = Response>` is one.
pub trait Service: Send + Sync + 'static {
    /// Responds to a request. If the client disconnects, the future is dropped.
    fn respond(&self, request: Request) -> impl Future<Output = Response> + Send;
}

/// The address of the client; an extension of every request that came through a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddress(pub SocketAddr);

/// The options of a server.
#[derive(Clone, Debug)]
#[must_use]
#[non_exhaustive]
pub struct ServeOptions {
    /// The address and port; port 0 is any free one.
    pub address: SocketAddr,
    /// TLS; plain HTTP without.
    pub tls: Option<Tls>,
    /// Whether other processes may listen on the same port (`SO_REUSEPORT`); they share its connections.
    pub share_port: bool,
    /// The maximum number of connections; further ones wait to be accepted.
    pub connections_max: usize,
    /// The maximum number of concurrent requests of one HTTP/2 connection.
    pub streams_max: u32,
    /// The maximum size of a body. Longer ones are answered with 413.
    pub body_bytes_max: usize,
    /// The maximum time for a handshake, for the headers of a request, and for its body.
    pub patience: Duration,
    /// The maximum time of a connection without a request. HTTP/1.1 connections end after [`patience`](Self::patience),
    /// if that is shorter.
    pub idle: Duration,
    /// The time that requests in flight have when the server stops.
    pub drain: Duration,
    /// The clock by which certificates are verified and created.
    pub clock: Clock,
}

/// A server that listens, and serves as soon as it [runs](Self::run).
#[derive(Debug)]
#[must_use = "connections wait until `run` is polled"]
pub struct Serving {
    socket: TcpListener,
    address: SocketAddr,
    tls: Option<Arc<Secured>>,
    options: ServeOptions,
}

/// An error of a server: one sentence, causes included.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address cannot be bound.
    #[error("cannot listen on {address}: {reason}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The reason, and what to do.
        reason: String,
        /// The error of the system.
        cause: io::Error,
    },
    /// A certificate or its key cannot be used.
    #[error(transparent)]
    Pair(#[from] PairError),
    /// The bundle of authorities for client certificates cannot be used.
    #[error("cannot check client certificates with {}: {cause}", file.display())]
    Authority {
        /// The bundle.
        file: PathBuf,
        /// The cause.
        cause: AuthorityError,
    },
    /// A certificate cannot be created.
    #[error("cannot make a self-signed certificate: {0}")]
    SelfSigned(String),
    /// A created certificate cannot be stored.
    #[error("cannot write the self-signed certificate to {}: {cause}; name a directory that can be written", file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// The error of the system.
        cause: io::Error,
    },
    /// Versions, suites and key exchanges are not compatible.
    #[error("cannot serve TLS with these versions, cipher suites and key exchanges: {cause}")]
    Parameters {
        /// The cause.
        cause: rustls::Error,
    },
}

/// kube-apiserver's limit (`MaxRequestBodyBytes`).
const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;
/// Scrapers, probes and one API server need a handful; a thousand is far from the usual limit of file descriptors.
const CONNECTIONS_MAX: usize = 1024;
/// The limit of upstream's servers (`http2-max-streams-per-connection`).
const STREAMS_MAX: u32 = 250;
/// The time of upstream's servers for headers: less than the 34 s after which a request has timed out anyway.
const PATIENCE: Duration = Duration::from_secs(32);
/// The time of upstream's servers.
const IDLE: Duration = Duration::from_secs(90);
/// Webhooks have 10 s by default, so a client that waits longer has given up.
const DRAIN: Duration = Duration::from_secs(10);

// === impl Service ===

impl<F, A> Service for F
where
    F: Fn(Request) -> A + Send + Sync + 'static,
    A: Future<Output = Response> + Send,
{
    fn respond(&self, request: Request) -> impl Future<Output = Response> + Send {
        self(request)
    }
}

/// Returns a response of plain text.
#[must_use]
pub fn text(status: StatusCode, text: impl Into<String>) -> Response {
    with_type(status, "text/plain; charset=utf-8", text.into().into())
}

/// Returns a response with a body of this type.
#[must_use]
pub fn with_type(status: StatusCode, content_type: &'static str, body: Bytes) -> Response {
    let mut response = http::Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(content_type));
    // Browsers must not guess another content type.
    headers.insert(http::header::X_CONTENT_TYPE_OPTIONS, http::HeaderValue::from_static("nosniff"));
    response
}

// === impl ServeOptions ===

impl ServeOptions {
    /// Creates options for plain HTTP at this address.
    pub fn at(address: SocketAddr) -> Self {
        Self {
            address,
            tls: None,
            share_port: false,
            connections_max: CONNECTIONS_MAX,
            streams_max: STREAMS_MAX,
            body_bytes_max: BODY_BYTES_MAX,
            patience: PATIENCE,
            idle: IDLE,
            drain: DRAIN,
            clock: Clock::system(),
        }
    }

    /// Returns the same options with TLS.
    pub fn with_tls(self, tls: Tls) -> Self {
        Self { tls: Some(tls), ..self }
    }
}

impl From<SocketAddr> for ServeOptions {
    fn from(address: SocketAddr) -> Self {
        Self::at(address)
    }
}

impl Default for ServeOptions {
    /// Plain HTTP on any free port of the loopback interface.
    fn default() -> Self {
        Self::at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
    }
}

// === impl Serving ===

impl Serving {
    /// Listens; certificates are read, or created, now.
    ///
    /// # Errors
    /// The address cannot be bound, or certificates cannot be used.
    pub async fn bind(options: ServeOptions) -> Result<Self, ServeError> {
        let tls = match &options.tls {
            Some(tls) => Some(Arc::new(Secured::new(tls, options.address.ip(), &options.clock).await?)),
            None => None,
        };
        let socket = listen(&options).map_err(|cause| bind_error(options.address, cause))?;
        let address = socket.local_addr().map_err(|cause| bind_error(options.address, cause))?;
        Ok(Self { socket, address, tls, options })
    }

    /// Returns the address it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the certificate chain of the server, as PEM; that of a self-signed certificate ends with its authority,
    /// so that clients may use the whole as their bundle.
    #[must_use]
    pub fn certificate_pem(&self) -> Option<String> {
        self.tls.as_ref().map(|tls| tls.certificate_pem())
    }

    /// Serves until `stop`, then drains, and ends at the latest after [`ServeOptions::drain`].
    pub async fn run(self, service: impl Service, stop: CancellationToken) {
        let reloaded = self.tls.clone();
        let accept = Acceptor::new(service, self.tls, self.options).run(self.socket, stop);
        match reloaded {
            Some(tls) => {
                tokio::select! {
                    biased;
                    () = accept => {}
                    () = tls.reload() => {}
                }
            }
            None => accept.await,
        }
    }
}

fn listen(options: &ServeOptions) -> io::Result<TcpListener> {
    /// The system's own default.
    const BACKLOG: u32 = 1024;
    let socket = if options.address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A restarted server does not wait until the connections of its predecessor are forgotten.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    #[cfg(unix)]
    if options.share_port {
        socket.set_reuseport(true)?;
    }
    socket.bind(options.address)?;
    socket.listen(BACKLOG)
}

fn bind_error(address: SocketAddr, cause: io::Error) -> ServeError {
    let reason = match cause.kind() {
        io::ErrorKind::AddrInUse => "the port is in use; stop who uses it or name another".to_owned(),
        io::ErrorKind::AddrNotAvailable => "no interface of this machine has that address".to_owned(),
        io::ErrorKind::PermissionDenied => "ports below 1024 need a privilege; name another".to_owned(),
        _ => cause.to_string(),
    };
    ServeError::Bind { address, reason, cause }
}

//! The server behind a socket: TLS, HTTP/1.1 and HTTP/2, for kubectl and other clients outside of the process.
//!
//! 1. It listens on the loopback interface by default.
//! 2. A client that does not complete its handshake or its headers in time is disconnected; an idle connection between
//!    requests is kept. The number of connections is bounded, and one without an authenticated request is closed after
//!    half a minute.
//! 3. Its certificates are P-256, made at start, and signed by an authority whose key is made at start, too, unless it is
//!    given.
//! 4. Dropping [`Listening`] stops it; open watches end.

mod corked;
mod kubeconfig;
mod patience;
mod pki;

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::Service;

use crate::auth::{User, certificate};
use crate::bootstrap;
use crate::http::limits::HeavyWork;
use crate::http::{Known, PeerCertificate};
use crate::server::ApiServer;

use corked::corked;
use patience::{HeadTimer, Heard, IDLE_MAX};
use pki::Pki;
pub use pki::{Certificate, PkiError};

/// The time limit of a handshake, and of the headers of a request.
const PATIENCE_SECONDS: u64 = 10;
/// The time limit of a connection without an authenticated request: connections are limited, and anybody can open one.
const STRANGER_SECONDS: u64 = 30;
/// The period of keep-alive probes on idle connections.
const PING_SECONDS: u64 = 30;
/// The maximum number of connections; further ones wait.
const CONNECTIONS_MAX: usize = 4096;
/// The maximum number of concurrent requests of an HTTP/2 connection: an informer factory has a watch per resource.
const STREAMS_MAX: u32 = 1000;
/// The time limit of open requests when the server stops.
const DRAIN_SECONDS: u64 = 1;

/// The options of a listener: address, names, key and time limits.
#[derive(Clone, Debug)]
#[must_use]
#[non_exhaustive]
pub struct ListenOptions {
    /// Address and port; port 0: any that is free.
    pub address: SocketAddr,
    /// Further names and addresses of the server.
    pub names: Vec<String>,
    /// The time limit of a handshake, and of the headers of a request.
    pub patience: Duration,
    /// The key of the authority, as PEM; generated if absent. A server that is started again for the same clients keeps
    /// it ([`Listening::authority_key_pem`]).
    pub authority_key_pem: Option<String>,
    /// The time limit of a connection without an authenticated request.
    pub strangers: Duration,
}

/// The group of those who may do everything.
const ADMINISTRATORS: &str = "system:masters";

/// A server that listens.
#[derive(Debug)]
pub struct Listening {
    address: SocketAddr,
    pki: Pki,
    token: String,
    /// The administrator's certificate.
    admin: Certificate,
    stop: CancellationToken,
}

/// The parts that every connection needs.
#[derive(Clone)]
struct Door {
    acceptor: TlsAcceptor,
    server: ApiServer,
    patience: Duration,
    strangers: Duration,
    stop: CancellationToken,
}

/// Why a server does not listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The address is not available.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// No certificates.
    #[error(transparent)]
    Pki(#[from] PkiError),
    /// No token.
    #[error(transparent)]
    Token(#[from] crate::auth::NoRandom),
}

// === impl ListenOptions ===

impl Default for ListenOptions {
    /// Any free port of the loopback interface.
    fn default() -> Self {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let patience = Duration::from_secs(PATIENCE_SECONDS);
        let strangers = Duration::from_secs(STRANGER_SECONDS);
        Self { address, names: Vec::new(), patience, authority_key_pem: None, strangers }
    }
}

impl ListenOptions {
    /// Sets the address and port; port 0 is any free port.
    pub fn address(mut self, address: SocketAddr) -> Self {
        self.address = address;
        self
    }

    /// Sets further names and addresses of the server, for its certificate.
    pub fn names(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.names = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the time limit of a handshake, and of the headers of a request.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sets the key of the certificate authority, as PEM; with `None`, it is generated.
    pub fn authority_key_pem(mut self, authority_key_pem: impl Into<Option<String>>) -> Self {
        self.authority_key_pem = authority_key_pem.into();
        self
    }

    /// Sets the time limit of a connection without an authenticated request.
    pub fn strangers(mut self, strangers: Duration) -> Self {
        self.strangers = strangers;
        self
    }
}

// === impl Listening ===

impl Listening {
    /// Listens, and serves until it is dropped.
    ///
    /// # Errors
    /// If the address is taken, or keys cannot be made.
    pub async fn start(server: &ApiServer, options: ListenOptions) -> Result<Self, ListenError> {
        let bind = |source| ListenError::Bind { address: options.address, source };
        let socket = TcpListener::bind(options.address).await.map_err(bind)?;
        let address = socket.local_addr().map_err(bind)?;
        let pki = Pki::generate(address.ip(), &options.names, options.authority_key_pem.as_deref())?;
        let acceptor = TlsAcceptor::from(Arc::new(pki.server_config()?));
        let token = server.admin_token()?.to_owned();
        let admin = pki.client_certificate(&User::admin().name, &[ADMINISTRATORS])?;
        bootstrap::publish(&server.registry, address, pki.authority_pem());
        let stop = CancellationToken::new();
        // A listener has real clients, whose heavy requests must not block the threads of others.
        let server = ApiServer { heavy_work: HeavyWork::BlockingPool, ..server.requiring_authentication() };
        let ListenOptions { patience, strangers, .. } = options;
        let door = Door { acceptor, server, patience, strangers, stop: stop.clone() };
        tokio::spawn(door.accept(socket));
        Ok(Self { address, pki, token, admin, stop })
    }

    /// Returns the address and port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address as clients write it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The certificate of the authority, as PEM.
    #[must_use]
    pub fn authority_pem(&self) -> &str {
        self.pki.authority_pem()
    }

    /// The private key of the authority, as PEM, for [`ListenOptions::authority_key_pem`] of the next server.
    #[must_use]
    pub fn authority_key_pem(&self) -> String {
        self.pki.authority_key_pem()
    }

    /// A certificate for a user in these groups.
    ///
    /// # Errors
    /// If a key cannot be made.
    pub fn client_certificate(&self, user: &str, groups: &[&str]) -> Result<Certificate, PkiError> {
        self.pki.client_certificate(user, groups)
    }

    /// A kubeconfig for the administrator.
    #[must_use]
    pub fn kubeconfig(&self) -> String {
        kubeconfig::text(&self.url(), self.authority_pem(), &self.token, &self.admin)
    }

    /// Writes the kubeconfig; only its owner can read it.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_kubeconfig(&self, path: &Path) -> io::Result<()> {
        kubeconfig::write(path, &self.kubeconfig())
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

// === impl Door ===

impl Door {
    async fn accept(self, socket: TcpListener) {
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            let connection = tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                accepted = socket.accept() => match accepted {
                    Ok((connection, _)) => connection,
                    Err(error) => {
                        // Out of file descriptors, most likely: other connections must be closed first.
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        continue;
                    }
                },
            };
            let door = self.clone();
            tokio::spawn(async move {
                door.serve(connection).await;
                drop(place);
            });
        }
    }

    async fn serve(self, connection: TcpStream) {
        let _ = connection.set_nodelay(true);
        let Ok(Ok(stream)) = tokio::time::timeout(self.patience, self.acceptor.accept(connection)).await else {
            tracing::debug!("a TLS handshake did not succeed in time");
            return;
        };
        let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
        let certificate = certificate.map(|der| PeerCertificate(certificate::user(der).map(Arc::new)));
        let Some(stream) = Heard::first_bytes(stream, self.patience).await else {
            tracing::debug!("a connection said nothing in time");
            return;
        };
        let server = self.server.clone();
        let is_known = Arc::new(AtomicBool::new(false));
        let was_known = Arc::clone(&is_known);
        let builder = protocol(stream.timer(self.patience));
        let (stream, cork) = corked(stream);
        let answering = cork.answering();
        let service = service_fn(move |mut request: Request<Incoming>| {
            if let Some(certificate) = &certificate {
                request.extensions_mut().insert(certificate.clone());
            }
            let answer = server.clone().call(request);
            let is_known = Arc::clone(&is_known);
            let counted = answering.begin();
            async move {
                let answer = answer.await?;
                drop(counted);
                if answer.extensions().get::<Known>().is_some() {
                    is_known.store(true, Ordering::Relaxed);
                }
                Ok::<_, Infallible>(answer)
            }
        });
        let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
        let drain = tokio::select! {
            biased;
            ended = cork.run(connection.as_mut()) => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended with an error");
                }
                return;
            }
            () = self.stop.cancelled() => Duration::from_secs(DRAIN_SECONDS),
            () = stays_unknown(&was_known, self.strangers) => {
                tracing::debug!("a connection was nobody's for too long");
                self.patience
            }
        };
        connection.as_mut().graceful_shutdown();
        let _ = tokio::time::timeout(drain, cork.run(connection)).await;
    }
}

/// Ends when a connection has been open for a while without an authenticated request; otherwise never.
async fn stays_unknown(was_known: &AtomicBool, for_so_long: Duration) {
    tokio::time::sleep(for_so_long).await;
    if was_known.load(Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
}

/// Both protocols, each with its keep-alive.
fn protocol(heads: HeadTimer) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(heads).header_read_timeout(IDLE_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .keep_alive_interval(Duration::from_secs(PING_SECONDS))
        .keep_alive_timeout(Duration::from_secs(PING_SECONDS));
    builder
}

//! Renewal of certificates: authorities and a client's certificate in files, or a plug-in's certificate.
//!
//! 1. Files are read again when a request is sent, at most every [`LOOK_EVERY`]; sooner after a 401, or if no
//!    connection could be opened. A plug-in is run again when its certificate is about to expire, and after a 401, as
//!    in client-go.
//! 2. A new certificate counts for every request from then on: none uses a connection that was opened with the old one.
//! 3. When the client's certificate changes, old connections are closed, as in client-go: a server may have accepted
//!    them because of the old one. They are closed only when the requests on them can have been answered
//!    ([`CLOSE_AFTER`]), so that no write is left without an answer; watches restart on other connections.
//! 4. Files that cannot be read or do not fit together, such as a file that is being replaced, change nothing and are
//!    logged.
//!
//! Follows `transport/cert_rotation.go`, `ca_rotation.go` and the exec plug-in of client-go 0.37.1.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use kube::Config;
use kube::client::ConfigExt as _;
use parking_lot::Mutex;
use rustls::client::ResolvesClientCert;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use steersman_base::{Clock, Time};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tower::{BoxError, Service};
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

use super::exchange::ANSWER_WITHIN;
use super::lanes::{Lanes, Occupying};
use super::transport::{Dialer, dialer};

/// The certificates for new connections.
pub(super) struct Certificates {
    /// The configuration as read; files and plug-ins are still named in it.
    config: Config,
    authorities: Option<PathBuf>,
    renewed_by: Renewed,
    times: Times,
    clock: Clock,
    state: Mutex<State>,
}

/// The source of new client certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Renewed {
    /// None: there is no certificate, or it is part of the configuration.
    Never,
    /// Files.
    InFiles,
    /// A plug-in, when it is run.
    ByPlugin,
}

/// The delays, which tests shorten.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// The time between two checks.
    pub(super) look_every: Duration,
    /// The time between two checks after a suspicion.
    pub(super) soon: Duration,
    /// The time until connections with the old certificate are closed.
    pub(super) close_after: Duration,
}

struct State {
    used: Loaded,
    looked: Instant,
    suspicion: Suspicion,
    /// Cancelled when connections with the current certificate are to be closed.
    open: CancellationToken,
}

/// A reason to doubt the current certificates, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Suspicion {
    None,
    /// No connection could be opened: perhaps because of a certificate.
    NotConnected,
    /// The server does not accept the credentials.
    Unauthorized,
}

/// Certificates that were read.
#[derive(Clone)]
struct Loaded {
    dialer: Dialer,
    shows: Arc<dyn ResolvesClientCert>,
    /// The client's certificate with its chain.
    shown: Option<Vec<CertificateDer<'static>>>,
    /// The authorities, if they are in a file.
    believed: Option<Vec<Vec<u8>>>,
    /// The expiration time of the client's certificate.
    ends: Option<Time>,
}

/// A check for new certificates.
struct Check {
    /// The plug-in's certificate, if it is still valid: the plug-in is not run then.
    kept: Option<Loaded>,
}

/// Sends requests on connections with the current certificates.
pub(super) struct Renewing<S> {
    certificates: Arc<Certificates>,
    lanes: Lanes<S>,
}

/// A connection that can be closed from outside.
pub(super) struct Closable<T> {
    inner: T,
    closed: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

/// The same as for token files; client-go checks every five minutes and at each handshake.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// A server that refuses all requests must not cause a read of the files for every request.
const SOON: Duration = Duration::from_secs(1);
/// Earlier requests are answered by then, or never.
const CLOSE_AFTER: Duration = ANSWER_WITHIN;
/// The time before the expiration of its certificate at which a plug-in is run again.
const AHEAD_SECONDS: i64 = 60;

// === impl Times ===

impl Default for Times {
    fn default() -> Self {
        Self { look_every: LOOK_EVERY, soon: SOON, close_after: CLOSE_AFTER }
    }
}

// === impl Certificates ===

impl Certificates {
    /// Reads files and runs plug-ins, which may take time.
    ///
    /// # Errors
    /// The configured files or plug-ins do not work.
    pub(super) fn load(config: &Config, times: Times) -> Result<Self, BoxError> {
        let mut config = config.clone();
        // Our errors name the file; kube's would not.
        let authorities = config.root_cert_file.take();
        let used = load(&config, authorities.as_deref(), None)?;
        let user = &config.auth_info;
        let has_data = user.client_certificate_data.is_some() || user.client_key_data.is_some();
        let renewed_by = match (&used.shown, &user.client_certificate, &user.exec) {
            (Some(_), _, Some(_)) => Renewed::ByPlugin,
            (Some(_), Some(_), None) if !has_data => Renewed::InFiles,
            _ => Renewed::Never,
        };
        let looked = Instant::now();
        let open = CancellationToken::new();
        let state = State { used, looked, suspicion: Suspicion::None, open };
        Ok(Self { config, authorities, renewed_by, times, clock: Clock::system(), state: Mutex::new(state) })
    }

    /// Returns the dialer for new connections.
    pub(super) fn dialer(&self) -> Dialer {
        let state = self.state.lock();
        let open = self.is_renewed().then(|| state.open.clone());
        state.used.dialer.clone().closed_by(open)
    }

    fn is_renewed(&self) -> bool {
        self.authorities.is_some() || self.renewed_by != Renewed::Never
    }

    /// Checks for new certificates, if it is time to; returns whether there are any.
    async fn renew(self: &Arc<Self>) -> bool {
        let Some(check) = self.due() else { return false };
        let this = Arc::clone(self);
        let look = move || load(&this.config, this.authorities.as_deref(), check.kept.as_ref());
        let problem = match tokio::task::spawn_blocking(look).await {
            Ok(Ok(found)) => match self.take(found) {
                Ok(is_new) => return is_new,
                Err(problem) => problem,
            },
            Ok(Err(error)) => super::root_cause(&*error),
            Err(error) => error.to_string(),
        };
        tracing::warn!(server = %self.config.cluster_url, problem, "certificates cannot be renewed; the old ones are kept");
        false
    }

    /// Returns the check that is due, if it is time for one.
    fn due(&self) -> Option<Check> {
        if !self.is_renewed() {
            return None;
        }
        let mut state = self.state.lock();
        let since = state.looked.elapsed();
        let is_ending = || {
            let ends = state.used.ends.map(|ends| ends.plus_seconds(-AHEAD_SECONDS));
            ends.is_some_and(|ends| ends <= self.clock.now())
        };
        let (asks_plugin, is_due) = match self.renewed_by {
            Renewed::ByPlugin => {
                let asks = state.suspicion == Suspicion::Unauthorized || is_ending();
                (asks, asks || (self.authorities.is_some() && since >= self.times.look_every))
            }
            _ => (false, state.suspicion > Suspicion::None || since >= self.times.look_every),
        };
        if !is_due || since < self.times.soon {
            return None;
        }
        state.looked = Instant::now();
        state.suspicion = Suspicion::None;
        let keeps = self.renewed_by == Renewed::ByPlugin && !asks_plugin;
        Some(Check { kept: keeps.then(|| state.used.clone()) })
    }

    /// Stores the certificates that were read; returns whether they are new.
    fn take(&self, found: Loaded) -> Result<bool, String> {
        let mut state = self.state.lock();
        if found.shown.is_none() && state.used.shown.is_some() {
            return Err("the plug-in answers no certificate".to_owned());
        }
        let is_another = found.shown != state.used.shown;
        if !is_another && found.believed == state.used.believed {
            return Ok(false);
        }
        state.used = found;
        if is_another {
            let old = std::mem::take(&mut state.open);
            let close_after = self.times.close_after;
            tokio::spawn(async move {
                tokio::time::sleep(close_after).await;
                old.cancel();
            });
        }
        tracing::info!(server = %self.config.cluster_url, client = is_another, "certificates were renewed");
        Ok(true)
    }

    fn suspect(&self, suspicion: Suspicion) {
        let mut state = self.state.lock();
        state.suspicion = state.suspicion.max(suspicion);
    }
}

/// Reads files and runs plug-ins. With `kept`, that is the client's certificate, and no plug-in is run.
fn load(config: &Config, authorities: Option<&Path>, kept: Option<&Loaded>) -> Result<Loaded, BoxError> {
    let mut config = config.clone();
    let mut believed = None;
    if let Some(path) = authorities {
        let wrong = |problem: String| BoxError::from(format!("certificate authority {}: {problem}", path.display()));
        let pem = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
        let found: Result<Vec<_>, _> =
            CertificateDer::pem_slice_iter(&pem).map(|one| one.map(|one| one.to_vec())).collect();
        let found = found.map_err(|error| wrong(error.to_string()))?;
        if found.is_empty() {
            return Err(wrong("it holds no certificate".to_owned()));
        }
        believed = Some(found.clone());
        config.root_cert = Some(found);
    }
    if kept.is_some() {
        config.auth_info.exec = None;
    }
    let mut tls = config.rustls_client_config()?;
    if let Some(kept) = kept {
        tls.client_auth_cert_resolver = Arc::clone(&kept.shows);
    }
    let shows = Arc::clone(&tls.client_auth_cert_resolver);
    // The configured certificate, which does not depend on the server's request.
    let shown = shows.has_certs().then(|| shows.resolve(&[], &[])).flatten().map(|pair| pair.cert.clone());
    let leaf = shown.as_ref().and_then(|chain| Certificate::from_der(chain.first()?).ok());
    let ends = leaf.and_then(|leaf| {
        let ends = leaf.tbs_certificate().validity().not_after.to_unix_duration();
        i64::try_from(ends.as_secs()).ok().map(Time::from_unix)
    });
    Ok(Loaded { dialer: dialer(&config, tls)?, shows, shown, believed, ends })
}

// === impl Renewing ===

impl<S: Clone> Renewing<S> {
    pub(super) fn new(certificates: Arc<Certificates>, lanes: Lanes<S>) -> Self {
        Self { certificates, lanes }
    }
}

impl<S> Clone for Renewing<S> {
    fn clone(&self) -> Self {
        Self { certificates: Arc::clone(&self.certificates), lanes: self.lanes.clone() }
    }
}

impl<S, Q, B> Service<Request<Q>> for Renewing<S>
where
    S: Service<Request<Q>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    Q: Send + 'static,
    B: 'static,
{
    type Response = Response<Occupying<B>>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, S::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        // Always ready, like the lanes.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        if !self.certificates.is_renewed() {
            return self.lanes.call(request);
        }
        let Self { certificates, mut lanes } = self.clone();
        Box::pin(async move {
            if certificates.renew().await {
                lanes.abandon();
            }
            let answer = lanes.call(request).await;
            match &answer {
                Ok(answer) if answer.status() == StatusCode::UNAUTHORIZED => {
                    certificates.suspect(Suspicion::Unauthorized);
                }
                Ok(_) => {}
                Err(_) => certificates.suspect(Suspicion::NotConnected),
            }
            answer
        })
    }
}

// === impl Closable ===

impl<T> Closable<T> {
    /// The connection is closed when `open` is cancelled; never without it.
    pub(super) fn new(inner: T, open: Option<CancellationToken>) -> Self {
        Self { inner, closed: open.map(|open| Box::pin(open.cancelled_owned())) }
    }
}

impl<T: Read + Unpin> Read for Closable<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<std::io::Result<()>> {
        // A connection is always polled for reads, so it notices the cancellation.
        if self.closed.as_mut().is_some_and(|closed| closed.as_mut().poll(cx).is_ready()) {
            let why = "closed, because the client's certificate was renewed";
            return Poll::Ready(Err(std::io::Error::new(std::io::ErrorKind::ConnectionAborted, why)));
        }
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl<T: Write + Unpin> Write for Closable<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, slices)
    }
}

impl<T: Connection> Connection for Closable<T> {
    fn connected(&self) -> Connected {
        self.inner.connected()
    }
}

#[cfg(test)]
mod tests;

//! Certificates that somebody else renews: authorities and a client's certificate in files, or a certificate of a plug-in.
//!
//! 1. Files are read again when a request is sent, [`LOOK_EVERY`] at most; sooner after a 401, or if no connection could be
//!    made. A plug-in is run again when its certificate is about to end, and after a 401, as client-go does.
//! 2. What is new counts for every request from then on: none takes a connection that was made with the old certificate.
//! 3. When the client's certificate is another one, old connections are closed, as in client-go: a server may have let them in
//!    on the strength of the old one. But not before what was asked on them can have been answered ([`CLOSE_AFTER`]), so that
//!    no write is left without an answer; watches begin again elsewhere.
//! 4. What cannot be read or does not fit together, such as a file that is being replaced, changes nothing and is told.
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

/// The certificates that connections are made with.
pub(super) struct Certificates {
    /// As it was read; files and plug-ins are still named in it.
    config: Config,
    authorities: Option<PathBuf>,
    renewed_by: Renewed,
    times: Times,
    clock: Clock,
    state: Mutex<State>,
}

/// Who renews a client's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Renewed {
    /// Nobody: there is none, or it is part of the configuration.
    Never,
    /// Whoever writes the files.
    InFiles,
    /// A plug-in, when it is run.
    ByPlugin,
}

/// How soon something is done; tests do not wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// Between two looks.
    pub(super) look_every: Duration,
    /// Between two looks, if the first was perhaps too early.
    pub(super) soon: Duration,
    /// Until connections with the old certificate are closed.
    pub(super) close_after: Duration,
}

struct State {
    used: Loaded,
    looked: Instant,
    suspicion: Suspicion,
    /// Cancelled when connections with the certificate of now are to be closed.
    open: CancellationToken,
}

/// What speaks against the certificates of now, least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Suspicion {
    None,
    /// No connection could be made: perhaps for a certificate.
    NotConnected,
    /// The server does not know us.
    Unauthorized,
}

/// Certificates, as they were found.
#[derive(Clone)]
struct Loaded {
    dialer: Dialer,
    shows: Arc<dyn ResolvesClientCert>,
    /// The client's certificate with its chain.
    shown: Option<Vec<CertificateDer<'static>>>,
    /// The authorities, if they are in a file.
    believed: Option<Vec<Vec<u8>>>,
    /// When the client's certificate ends.
    ends: Option<Time>,
}

/// Sends requests on connections with the certificates of now.
pub(super) struct Renewing<S> {
    certificates: Arc<Certificates>,
    lanes: Lanes<S>,
}

/// A connection that can be closed from outside.
pub(super) struct Closable<T> {
    inner: T,
    closed: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

/// As the token file; client-go looks every five minutes and at each handshake.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// A server that refuses everybody must not make everybody read files for every request.
const SOON: Duration = Duration::from_secs(1);
/// What was asked before is answered by then, or never.
const CLOSE_AFTER: Duration = ANSWER_WITHIN;
/// A plug-in is run again this long before its certificate ends.
const AHEAD_SECONDS: i64 = 60;

// === impl Times ===

impl Default for Times {
    fn default() -> Self {
        Self { look_every: LOOK_EVERY, soon: SOON, close_after: CLOSE_AFTER }
    }
}

// === impl Certificates ===

impl Certificates {
    /// Reads files and runs plug-ins: it may take its time.
    ///
    /// # Errors
    /// What is configured does not work.
    pub(super) fn load(config: &Config, times: Times) -> Result<Self, BoxError> {
        let mut config = config.clone();
        // Ours says when it is read; kube's would only say that it was not.
        let authorities = config.root_cert_file.take();
        let used = load(&config, authorities.as_deref(), None)?;
        let user = &config.auth_info;
        let has_data = user.client_certificate_data.is_some() || user.client_key_data.is_some();
        let renewed_by = match (&used.shown, &user.client_certificate, &user.exec) {
            (Some(_), _, Some(_)) => Renewed::ByPlugin,
            (Some(_), Some(_), None) if !has_data => Renewed::InFiles,
            _ => Renewed::Never,
        };
        let (looked, open) = (Instant::now(), CancellationToken::new());
        let state = State { used, looked, suspicion: Suspicion::None, open };
        Ok(Self { config, authorities, renewed_by, times, clock: Clock::system(), state: Mutex::new(state) })
    }

    /// What connections are made with now.
    pub(super) fn dialer(&self) -> Dialer {
        let state = self.state.lock();
        let open = self.is_renewed().then(|| state.open.clone());
        state.used.dialer.clone().closed_by(open)
    }

    fn is_renewed(&self) -> bool {
        self.authorities.is_some() || self.renewed_by != Renewed::Never
    }

    /// Looks whether there are new certificates, if it is time to; answers whether there are.
    async fn renew(self: &Arc<Self>) -> bool {
        let Some(held) = self.due() else { return false };
        let this = Arc::clone(self);
        let look = move || load(&this.config, this.authorities.as_deref(), held.as_ref());
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

    /// Nothing if it is not time to look. Else what is to be kept: a plug-in's certificate that is still good.
    fn due(&self) -> Option<Option<Loaded>> {
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
        (state.looked, state.suspicion) = (Instant::now(), Suspicion::None);
        let keeps = self.renewed_by == Renewed::ByPlugin && !asks_plugin;
        Some(keeps.then(|| state.used.clone()))
    }

    /// Takes what was found; answers whether it is new.
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
            let (old, close_after) = (std::mem::take(&mut state.open), self.times.close_after);
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

/// Reads what is to be read. With `kept`, the client's certificate is that one, and no plug-in is run.
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
    // The one of the configuration; it asks nobody for what.
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
        // As the lanes, which are always ready.
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
    /// Closed when this is cancelled; without it, never.
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
        // A connection always waits to read, and so hears of it.
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

//! The stack of layers between a client and a socket.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Config;
use kube::client::{Body, ConfigExt as _};
use rustls::pki_types::ServerName;
use tokio_util::sync::CancellationToken;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt as _};

use super::lanes::Lanes;
use super::metrics::{Counting, RestMetrics};
use super::proxy::{Proxy, Through};
use super::renewal::{Certificates, Closable, Renewing, Times};
use super::token::TokenFile;
use super::{ConnectError, Origin, root_cause};

/// The connector for new connections.
pub(super) type Dialer = Patient<HttpsConnector<Through>>;

/// A connector with a timeout, including the TLS handshake, whose connections can be closed.
#[derive(Clone)]
pub(super) struct Patient<C> {
    inner: C,
    patience: Duration,
    open: Option<CancellationToken>,
}

/// Pings detect a dead connection within 45 s; client-go's values (`HTTP2_READ_IDLE_TIMEOUT_SECONDS`,
/// `…_PING_TIMEOUT_SECONDS`).
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_WAIT: Duration = Duration::from_secs(15);
/// The same for HTTP/1.1: idle for 15 s, then a probe every 10 s, three of them unanswered.
const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(15);
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(10);
const KEEP_ALIVE_PROBES: u32 = 3;
/// The maximum time that sent data may stay unacknowledged.
#[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(45);
/// The value of kube and client-go.
const CONNECT_WAIT: Duration = Duration::from_secs(30);

/// Returns the user agent: `steersman/0.1.0 (linux/amd64)` and the caller's suffix, in the form of upstream's
/// components.
pub fn user_agent(suffix: Option<&str>) -> Result<HeaderValue, ConnectError> {
    // Go's names, which appear in logs and audit policies of clusters.
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let name = format!("steersman/{} ({}/{arch})", env!("CARGO_PKG_VERSION"), std::env::consts::OS);
    let whole = suffix.map_or_else(|| name.clone(), |suffix| format!("{name} {suffix}"));
    HeaderValue::try_from(&whole).map_err(|error| ConnectError::Address { server: whole, problem: error.to_string() })
}

/// The service that sends requests. Cheap to clone; clones share connections.
pub type Transport = BoxCloneSyncService<Request<Body>, Response<UnsyncBoxBody<Bytes, BoxError>>, BoxError>;

/// Creates a transport with connections of its own.
pub(super) async fn transport(
    config: &Config,
    origin: &Origin,
    metrics: Option<RestMetrics>,
    times: Times,
) -> Result<Transport, ConnectError> {
    let wrong = |problem: String| ConnectError::Credentials { origin: origin.clone(), problem };
    let mut config = config.clone();
    if let Some(url) = &config.proxy_url {
        let unusable = |problem: String| {
            let proxy = super::proxy::without_credentials(url);
            ConnectError::Proxy { proxy, origin: origin.clone(), problem }
        };
        let credentials = Proxy::parse(url).map_err(unusable)?.header_for(&config.cluster_url);
        config.headers.extend(credentials);
    }
    // A file wins over an inline token, as in client-go.
    let token = match config.auth_info.token_file.take() {
        Some(path) => {
            config.auth_info.token = None;
            let open = TokenFile::open(PathBuf::from(&path)).await;
            Some(open.map_err(|error| wrong(format!("cannot read the token file {path}: {error}")))?)
        }
        None => None,
    };
    // Building the layers reads key files and runs plug-ins, which may take time.
    let made = tokio::task::spawn_blocking(move || stack(&config, token, metrics, times));
    match made.await {
        Ok(transport) => transport.map_err(|error| wrong(root_cause(&*error))),
        Err(error) => Err(wrong(error.to_string())),
    }
}

fn stack(
    config: &Config,
    token: Option<TokenFile>,
    metrics: Option<RestMetrics>,
    times: Times,
) -> Result<Transport, BoxError> {
    // kube builds its TLS configuration from the default of the process, which may not be set.
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Fails only if another thread was faster, which is just as well.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    }
    let certificates = Arc::new(Certificates::load(config, times)?);
    let dials = Arc::clone(&certificates);
    let lanes = Lanes::new(move || {
        HyperClient::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .http2_keep_alive_interval(PING_EVERY)
            .http2_keep_alive_timeout(PING_WAIT)
            .http2_keep_alive_while_idle(true)
            .build::<_, Body>(dials.dialer())
    });
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .option_layer(token)
        .map_err(BoxError::from)
        .layer(Counting(metrics))
        .service(Renewing::new(certificates, lanes));
    Ok(BoxCloneSyncService::new(
        service.map_response(|response| response.map(|body| body.map_err(Into::into).boxed_unsync())),
    ))
}

/// Creates the connector to the server of a configuration.
///
/// # Errors
/// The name of the server, or the address of the proxy, is invalid.
pub(super) fn dialer(config: &Config, tls: rustls::ClientConfig) -> Result<Dialer, BoxError> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(config.connect_timeout.unwrap_or(CONNECT_WAIT)));
    tcp.set_keepalive(Some(KEEP_ALIVE_AFTER));
    tcp.set_keepalive_interval(Some(KEEP_ALIVE_EVERY));
    tcp.set_keepalive_retries(Some(KEEP_ALIVE_PROBES));
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX));
    let through = Through::new(tcp, config.proxy_url.as_ref(), &tls)?;
    let mut builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name =
            ServerName::try_from(name.clone()).map_err(|error| format!("tls-server-name \"{name}\": {error}"))?;
        builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let https = builder.enable_all_versions().wrap_connector(through);
    Ok(Patient { inner: https, patience: config.connect_timeout.unwrap_or(CONNECT_WAIT), open: None })
}

// === impl Patient ===

impl<C> Patient<C> {
    /// Returns the same connector, with connections that are closed when `open` is cancelled.
    pub(super) fn closed_by(self, open: Option<CancellationToken>) -> Self {
        Self { open, ..self }
    }
}

impl<C> Service<Uri> for Patient<C>
where
    C: Service<Uri, Error = BoxError>,
    C::Future: Send + 'static,
    C::Response: Send,
{
    type Response = Closable<C::Response>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Closable<C::Response>, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let patience = self.patience;
        let open = self.open.clone();
        let connecting = self.inner.call(to);
        Box::pin(async move {
            let connected = tokio::time::timeout(patience, connecting).await.unwrap_or_else(|_| {
                let problem = format!("no connection within {} s", patience.as_secs());
                Err(io::Error::new(io::ErrorKind::TimedOut, problem).into())
            });
            connected.map(|connection| Closable::new(connection, open))
        })
    }
}

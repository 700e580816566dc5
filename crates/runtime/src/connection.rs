//! Connections: clients from a kubeconfig or from inside a cluster.
//!
//! 1. **Configuration.** The given kubeconfig, or server; else the cluster in which the process runs; else
//!    `$KUBECONFIG`, else `~/.kube/config`. Files, inline data, exec plug-ins, `tls-server-name`,
//!    `insecure-skip-tls-verify` and impersonation work as in client-go. Tokens, certificates and authorities in files
//!    are read again every minute, and a plug-in is run again when its certificate expires: a rotation needs no
//!    restart. Proxies (HTTP, HTTPS, SOCKS 5) are those of a kubeconfig's `proxy-url`, or of `HTTPS_PROXY`, `HTTP_PROXY` and
//!    `NO_PROXY`, by the rules of Go's `net/http`.
//! 2. **Dead connections are detected in under a minute.** HTTP/2 pings every 30 s and waits 15 s for the answer;
//!    HTTP/1.1, for servers without HTTP/2, relies on TCP keep-alive and a `TCP_USER_TIMEOUT` of 45 s. There is no read
//!    timeout: a watch may be silent.
//! 3. **No hidden retries.** A request is sent once. (A request that was not sent, because its pooled connection was
//!    found closed, is sent on another one.)
//! 4. **Watches never block writes.** kube-apiserver accepts 100 streams on a connection; at 80 another connection is
//!    opened.
//! 5. **Errors are one sentence** that names file, context or host.
//!
//! Built from kube's `ConfigExt` layers, so users keep [`kube::Client`].

pub(crate) mod exchange;
mod lanes;
pub(crate) mod limits;
mod metrics;
mod proxy;
mod renewal;
mod source;
mod token;
pub(crate) mod transport;

use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use http::{Request, StatusCode, Uri};
use kube::client::Body;
use kube::{Client, Config};

pub use limits::Limits;
use limits::Throttle;
pub use metrics::RestMetrics;
use transport::Transport;

/// The options of a connection: the server, and the credentials.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// The kubeconfig; without one, the service account of the pod, then a kubeconfig in the usual places.
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig, instead of its current one.
    pub context: Option<String>,
    /// The address of the API server, instead of the configured one (`--master`).
    pub server: Option<String>,
    /// A suffix of the user agent, such as the name of a controller.
    pub user_agent: Option<String>,
    /// The metrics of requests; none by default.
    pub metrics: Option<RestMetrics>,
    /// The limits of requests; unlimited by default. Each [client](Connection::client) has its own limits, so that a
    /// lease does not wait behind others.
    pub limits: Option<Limits>,
}

/// A configured API server, which clients are created for.
#[derive(Clone)]
pub struct Connection {
    config: Config,
    origin: Origin,
    metrics: Option<RestMetrics>,
    limits: Option<Limits>,
}

/// The source of a configuration, as errors name it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// The service account of the pod.
    InCluster,
    /// A given address, without credentials.
    Named,
    /// A configuration that the program made.
    Given,
    /// A context of a kubeconfig.
    Kubeconfig {
        /// The file or files.
        files: String,
        /// The context.
        context: String,
    },
}

/// An error of a connection. A wrong configuration is not retried; [`ConnectError::Unreachable`] may pass.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// A kubeconfig that cannot be read.
    #[error("cannot read kubeconfig {}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A malformed kubeconfig.
    #[error("kubeconfig {files}: {problem}")]
    Malformed {
        /// The file or files.
        files: String,
        /// The problem.
        problem: String,
    },
    /// Neither a service account nor a kubeconfig was found.
    #[error("no cluster to talk to: {0}")]
    Nowhere(String),
    /// A pod without a usable service account.
    #[error("cannot use the service account of this pod: {0}")]
    InCluster(#[from] kube::config::InClusterError),
    /// Certificates, keys, tokens or a plug-in that do not work.
    #[error("cannot use the credentials {origin}: {problem}")]
    Credentials {
        /// The source of the credentials.
        origin: Origin,
        /// The problem.
        problem: String,
    },
    /// A proxy whose address cannot be used.
    #[error("cannot use the proxy {proxy} {origin}: {problem}")]
    Proxy {
        /// The address of the proxy, without credentials.
        proxy: String,
        /// The source of the configuration.
        origin: Origin,
        /// The problem.
        problem: String,
    },
    /// An invalid address.
    #[error("\"{server}\" is not the address of a server: {problem}")]
    Address {
        /// The address.
        server: String,
        /// The problem.
        problem: String,
    },
    /// The server does not respond.
    #[error("cannot reach {server} ({origin}): {problem}")]
    Unreachable {
        /// The address.
        server: String,
        /// The source of the address.
        origin: Origin,
        /// The problem.
        problem: String,
    },
    /// The server does not accept the credentials.
    #[error("{server} does not accept the credentials {origin}: {status}")]
    Unauthorized {
        /// The address.
        server: String,
        /// The source of the credentials.
        origin: Origin,
        /// The status code.
        status: StatusCode,
    },
}

/// A healthy server answers in milliseconds; behind a slow network in seconds.
const PROBE_WAIT: Duration = Duration::from_secs(15);

/// Creates a client. Reads files and runs plug-ins; nothing is sent to the server yet.
///
/// # Errors
/// The configuration is missing, malformed or contradictory.
pub async fn connect(options: Options) -> Result<Client, ConnectError> {
    Connection::load(options).await?.client().await
}

// === impl Options ===

impl Options {
    /// Sets the kubeconfig file.
    #[must_use]
    pub fn kubeconfig(mut self, path: impl Into<PathBuf>) -> Self {
        self.kubeconfig = Some(path.into());
        self
    }

    /// Sets the context of the kubeconfig.
    #[must_use]
    pub fn context(mut self, name: impl Into<String>) -> Self {
        self.context = Some(name.into());
        self
    }

    /// Sets the address of the API server.
    #[must_use]
    pub fn server(mut self, address: impl Into<String>) -> Self {
        self.server = Some(address.into());
        self
    }

    /// Sets the suffix of the user agent.
    #[must_use]
    pub fn user_agent(mut self, suffix: impl Into<String>) -> Self {
        self.user_agent = Some(suffix.into());
        self
    }

    /// Sets the limits of each client.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }
}

// === impl Connection ===

impl Connection {
    /// Finds and reads the configuration.
    ///
    /// # Errors
    /// The configuration is missing, malformed or contradictory.
    pub async fn load(options: Options) -> Result<Self, ConnectError> {
        let (config, origin) = source::load(&options, &|name| std::env::var_os(name)).await?;
        Self::with_options(config, origin, options)
    }

    /// Creates a connection from a configuration, such as a kubeconfig that was read from a Secret of another cluster:
    ///
    /// ```no_run
    /// # use kube::config::{Config, KubeConfigOptions, Kubeconfig};
    /// # use steersman_runtime::connection::{Connection, Options};
    /// # async fn example(yaml: &str) -> Result<kube::Client, Box<dyn std::error::Error>> {
    /// let config = Config::from_custom_kubeconfig(Kubeconfig::from_yaml(yaml)?, &KubeConfigOptions::default()).await?;
    /// let client = Connection::from_config(config, Options::default())?.client().await?;
    /// # Ok(client) }
    /// ```
    ///
    /// Of the options, `kubeconfig` and `context` have no effect.
    ///
    /// # Errors
    /// The server of the options is no address.
    pub fn from_config(mut config: Config, options: Options) -> Result<Self, ConnectError> {
        proxy::environment::forget(&mut config, &|name| std::env::var_os(name));
        Self::with_options(config, Origin::Given, options)
    }

    fn with_options(mut config: Config, origin: Origin, options: Options) -> Result<Self, ConnectError> {
        if let Some(server) = options.server {
            config.cluster_url = address(&server)?;
        }
        proxy::environment::apply(&mut config, &|name| std::env::var_os(name));
        config.headers.push((http::header::USER_AGENT, transport::user_agent(options.user_agent.as_deref())?));
        Ok(Self { config, origin, metrics: options.metrics, limits: options.limits })
    }

    /// Finds the cluster in which the process runs, and no other; `None` outside of one, and in a pod without a service
    /// account.
    ///
    /// # Errors
    /// The service account cannot be used.
    #[doc(hidden)]
    pub fn in_cluster() -> Result<Option<Self>, ConnectError> {
        let Some((mut config, origin)) = source::in_cluster(&|name| std::env::var_os(name))? else { return Ok(None) };
        proxy::environment::apply(&mut config, &|name| std::env::var_os(name));
        config.headers.push((http::header::USER_AGENT, transport::user_agent(None)?));
        Ok(Some(Self { config, origin, metrics: None, limits: None }))
    }

    /// Creates a client with connections of its own: use another one for what must not wait behind others, such as a
    /// lease.
    ///
    /// # Errors
    /// Certificates, keys, tokens or a plug-in that do not work.
    pub async fn client(&self) -> Result<Client, ConnectError> {
        Ok(Client::new(self.throttle().around(&self.transport().await?), self.default_namespace()))
    }

    /// Creates the transport below a client, for layers of one's own. It has connections of its own, and no
    /// [limits](Self::throttle).
    ///
    /// # Errors
    /// Certificates, keys, tokens or a plug-in that do not work.
    #[doc(hidden)]
    pub async fn transport(&self) -> Result<Transport, ConnectError> {
        transport::transport(&self.config, &self.origin, self.metrics.clone(), renewal::Times::default()).await
    }

    /// Returns the limits of this connection, for transports that several clients share: as in client-go, each client
    /// has its own.
    #[doc(hidden)]
    #[must_use]
    pub fn throttle(&self) -> Throttle {
        let host = self.config.cluster_url.authority().map_or("", http::uri::Authority::as_str);
        let metrics = self.metrics.clone().map(|metrics| (metrics, host.to_owned()));
        Throttle { limits: self.limits, metrics }
    }

    /// Returns the same server, for clients whose requests set the user agent themselves.
    #[doc(hidden)]
    #[must_use]
    pub fn without_user_agent(&self) -> Self {
        let mut bare = self.clone();
        bare.config.headers.retain(|(name, _)| name != http::header::USER_AGENT);
        bare
    }

    /// Returns the same server, for clients whose requests have their own credentials.
    #[doc(hidden)]
    #[must_use]
    pub fn without_credentials(&self) -> Self {
        let mut bare = self.clone();
        bare.config.auth_info = kube::config::AuthInfo::default();
        bare
    }

    /// Requests the server's version, to check that the server responds and accepts the credentials.
    ///
    /// # Errors
    /// [`ConnectError::Unreachable`] or [`ConnectError::Unauthorized`].
    pub async fn check_reachable(&self, client: &Client) -> Result<(), ConnectError> {
        let unreachable =
            |problem: String| ConnectError::Unreachable { server: self.server(), origin: self.origin.clone(), problem };
        let request = Request::get("/version").body(Body::empty()).map_err(|error| unreachable(error.to_string()))?;
        let answer = tokio::time::timeout(PROBE_WAIT, client.send(request)).await;
        match answer {
            Err(_) => Err(unreachable(format!("no answer within {} s", PROBE_WAIT.as_secs()))),
            Ok(Err(error)) => Err(unreachable(root_cause(&error))),
            Ok(Ok(response)) if response.status() == StatusCode::UNAUTHORIZED => Err(ConnectError::Unauthorized {
                server: self.server(),
                origin: self.origin.clone(),
                status: response.status(),
            }),
            Ok(Ok(response)) if response.status().is_server_error() => {
                Err(unreachable(format!("it answers {}", response.status())))
            }
            Ok(Ok(_)) => Ok(()),
        }
    }

    /// Returns the address of the server, for display.
    #[must_use]
    pub fn server(&self) -> String {
        self.config.cluster_url.to_string().trim_end_matches('/').to_owned()
    }

    /// Returns the source of the configuration.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Returns the certificates of the authorities that sign the server's certificate, as PEM; `None` for those of the
    /// system.
    #[doc(hidden)]
    #[must_use]
    pub fn root_ca_pem(&self) -> Option<String> {
        let certificates = self.config.root_cert.as_ref()?;
        let pem = |der: &Vec<u8>| {
            let text = base64::engine::general_purpose::STANDARD.encode(der);
            // Every character is one byte; PEM has lines of 64.
            let lines: Vec<_> = text.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
            format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
        };
        Some(certificates.iter().map(pem).collect())
    }

    /// Returns the namespace of the context, or of the pod.
    #[must_use]
    pub fn default_namespace(&self) -> &str {
        &self.config.default_namespace
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The configuration contains secrets.
        f.debug_struct("Connection").field("server", &self.server()).field("origin", &self.origin).finish()
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InCluster => f.write_str("from the service account of this pod"),
            Self::Named => f.write_str("as named, without credentials"),
            Self::Given => f.write_str("of the given configuration"),
            Self::Kubeconfig { files, context } => write!(f, "from context \"{context}\" in {files}"),
        }
    }
}

fn address(server: &str) -> Result<Uri, ConnectError> {
    let wrong = |problem: String| ConnectError::Address { server: server.to_owned(), problem };
    // As in client-go: a bare host means plain HTTP.
    let whole = if server.contains("://") { server.to_owned() } else { format!("http://{server}") };
    let uri: Uri = whole.parse().map_err(|error: http::uri::InvalidUri| wrong(error.to_string()))?;
    match uri.scheme_str() {
        Some("http" | "https") if uri.host().is_some_and(|host| !host.is_empty()) => Ok(uri),
        _ => Err(wrong("it must be http:// or https:// and a host".to_owned())),
    }
}

/// Returns the innermost cause of an error.
fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests;

//! How a client is made, from a kubeconfig or from inside a cluster.
//!
//! 1. **Where to.** The kubeconfig that was named, or the server; else the cluster we run in; else `$KUBECONFIG`, else
//!    `~/.kube/config`. Files, inline data, exec plug-ins, `tls-server-name`, `insecure-skip-tls-verify` and impersonation work
//!    as in client-go. Tokens, certificates and authorities in files are read again every minute, and a plug-in is run again
//!    when its certificate ends: whoever rotates them need not restart us.
//! 2. **The dead are noticed in under a minute.** HTTP/2 pings every 30 s and gives 15 s for the answer; HTTP/1.1, where a server
//!    has nothing better, relies on TCP keep-alive and `TCP_USER_TIMEOUT` of 45 s. There is no read timeout: a watch may be silent.
//! 3. **No hidden retries.** What was sent is sent once. (A request that never left, because its pooled connection was
//!    found closed, is written to another one.)
//! 4. **Watches never crowd out writes.** kube-apiserver takes 100 streams on a connection; at 80 another connection is opened.
//! 5. **Errors are one sentence** that names file, context or host.
//!
//! Built from kube's `ConfigExt` layers, so users keep [`kube::Client`].

pub(crate) mod exchange;
mod lanes;
mod limits;
mod metrics;
mod renewal;
mod source;
mod token;
mod transport;

use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use http::{Request, StatusCode, Uri};
use kube::client::Body;
use kube::{Client, Config};

pub use limits::{Limits, Throttle};
pub use metrics::RestMetrics;
pub use transport::Transport;

/// What to connect to, and as whom.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// A kubeconfig; `None` looks for a cluster around us, then for a kubeconfig in the usual places.
    pub kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig, instead of its current one.
    pub context: Option<String>,
    /// An address of the API server, instead of the one that is configured (`--master`).
    pub server: Option<String>,
    /// Added to the user agent, such as the name of a controller.
    pub user_agent: Option<String>,
    /// Where requests are counted; nowhere, if nothing is said.
    pub metrics: Option<RestMetrics>,
    /// How many requests are made at most; as many as wanted, if nothing is said. Each [client](Connection::client) has
    /// its own share, so that a lease does not wait behind others.
    pub limits: Option<Limits>,
}

/// Where an API server is and how to speak to it. Makes clients.
#[derive(Clone)]
pub struct Connection {
    config: Config,
    origin: Origin,
    metrics: Option<RestMetrics>,
    limits: Option<Limits>,
}

/// Where a configuration came from, as errors name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The service account of the pod we run in.
    InCluster,
    /// An address that was named, without credentials.
    Named,
    /// A context of a kubeconfig.
    Kubeconfig {
        /// The file, or files.
        files: String,
        /// The context.
        context: String,
    },
}

/// Why there is no connection. Nobody retries a configuration that is wrong; [`ConnectError::Unreachable`] may pass.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// A kubeconfig that is not there, or not ours to read.
    #[error("cannot read kubeconfig {}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A kubeconfig that is not one.
    #[error("kubeconfig {files}: {problem}")]
    Malformed {
        /// The file, or files.
        files: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Neither a cluster around us nor a kubeconfig.
    #[error("no cluster to talk to: {0}")]
    Nowhere(String),
    /// A pod without a service account.
    #[error("cannot use the service account of this pod: {0}")]
    InCluster(#[from] kube::config::InClusterError),
    /// Certificates, keys, tokens or a plug-in that do not work.
    #[error("cannot use the credentials {origin}: {problem}")]
    Credentials {
        /// Where they are from.
        origin: Origin,
        /// What is wrong with them.
        problem: String,
    },
    /// A proxy, which this version cannot use.
    #[error("cannot use the proxy {proxy} {origin}: proxies are not supported yet")]
    Proxy {
        /// Its address.
        proxy: String,
        /// Where it is configured.
        origin: Origin,
    },
    /// An address that is not one.
    #[error("\"{server}\" is not the address of a server: {problem}")]
    Address {
        /// The address.
        server: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Nobody answers there.
    #[error("cannot reach {server} ({origin}): {problem}")]
    Unreachable {
        /// The address.
        server: String,
        /// Where it is from.
        origin: Origin,
        /// What happened.
        problem: String,
    },
    /// Somebody answers, and does not know us.
    #[error("{server} does not accept the credentials {origin}: {status}")]
    Unauthorized {
        /// The address.
        server: String,
        /// Where the credentials are from.
        origin: Origin,
        /// The answer.
        status: StatusCode,
    },
}

/// A server that works answers in milliseconds; one behind a slow network in seconds.
const PROBE_WAIT: Duration = Duration::from_secs(15);

/// A client for what `options` say. Reads files and runs plug-ins; nothing is sent to the server yet.
///
/// # Errors
/// A configuration that is missing, malformed or contradictory.
pub async fn connect(options: Options) -> Result<Client, ConnectError> {
    Connection::load(options).await?.client().await
}

/// The user agent that clients send, and what the caller adds to it.
///
/// # Errors
/// What is added cannot be part of a header.
pub fn user_agent(suffix: Option<&str>) -> Result<http::HeaderValue, ConnectError> {
    transport::user_agent(suffix)
}

// === impl Connection ===

impl Connection {
    /// Finds and reads the configuration.
    ///
    /// # Errors
    /// It is missing, malformed or contradictory.
    pub async fn load(options: Options) -> Result<Self, ConnectError> {
        let (mut config, origin) = source::load(&options, &|name| std::env::var_os(name)).await?;
        if let Some(server) = options.server {
            config.cluster_url = address(&server)?;
        }
        config.headers.push((http::header::USER_AGENT, transport::user_agent(options.user_agent.as_deref())?));
        Ok(Self { config, origin, metrics: options.metrics, limits: options.limits })
    }

    /// A client with connections of its own: whoever must not wait behind others, such as a lease, asks for another one.
    ///
    /// # Errors
    /// Certificates, keys, tokens or a plug-in that do not work.
    pub async fn client(&self) -> Result<Client, ConnectError> {
        Ok(Client::new(self.throttle().around(&self.transport().await?), self.default_namespace()))
    }

    /// What a client sends its requests through, for layers of one's own around it. It has connections of its own, and no
    /// [limits](Self::throttle).
    ///
    /// # Errors
    /// Certificates, keys, tokens or a plug-in that do not work.
    pub async fn transport(&self) -> Result<Transport, ConnectError> {
        transport::transport(&self.config, &self.origin, self.metrics.clone(), renewal::Times::default()).await
    }

    /// The limits of this connection, for transports that several clients share: as in client-go, each has its own.
    #[must_use]
    pub fn throttle(&self) -> Throttle {
        let host = self.config.cluster_url.authority().map_or("", http::uri::Authority::as_str);
        let told = self.metrics.clone().map(|metrics| (metrics, host.to_owned()));
        Throttle { limits: self.limits, told }
    }

    /// The same server, for clients whose requests name their sender themselves: see [`user_agent`].
    #[must_use]
    pub fn without_user_agent(&self) -> Self {
        let mut bare = self.clone();
        bare.config.headers.retain(|(name, _)| name != http::header::USER_AGENT);
        bare
    }

    /// The same server, for clients whose requests bring their credentials themselves.
    #[must_use]
    pub fn without_credentials(&self) -> Self {
        let mut bare = self.clone();
        bare.config.auth_info = kube::config::AuthInfo::default();
        bare
    }

    /// Asks the server for its version, to see whether it is there and knows us.
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

    /// The address of the server, for people.
    #[must_use]
    pub fn server(&self) -> String {
        self.config.cluster_url.to_string().trim_end_matches('/').to_owned()
    }

    /// Where the configuration came from.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The certificates of the authorities that sign the server's, as PEM; none, if those of the system count.
    #[must_use]
    pub fn root_ca_pem(&self) -> Option<String> {
        let certificates = self.config.root_cert.as_ref()?;
        let pem = |der: &Vec<u8>| {
            let text = base64::engine::general_purpose::STANDARD.encode(der);
            // Every character is one byte; lines of 64 are what all programs write.
            let lines: Vec<_> = text.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
            format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
        };
        Some(certificates.iter().map(pem).collect())
    }

    /// The namespace of the context, or of the pod.
    #[must_use]
    pub fn default_namespace(&self) -> &str {
        &self.config.default_namespace
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The configuration holds secrets.
        f.debug_struct("Connection").field("server", &self.server()).field("origin", &self.origin).finish()
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InCluster => f.write_str("from the service account of this pod"),
            Self::Named => f.write_str("as named, without credentials"),
            Self::Kubeconfig { files, context } => write!(f, "from context \"{context}\" in {files}"),
        }
    }
}

fn address(server: &str) -> Result<Uri, ConnectError> {
    let wrong = |problem: String| ConnectError::Address { server: server.to_owned(), problem };
    // As client-go does: a bare host is spoken to without TLS.
    let whole = if server.contains("://") { server.to_owned() } else { format!("http://{server}") };
    let uri: Uri = whole.parse().map_err(|error: http::uri::InvalidUri| wrong(error.to_string()))?;
    match uri.scheme_str() {
        Some("http" | "https") if uri.host().is_some_and(|host| !host.is_empty()) => Ok(uri),
        _ => Err(wrong("it must be http:// or https:// and a host".to_owned())),
    }
}

/// The first cause of an error: what happened, without the layers that it passed.
fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests;

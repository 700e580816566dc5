//! Authentication and authorisation of clients, delegated to the API server as upstream's components do.
//!
//! 1. **Authentication:** a front proxy's headers (if its certificate is from the request-header authority and its name
//!    is allowed), else a client certificate (from the client authority), else a bearer token (`TokenReview`, cached
//!    for 10 s). The first that succeeds counts. If a credential was shown and none succeeds: 401. Without credentials
//!    the client is `system:anonymous`, and may be allowed as such.
//! 2. **Authorisation:** members of `system:masters`, and paths that are open to all (`/healthz`, `/livez`, `/readyz`
//!    by default, but not the paths below them), else `SubjectAccessReview` for the path and the method (cached for 10
//!    s). Not allowed: 403. If the API server cannot be asked: 500, never a yes.
//! 3. Authorities come from a file, or from the ConfigMap `kube-system/extension-apiserver-authentication`; they are
//!    read again every [`REFRESH_EVERY`] by [`Guard::run`]. A source that cannot be read or used leaves the last
//!    authorities in place.
//! 4. Everything that an unknown client can fill is bounded: cached answers ([`REMEMBERED_MAX`]), concurrent reviews
//!    ([`REVIEWS_AT_ONCE`]), the time of one ([`REVIEW_PATIENCE`]).
//! 5. Texts and codes of the answers are upstream's (`apiserver/pkg/endpoints/filters`).
//!
//! Not implemented: the user's `credential-id` extra of client certificates; tokens in websocket protocols.

mod authorities;
mod identity;
mod metrics;
mod remembered;
mod review;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http::request::Parts;
use kube::Client;
use parking_lot::RwLock;
use prometheus::Registry;
use steersman_base::Clock;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Access, Query, page};
use crate::serving::Response;

pub use authorities::GuardError;

use authorities::Authorities;
use metrics::AuthMetrics;
use remembered::Remembered;
use review::{Decision, ReviewError};

/// Admits clients. Cheap to clone; clones are the same guard.
#[derive(Clone)]
pub struct Guard(Arc<Shared>);

/// The options of a guard. The defaults are upstream's.
#[derive(Clone)]
pub struct GuardOptions {
    /// The client that reviews tokens and reads the ConfigMap; without it, tokens are not accepted.
    pub authentication: Option<Client>,
    /// The client that reviews access; without it, everything is forbidden that is not open to all or to privileged
    /// groups.
    pub authorization: Option<Client>,
    /// `--authentication-token-webhook-cache-ttl`.
    pub token_ttl: Duration,
    /// `--authorization-webhook-cache-authorized-ttl`.
    pub allowed_ttl: Duration,
    /// `--authorization-webhook-cache-unauthorized-ttl`.
    pub denied_ttl: Duration,
    /// `--client-ca-file`; without it, the ConfigMap's authority.
    pub client_ca_file: Option<PathBuf>,
    /// `--requestheader-*`; without it, the ConfigMap's values.
    pub request_header: Option<RequestHeaderOptions>,
    /// Whether the ConfigMap is read.
    pub lookup: Lookup,
    /// `--authorization-always-allow-paths`; a trailing `*` matches every path with that prefix.
    pub always_allow_paths: Vec<String>,
    /// Groups whose members may do everything.
    pub always_allow_groups: Vec<String>,
    /// The clock by which certificates are judged.
    pub clock: Clock,
    /// The registry for metrics.
    pub metrics: Option<Registry>,
}

/// A front proxy that names the client in headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestHeaderOptions {
    /// The authority that signs the proxy's certificate.
    pub client_ca_file: PathBuf,
    /// The headers, and the allowed names of the proxy.
    pub headers: RequestHeaders,
}

/// The headers in which a front proxy names the client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestHeaders {
    /// Headers with the user name; the first that is present counts.
    pub username: Vec<String>,
    /// Headers with the uid; the first that is present counts.
    pub uid: Vec<String>,
    /// Headers with the groups; all of them count.
    pub group: Vec<String>,
    /// Prefixes of further attributes.
    pub extra_prefix: Vec<String>,
    /// The common names a proxy may have; any, if empty.
    pub allowed_names: Vec<String>,
}

/// Whether authorities that are not configured are looked up in the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lookup {
    /// The look-up must succeed.
    #[default]
    Required,
    /// A failed look-up is retried later (`--authentication-tolerate-lookup-failure`).
    Tolerated,
    /// Nothing is looked up (`--authentication-skip-lookup`).
    Skipped,
}

/// An authenticated client.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct User {
    /// Name.
    pub name: String,
    /// Unique id; often empty.
    pub uid: String,
    /// Groups.
    pub groups: Vec<String>,
    /// Further attributes.
    pub extra: BTreeMap<String, Vec<String>>,
}

struct Shared {
    options: GuardOptions,
    paths: OpenPaths,
    authorities: RwLock<Authorities>,
    tokens: Remembered<String, Result<User, NotAuthentic>>,
    decisions: Remembered<(User, String, String), Decision>,
    reviews: Semaphore,
    metrics: Option<AuthMetrics>,
}

/// Paths that are open to all.
#[derive(Clone, Debug, Default)]
struct OpenPaths {
    exact: Vec<String>,
    prefixes: Vec<String>,
}

/// A credential that does not authenticate its bearer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct NotAuthentic(pub(super) String);

/// Authorities change seldom, and are replaced long before they expire: a minute is soon enough, and cheap.
pub(crate) const REFRESH_EVERY: Duration = Duration::from_secs(60);
/// The number of cached answers: far more clients than scrape one manager in 10 s.
pub(crate) const REMEMBERED_MAX: usize = 4096;
/// The number of concurrent reviews. Clients with invented tokens wait for each other and do not load the API server.
pub(crate) const REVIEWS_AT_ONCE: usize = 16;
/// Upstream's `TokenRequestTimeout`, `ClientTimeout`.
pub(crate) const REVIEW_PATIENCE: Duration = Duration::from_secs(10);
/// Longer tokens are not cached: clients could fill the memory.
const REMEMBERED_BYTES_MAX: usize = 10_000;
/// Upstream's value.
const TTL: Duration = Duration::from_secs(10);

const ANONYMOUS: &str = "system:anonymous";
const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";

// === impl Guard ===

impl Guard {
    /// Creates a guard from the configured files. Call [`look_up`](Self::look_up) before serving.
    ///
    /// # Errors
    /// A file cannot be used, a path is invalid, or the registry has these metrics already.
    pub fn new(options: GuardOptions) -> Result<Self, GuardError> {
        let paths = OpenPaths::parse(&options.always_allow_paths)?;
        let authorities = Authorities::from_files(&options)?;
        let metrics = options.metrics.as_ref().map(AuthMetrics::register).transpose()?;
        Ok(Self(Arc::new(Shared {
            paths,
            authorities: RwLock::new(authorities),
            tokens: Remembered::new(REMEMBERED_MAX),
            decisions: Remembered::new(REMEMBERED_MAX),
            reviews: Semaphore::new(REVIEWS_AT_ONCE),
            metrics,
            options,
        })))
    }

    /// Reads from the cluster what is not configured by files.
    ///
    /// # Errors
    /// The cluster cannot be read, and that is not [tolerated](Lookup::Tolerated).
    pub async fn look_up(&self) -> Result<(), GuardError> {
        let Err(error) = self.refresh().await else { return Ok(()) };
        if self.0.options.lookup == Lookup::Required {
            return Err(error);
        }
        tracing::warn!(%error, "continuing without authentication configuration: clients may be taken for anonymous");
        Ok(())
    }

    /// Keeps authorities up to date until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let mut reported = None;
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = tokio::time::sleep(REFRESH_EVERY) => {}
            }
            // Logged once, not every minute.
            let problem = self.refresh().await.err().map(|error| error.to_string());
            if let Some(problem) = problem.as_ref().filter(|_| problem != reported) {
                tracing::warn!(problem, "authentication configuration is not up to date");
            }
            reported = problem;
        }
    }

    /// Returns what an admitted request may see, or the refusal.
    pub(super) async fn admit(&self, parts: &Parts, path: &str, query: &Query) -> Result<Access, Response> {
        let began = Instant::now();
        let user = self.authenticate(parts).await;
        if let Some(metrics) = &self.0.metrics {
            metrics.authenticated(user.as_ref().ok(), began.elapsed());
        }
        let user = user.map_err(|error| {
            tracing::warn!(%error, "unable to authenticate a request");
            page::status(&parts.headers, query, StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized", false)
        })?;
        let verb = parts.method.as_str().to_ascii_lowercase();
        let began = Instant::now();
        let decision = self.authorize(&user, &verb, path, query).await;
        if let Some(metrics) = &self.0.metrics {
            metrics.authorized(&decision, began.elapsed());
        }
        match decision {
            Ok(Decision { allowed: Some(access), .. }) => Ok(access),
            Ok(Decision { reason, .. }) => {
                let message = forbidden(&user.name, &verb, path, &reason);
                Err(page::status(&parts.headers, query, StatusCode::FORBIDDEN, "Forbidden", &message, true))
            }
            Err(error) => {
                tracing::warn!(%error, "cannot ask whether a request is allowed");
                let message = format!("Internal Server Error: {:?}: {error}", parts.uri.to_string());
                Err(page::error(StatusCode::INTERNAL_SERVER_ERROR, &sanitize(&message)))
            }
        }
    }

    async fn authorize(&self, user: &User, verb: &str, path: &str, query: &Query) -> Result<Decision, ReviewError> {
        let options = &self.0.options;
        if user.groups.iter().any(|group| options.always_allow_groups.contains(group)) {
            return Ok(Decision::allow(Access::Authorised));
        }
        if !self.0.paths.contains(path) {
            return self.review_access(user, verb, path).await;
        }
        // An authenticated client that asks an open path for details gets them if it may read the paths below, where
        // reasons are shown: `system:public-info-viewer` grants everybody the path itself. No review is made for all
        // others.
        if query.has("verbose") && user.name != ANONYMOUS {
            let below = self.review_access(user, verb, &format!("{path}/*")).await;
            if below.is_ok_and(|decision| decision.allowed.is_some()) {
                return Ok(Decision::allow(Access::Authorised));
            }
        }
        Ok(Decision::allow(Access::Public))
    }

    async fn review_access(&self, user: &User, verb: &str, path: &str) -> Result<Decision, ReviewError> {
        let Some(client) = &self.0.options.authorization else { return Ok(Decision::default()) };
        let of = (user.clone(), verb.to_owned(), path.to_owned());
        if let Some(decision) = self.0.decisions.get(&of) {
            return Ok(decision);
        }
        let _turn = self.0.reviews.acquire().await;
        let decision = review::access(client, user, verb, path).await?;
        let ttl = if decision.allowed.is_some() { self.0.options.allowed_ttl } else { self.0.options.denied_ttl };
        if user.bytes() + path.len() < REMEMBERED_BYTES_MAX {
            self.0.decisions.put(of, decision.clone(), ttl);
        }
        Ok(decision)
    }

    async fn review_token(&self, client: &Client, token: &str) -> Result<User, NotAuthentic> {
        let began = Instant::now();
        let known = self.0.tokens.get(token);
        let hit = known.is_some();
        let user = match known {
            Some(user) => user,
            None => self.fetch_token(client, token).await,
        };
        if let Some(metrics) = &self.0.metrics {
            metrics.token_asked(hit, began.elapsed());
        }
        user
    }

    async fn fetch_token(&self, client: &Client, token: &str) -> Result<User, NotAuthentic> {
        let _turn = self.0.reviews.acquire().await;
        let fetching = self.0.metrics.as_ref().map(AuthMetrics::token_fetch);
        let reviewed = review::token(client, token).await;
        if let Some(fetching) = fetching {
            fetching.end(reviewed.is_ok());
        }
        // Every answer is cached; a missing answer is not.
        let user = reviewed.map_err(|error| NotAuthentic(error.to_string()))?;
        if token.len() < REMEMBERED_BYTES_MAX {
            self.0.tokens.put(token.to_owned(), user.clone(), self.0.options.token_ttl);
        }
        user
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("open", &self.0.paths).finish_non_exhaustive()
    }
}

// === impl GuardOptions ===

impl GuardOptions {
    /// Upstream's defaults, with reviews through this client.
    #[must_use]
    pub fn delegated_to(client: Client, clock: Clock) -> Self {
        Self { authentication: Some(client.clone()), authorization: Some(client), ..Self::new(clock) }
    }

    /// Upstream's defaults, without a client for reviews.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self {
            authentication: None,
            authorization: None,
            token_ttl: TTL,
            allowed_ttl: TTL,
            denied_ttl: TTL,
            client_ca_file: None,
            request_header: None,
            lookup: Lookup::Required,
            always_allow_paths: ["/healthz", "/readyz", "/livez"].map(str::to_owned).to_vec(),
            always_allow_groups: vec!["system:masters".to_owned()],
            clock,
            metrics: None,
        }
    }
}

impl fmt::Debug for GuardOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardOptions")
            .field("tokens", &self.authentication.is_some())
            .field("access", &self.authorization.is_some())
            .field("client_ca_file", &self.client_ca_file)
            .field("request_header", &self.request_header)
            .field("lookup", &self.lookup)
            .field("always_allow_paths", &self.always_allow_paths)
            .finish_non_exhaustive()
    }
}

// === impl User ===

impl User {
    fn anonymous() -> Self {
        Self { name: ANONYMOUS.to_owned(), groups: vec![UNAUTHENTICATED.to_owned()], ..Self::default() }
    }

    /// Adds the group of authenticated users, unless the user is anonymous.
    fn authenticated(mut self) -> Self {
        let is_virtual = |group: &String| group == AUTHENTICATED || group == UNAUTHENTICATED;
        if self.name != ANONYMOUS && !self.groups.iter().any(is_virtual) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }

    fn bytes(&self) -> usize {
        let extra = self.extra.iter().map(|(name, values)| name.len() + values.iter().map(String::len).sum::<usize>());
        self.name.len() + self.uid.len() + self.groups.iter().map(String::len).sum::<usize>() + extra.sum::<usize>()
    }
}

// === impl OpenPaths ===

impl OpenPaths {
    fn parse(paths: &[String]) -> Result<Self, GuardError> {
        let mut open = Self::default();
        for path in paths {
            let path = path.strip_prefix('/').unwrap_or(path);
            match path.strip_suffix('*') {
                Some(prefix) if !prefix.contains('*') => open.prefixes.push(prefix.to_owned()),
                None if !path.contains('*') => open.exact.push(path.to_owned()),
                _ => return Err(GuardError::OpenPath(path.to_owned())),
            }
        }
        Ok(open)
    }

    fn contains(&self, path: &str) -> bool {
        let path = path.strip_prefix('/').unwrap_or(path);
        self.exact.iter().any(|open| open == path) || self.prefixes.iter().any(|prefix| path.starts_with(prefix))
    }
}

/// Upstream's sentence (`responsewriters.Forbidden`).
fn forbidden(user: &str, verb: &str, path: &str, reason: &str) -> String {
    let who = sanitize(&format!("User {user:?} cannot {verb} path {path:?}"));
    if reason.is_empty() { format!("forbidden: {who}") } else { format!("forbidden: {who}: {reason}") }
}

/// Replaces characters of HTML, whatever the client sent.
fn sanitize(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

//! The known kinds: the scheme of the types of a program, and the REST mapper of the resources of a server.
//!
//! Guarantees of the [`RestMapper`]:
//! 1. **One request per root where possible**: aggregated discovery (`apidiscovery.k8s.io/v2`) where the server has it,
//!    else the unaggregated documents. An aggregated document that has not changed is not sent again (`If-None-Match`).
//! 2. **Partial failures are reported and never fatal**: a group that cannot be discovered is in
//!    [`Discovered::failures`], and its last known resources are kept, marked [stale](ApiResource::is_stale): an
//!    aggregated API server that is down for a while does not make its kinds unknown. So is a root (`/api`, `/apis`) that
//!    is refused, or that a proxy does not find: a server never loses all its kinds.
//! 3. **Cached**: discovery is repeated when a kind is unknown (five times in a row at most, then once every five
//!    seconds), when the answer is half a minute old, and after it was [invalidated](RestMapper::invalidate), such as
//!    by a change of a CustomResourceDefinition or an APIService ([`RestMapper::watch`]). Concurrent callers share one
//!    answer, but never one that was requested earlier. While the mapper is not used, nothing is requested.
//! 4. **Upstream's order**: the core group first, then groups as the server orders them, the preferred version first.
//!
//! Follows client-go's `discovery` and `restmapper` (0.37).

pub(crate) mod allowance;
mod discovered;
mod document;
mod fetch;
mod scheme;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use steersman_base::Resource;
use steersman_base::watch;
use steersman_informer::{InformerFactory, MetaSource, Subscription};
use tokio::sync::{Mutex, Notify};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use allowance::Allowance;
pub use discovered::{ApiGroup, ApiResource, ApiSubresource, ApiVersion, Discovered, Failure};
pub use fetch::DiscoveryError;
pub use scheme::{Scheme, SchemeError};

/// Finds the resources of kinds on a server. Cheap to clone; clones share the cache.
#[derive(Clone)]
pub struct RestMapper(Arc<Shared>);

struct Shared {
    client: kube::Client,
    known: watch::Sender<Option<Arc<Discovered>>>,
    /// Set when the cached answer may be outdated.
    doubted: AtomicBool,
    doubt: Notify,
    /// The last answer, with its tags.
    complete: parking_lot::Mutex<fetch::Known>,
    /// Held while discovery is requested, so that waiting callers share the next answer.
    asking: Mutex<Allowance>,
    began: Instant,
    /// The number of requests so far.
    asked: AtomicU64,
    /// The request to which the cached answer belongs.
    answered: AtomicU64,
}

/// An error of a look-up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MapperError {
    /// The server does not have this kind.
    #[error("no matches for kind {kind:?} in {}{}", of(group, version.as_deref()), but(failures))]
    NoKind {
        /// The group.
        group: String,
        /// The version; any, if `None`.
        version: Option<String>,
        /// The kind.
        kind: String,
        /// The groups that could not be discovered: the kind may exist.
        failures: Vec<Failure>,
    },
    /// The server does not have this resource.
    #[error("the server doesn't have a resource type {name:?}{}", but(failures))]
    NoResource {
        /// The name.
        name: String,
        /// The groups that could not be discovered: the resource may exist.
        failures: Vec<Failure>,
    },
    /// Nothing is cached, and discovery failed.
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
}

/// Changes come in bursts: a chart brings a dozen definitions.
const SETTLE: Duration = Duration::from_secs(1);
/// The interval at which the cached answer is invalidated anyway: aggregated API servers change without notice.
/// Upstream's garbage collector asks as often.
const DOUBT_EVERY: Duration = Duration::from_secs(30);
/// The resources whose changes may change the known kinds.
const SIGNS: [Resource; 2] = [
    Resource::cluster("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition"),
    Resource::cluster("apiregistration.k8s.io", "v1", "apiservices", "APIService"),
];

// === impl RestMapper ===

impl RestMapper {
    /// Creates an empty mapper, which requests discovery through `client` when needed.
    #[must_use]
    pub fn new(client: kube::Client) -> Self {
        Self(Arc::new(Shared {
            client,
            known: watch::Sender::new(None),
            doubted: AtomicBool::new(true),
            doubt: Notify::new(),
            complete: parking_lot::Mutex::default(),
            asking: Mutex::new(Allowance::full()),
            began: Instant::now(),
            asked: AtomicU64::new(0),
            answered: AtomicU64::new(0),
        }))
    }

    /// Returns all resources. Requests discovery if nothing is cached or the cache was invalidated; if that fails,
    /// returns the cached answer.
    ///
    /// # Errors
    /// Nothing is cached, and discovery failed.
    pub async fn resources(&self) -> Result<Arc<Discovered>, DiscoveryError> {
        let known = self.0.known.borrow().clone();
        match known {
            Some(known) if !self.0.doubted.load(Ordering::Acquire) => Ok(known),
            Some(known) => Ok(self.refresh().await.unwrap_or_else(|error| {
                tracing::warn!(%error, "discovery failed; using the cached answer");
                known
            })),
            None => self.refresh().await,
        }
    }

    /// Returns the resource of a kind; of the preferred version that has it, if no version is given. Discovery is
    /// repeated for an unknown kind, as often as is allowed.
    ///
    /// # Errors
    /// The kind does not exist, or discovery failed.
    pub async fn resource_for(
        &self,
        group: &str,
        version: Option<&str>,
        kind: &str,
    ) -> Result<ApiResource, MapperError> {
        let find = |known: &Discovered| known.kind(group, version, kind).cloned();
        self.look(find).await?.map_err(|failures| MapperError::NoKind {
            group: group.to_owned(),
            version: version.map(str::to_owned),
            kind: kind.to_owned(),
            failures,
        })
    }

    /// Returns the resource of a name, with kubectl's syntax: `pods`, `pod`, `po`, `deployments.apps`,
    /// `deployments.v1.apps`.
    ///
    /// # Errors
    /// The resource does not exist, or discovery failed.
    pub async fn find(&self, name: &str) -> Result<ApiResource, MapperError> {
        let find = |known: &Discovered| known.find(name).cloned();
        self.look(find).await?.map_err(|failures| MapperError::NoResource { name: name.to_owned(), failures })
    }

    /// Requests discovery now. Callers that wait at the same time share the answer; an answer that was requested before
    /// the call is never shared.
    ///
    /// # Errors
    /// Discovery failed altogether; the cached answer is kept.
    pub async fn refresh(&self) -> Result<Arc<Discovered>, DiscoveryError> {
        let before = self.0.asked.load(Ordering::Acquire);
        let asking = self.0.asking.lock().await;
        let outcome = match self.known_since(before) {
            Some(known) => Ok(known),
            None => self.ask().await,
        };
        drop(asking);
        outcome
    }

    /// Invalidates the cached answer: the next caller gets a new one.
    pub fn invalidate(&self) {
        self.0.doubted.store(true, Ordering::Release);
        self.0.doubt.notify_one();
    }

    /// Returns the cached answer and all later ones: `None` before the first.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Option<Arc<Discovered>>> {
        self.0.known.subscribe()
    }

    /// Invalidates the cached answer whenever a CustomResourceDefinition or an APIService changes, for as long as the
    /// subscriptions are kept. Only metadata is watched. Call it before the informers start.
    ///
    /// # Errors
    /// `/api` or `/apis` cannot be read, so it is not known which groups there are. The next call asks again.
    pub async fn watch(&self, informers: &InformerFactory) -> Result<Vec<Subscription>, DiscoveryError> {
        let known = self.resources().await?;
        if let Some(root) = known.missing_root() {
            self.invalidate();
            return Err(DiscoveryError::of_root(root));
        }
        let served =
            SIGNS.into_iter().filter(|sign| known.kind(&sign.group, Some(&sign.version), &sign.kind).is_some());
        let subscribe = |sign| {
            let mapper = self.clone();
            informers.meta(&sign).subscribe_meta(Box::new(move |change| {
                if !change.is_initial() {
                    mapper.invalidate();
                }
            }))
        };
        Ok(served.map(subscribe).collect())
    }

    /// Invalidates the cached answer every half a minute until `stop`; and, while there are
    /// [subscribers](Self::subscribe), such as a garbage collector, requests discovery then, and shortly after every
    /// other invalidation.
    ///
    /// A manager runs its own mapper.
    pub async fn run(&self, stop: CancellationToken) {
        let following = async {
            loop {
                tokio::select! {
                    biased;
                    () = self.0.doubt.notified() => tokio::time::sleep(SETTLE).await,
                    () = tokio::time::sleep(DOUBT_EVERY) => {}
                }
                self.0.doubted.store(true, Ordering::Release);
                if self.0.known.receiver_count() > 0
                    && let Err(error) = self.resources().await
                {
                    tracing::warn!(%error, "discovery failed, and nothing is known");
                }
            }
        };
        stop.run_until_cancelled(following).await;
    }

    /// Looks something up; if it is unknown, requests discovery again if that is allowed. The inner error has the
    /// failures.
    async fn look<T>(
        &self,
        find: impl Fn(&Discovered) -> Option<T>,
    ) -> Result<Result<T, Vec<Failure>>, DiscoveryError> {
        let before = self.0.asked.load(Ordering::Acquire);
        let known = self.resources().await?;
        if let Some(found) = find(&known) {
            return Ok(Ok(found));
        }
        let mut asking = self.0.asking.lock().await;
        let known = match self.known_since(before) {
            Some(news) => news,
            None if asking.take(self.0.began.elapsed()) => self.ask().await?,
            None => known,
        };
        Ok(find(&known).ok_or_else(|| known.failures().to_vec()))
    }

    /// Returns the cached answer, if it was requested after `before` earlier requests.
    fn known_since(&self, before: u64) -> Option<Arc<Discovered>> {
        (self.0.answered.load(Ordering::Acquire) > before).then(|| self.0.known.borrow().clone()).flatten()
    }

    /// Requests discovery. The caller holds `asking`.
    async fn ask(&self) -> Result<Arc<Discovered>, DiscoveryError> {
        let this = self.0.asked.fetch_add(1, Ordering::AcqRel) + 1;
        // An invalidation during the request applies to its answer, too.
        self.0.doubted.store(false, Ordering::Release);
        let complete = self.0.complete.lock().clone();
        let before = self.0.known.borrow().clone();
        let had_core = before.as_ref().is_some_and(|before| before.has_core());
        let fetched = fetch::everything(&self.0.client, &complete, had_core).await.inspect_err(|_| {
            self.0.doubted.store(true, Ordering::Release);
        })?;
        *self.0.complete.lock() = fetched.clone();
        let known = Arc::new(match &before {
            Some(before) if !fetched.found.failures.is_empty() => fetched.found.keeping(before),
            _ => fetched.found,
        });
        for Failure { what, why } in known.failures() {
            tracing::warn!(what, why, "discovery of an API failed; the cached resources are kept");
        }
        self.0.known.send_replace(Some(Arc::clone(&known)));
        self.0.answered.store(this, Ordering::Release);
        Ok(known)
    }
}

impl fmt::Debug for RestMapper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.0.known.borrow().as_ref().map(|known| known.resources().count());
        f.debug_struct("RestMapper").field("resources", &known).finish_non_exhaustive()
    }
}

// === impl MapperError ===

fn of(group: &str, version: Option<&str>) -> String {
    match (group, version) {
        (group, None) => format!("group {group:?}"),
        ("", Some(version)) => format!("version {version:?}"),
        (group, Some(version)) => format!("version \"{group}/{version}\""),
    }
}

fn but(failures: &[Failure]) -> String {
    if failures.is_empty() {
        return String::new();
    }
    let failures: Vec<_> = failures.iter().map(|Failure { what, why }| format!("{what}: {why}")).collect();
    format!(" (not all could be asked: {})", failures.join("; "))
}

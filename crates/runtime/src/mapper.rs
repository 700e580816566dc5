//! Which kinds there are: the scheme of the types that a program knows, and the REST mapper of what a server has.
//!
//! Guarantees of the [`RestMapper`]:
//! 1. **One request per root where it can be**: aggregated discovery (`apidiscovery.k8s.io/v2`) where the server has it,
//!    else the lists of old.
//! 2. **Partial failures are told and never fatal**: a group that cannot be asked is in [`Discovered::failures`], and what
//!    was known of it before is kept, marked [stale](ApiResource::is_stale): an aggregated API server that is down for a
//!    while does not make its kinds unknown.
//! 3. **Cached**: discovery is asked again when a kind is unknown (at most [`REFRESH_BURST`] times in a row, then once per
//!    [`REFRESH_EVERY`]), when what is known is half a minute old, and after something
//!    [invalidated](RestMapper::invalidate) it, such as a change of a CustomResourceDefinition or an APIService
//!    ([`RestMapper::watch`]). Who asks at the same time shares one answer, but never one that was asked for earlier.
//!    While nobody uses the mapper, nobody is asked.
//! 4. **Upstream's order**: the core group first, then groups as the server orders them, the preferred version first.
//!
//! Follows client-go's `discovery` and `restmapper` (0.37).

mod allowance;
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
pub use allowance::{REFRESH_BURST, REFRESH_EVERY};
pub use discovered::{ApiGroup, ApiResource, ApiSubresource, ApiVersion, Discovered, Failure};
pub use fetch::DiscoveryError;
pub use scheme::{Scheme, SchemeError};

/// Knows which kinds a server has. Cheap to clone; clones share what they know.
#[derive(Clone)]
pub struct RestMapper(Arc<Shared>);

struct Shared {
    client: kube::Client,
    known: watch::Sender<Option<Arc<Discovered>>>,
    /// Set when what is known is to be doubted.
    doubted: AtomicBool,
    doubt: Notify,
    /// Held while discovery is asked, so that who waits for it shares the next answer.
    asking: Mutex<Allowance>,
    began: Instant,
    /// How often discovery was asked.
    asked: AtomicU64,
    /// At which of these times what is known was told.
    told: AtomicU64,
}

/// Why a name or kind stands for nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MapperError {
    /// The server has no such kind.
    #[error("no matches for kind {kind:?} in {}{}", of(group, version.as_deref()), but(failures))]
    NoKind {
        /// The group that was asked for.
        group: String,
        /// The version that was asked for; any, if none was.
        version: Option<String>,
        /// The kind that was asked for.
        kind: String,
        /// What could not be asked, and why: the kind may be there.
        failures: Vec<Failure>,
    },
    /// The server has no such resource.
    #[error("the server doesn't have a resource type {name:?}{}", but(failures))]
    NoResource {
        /// The name that was asked for.
        name: String,
        /// What could not be asked, and why: the resource may be there.
        failures: Vec<Failure>,
    },
    /// Nothing is known, because the server cannot be asked.
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
}

/// Changes come in bursts: a chart brings a dozen definitions.
const SETTLE: Duration = Duration::from_secs(1);
/// How often what is known is doubted anyway: aggregated API servers change without a sign. Upstream's garbage collector
/// asks as often.
const DOUBT_EVERY: Duration = Duration::from_secs(30);
/// What changes when kinds come and go.
const SIGNS: [Resource; 2] = [
    Resource::cluster("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition"),
    Resource::cluster("apiregistration.k8s.io", "v1", "apiservices", "APIService"),
];

// === impl RestMapper ===

impl RestMapper {
    /// A mapper that knows nothing yet and asks through `client` when it has to.
    #[must_use]
    pub fn new(client: kube::Client) -> Self {
        Self(Arc::new(Shared {
            client,
            known: watch::Sender::new(None),
            doubted: AtomicBool::new(true),
            doubt: Notify::new(),
            asking: Mutex::new(Allowance::full()),
            began: Instant::now(),
            asked: AtomicU64::new(0),
            told: AtomicU64::new(0),
        }))
    }

    /// Everything there is. Asks the server if nothing is known, or what is known is doubted; if the server then cannot be
    /// asked, the answer is what was known before.
    ///
    /// # Errors
    /// Nothing is known, and the server cannot be asked.
    pub async fn resources(&self) -> Result<Arc<Discovered>, DiscoveryError> {
        let known = self.0.known.borrow().clone();
        match known {
            Some(known) if !self.0.doubted.load(Ordering::Acquire) => Ok(known),
            Some(known) => Ok(self.refresh().await.unwrap_or_else(|error| {
                tracing::warn!(%error, "discovery failed; going on with what was known before");
                known
            })),
            None => self.refresh().await,
        }
    }

    /// The resource of a kind; of the preferred version that has it, if no version is asked for. A kind that is unknown
    /// is asked for again, as often as is allowed.
    ///
    /// # Errors
    /// There is none, or the server cannot be asked.
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

    /// The resource that a name stands for, as kubectl takes names: `pods`, `pod`, `po`, `deployments.apps`,
    /// `deployments.v1.apps`.
    ///
    /// # Errors
    /// There is none, or the server cannot be asked.
    pub async fn find(&self, name: &str) -> Result<ApiResource, MapperError> {
        let find = |known: &Discovered| known.find(name).cloned();
        self.look(find).await?.map_err(|failures| MapperError::NoResource { name: name.to_owned(), failures })
    }

    /// Asks the server now. Who waits for its turn at the same time shares the answer; an answer that was asked for before
    /// the call is never shared.
    ///
    /// # Errors
    /// The server cannot be asked at all; what was known stays known.
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

    /// Doubts what is known: the next who asks gets news.
    pub fn invalidate(&self) {
        self.0.doubted.store(true, Ordering::Release);
        self.0.doubt.notify_one();
    }

    /// What is known, and every change of it: `None` before the first answer.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Option<Arc<Discovered>>> {
        self.0.known.subscribe()
    }

    /// Doubts what is known whenever a CustomResourceDefinition or an APIService changes, for as long as the
    /// subscriptions are kept. Metadata is all that is watched. Call it before the informers start.
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

    /// Doubts what is known every half a minute until `stop`; and, while somebody [subscribes](Self::subscribe), such as a
    /// garbage collector, asks then, and shortly after every other doubt. Nobody subscribes: nobody is asked.
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

    /// Looks for something; if it is unknown, asks the server again if that is allowed. The inner error is what could not
    /// be asked.
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

    /// What is known, if the server was asked for it after it had been asked `before` times.
    fn known_since(&self, before: u64) -> Option<Arc<Discovered>> {
        (self.0.told.load(Ordering::Acquire) > before).then(|| self.0.known.borrow().clone()).flatten()
    }

    /// Asks the server. Called by who holds `asking`.
    async fn ask(&self) -> Result<Arc<Discovered>, DiscoveryError> {
        let this = self.0.asked.fetch_add(1, Ordering::AcqRel) + 1;
        // Doubts that come while the server is asked are about the answer, too.
        self.0.doubted.store(false, Ordering::Release);
        let fetched = fetch::everything(&self.0.client).await.inspect_err(|_| {
            self.0.doubted.store(true, Ordering::Release);
        })?;
        let before = self.0.known.borrow().clone();
        let known = Arc::new(match &before {
            Some(before) => fetched.keeping(before),
            None => fetched,
        });
        for Failure { what, why } in known.failures() {
            tracing::warn!(what, why, "discovery of an API failed; what was known of it is kept");
        }
        self.0.known.send_replace(Some(Arc::clone(&known)));
        self.0.told.store(this, Ordering::Release);
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

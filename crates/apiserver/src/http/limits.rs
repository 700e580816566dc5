//! Limits of requests: their number, duration and threads.
//!
//! 1. Requests in flight are bounded, separately for reads and writes; one too many gets 429 at once. Watches and
//!    followed logs do not count, nor do health checks and requests within the process.
//! 2. A request has [`RequestLimits::timeout`] from its headers to its response, its body included; watches and
//!    followed logs have their own.
//! 3. Heavy requests do not block threads that others need: see [`HeavyWork`]. There are never more of them at a time
//!    than processors, so their memory is bounded, too.
//! 4. Requests that may call webhooks run on threads of their own, wherever heavy ones run: see [`crate::webhook`].
//!
//! Follows `apiserver/pkg/server/filters/{maxinflight,timeout,waitgroup}.go` of Kubernetes 1.37, with its defaults.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::Method;
use http::request::Parts;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::path::Target;
use crate::registry::Registry;
use crate::registry::query::Query;
use crate::webhook::CALLERS_MAX;

/// The maximum number of reads in flight: `--max-requests-inflight`.
pub(crate) const READS_MAX: usize = 400;
/// The maximum number of writes in flight: `--max-mutating-requests-inflight`.
pub(crate) const WRITES_MAX: usize = 200;
/// The time limit of a request: `--request-timeout`.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// A request is heavy if its body, or the object that it changes, is larger than this.
pub(crate) const HEAVY_BYTES: usize = 64 << 10;

/// The threads on which heavy requests run. Heavy are those with a large body or object, definitions, objects with
/// rules that may cost much, YAML with aliases, lists, and documents about the whole API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeavyWork {
    /// On the thread that receives them. For tests and simulations: paused time does not wait for other threads, and a
    /// seed is not reproducible with them.
    #[default]
    Inline,
    /// On threads of their own. For servers whose threads have other duties, such as renewing a lease.
    BlockingPool,
}

/// The limits of requests in flight, and the time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestLimits {
    /// The maximum number of reads.
    pub reads_max: usize,
    /// The maximum number of writes.
    pub writes_max: usize,
    /// The time limit.
    pub timeout: Duration,
}

/// The free capacity.
#[derive(Debug)]
pub(crate) struct Limits {
    reads: Arc<Semaphore>,
    writes: Arc<Semaphore>,
    heavy: Arc<Semaphore>,
    callers: Arc<Semaphore>,
    pub(super) timeout: Duration,
}

/// The class of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Reads,
    Writes,
    /// Unlimited: a watch or a followed log.
    LongRunning,
}

// === impl RequestLimits ===

impl Default for RequestLimits {
    fn default() -> Self {
        Self { reads_max: READS_MAX, writes_max: WRITES_MAX, timeout: REQUEST_TIMEOUT }
    }
}

impl RequestLimits {
    /// Sets the maximum number of reads in flight.
    #[must_use]
    pub fn reads_max(mut self, reads_max: usize) -> Self {
        self.reads_max = reads_max;
        self
    }

    /// Sets the maximum number of writes in flight.
    #[must_use]
    pub fn writes_max(mut self, writes_max: usize) -> Self {
        self.writes_max = writes_max;
        self
    }

    /// Sets the time limit of a request.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}

// === impl Limits ===

impl Limits {
    pub(crate) fn new(limits: RequestLimits) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let places = |count: usize| Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS)));
        Self {
            reads: places(limits.reads_max),
            writes: places(limits.writes_max),
            heavy: places(processors),
            callers: places(CALLERS_MAX),
            timeout: limits.timeout,
        }
    }

    /// Returns a permit for a request, if there is one.
    pub(super) fn admit(&self, class: Class) -> Option<OwnedSemaphorePermit> {
        let places = match class {
            Class::Reads | Class::LongRunning => &self.reads,
            Class::Writes => &self.writes,
        };
        Arc::clone(places).try_acquire_owned().ok()
    }

    /// Waits for a permit to call webhooks. It is another one than that of heavy work, which a webhook may ask for.
    pub(super) async fn caller(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.callers).acquire_owned().await.ok()
    }

    /// Waits for a permit for heavy work.
    pub(super) async fn heavy(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.heavy).acquire_owned().await.ok()
    }
}

// === impl Class ===

impl Class {
    pub(super) fn of(parts: &Parts, target: &Target, query: &Query) -> Self {
        if !matches!(parts.method, Method::GET | Method::HEAD) {
            return Self::Writes;
        }
        match target {
            Target::Resource(path) if path.is_watch || path.name.is_empty() && query.flag("watch") => Self::LongRunning,
            Target::Resource(path) if path.subresource == "log" && query.flag("follow") => Self::LongRunning,
            _ => Self::Reads,
        }
    }
}

/// Whether a body is YAML with aliases, which stand for more than their bytes.
fn has_aliases(parts: &Parts, body: &[u8]) -> bool {
    let kind = parts.headers.get(http::header::CONTENT_TYPE).map_or(&b""[..], |kind| kind.as_bytes());
    kind.windows(4).any(|word| word == b"yaml") && body.contains(&b'&')
}

/// Whether a request is about objects that a webhook converts.
pub(super) fn is_converted(registry: &Registry, target: &Target) -> bool {
    if !registry.has_conversions.load(Ordering::Relaxed) {
        return false;
    }
    match target {
        Target::Resource(path) => registry
            .row(&path.group, &path.version, &path.plural)
            .is_some_and(|row| row.custom.as_ref().is_some_and(|custom| custom.conversion.is_some())),
        _ => false,
    }
}

/// Whether a request is heavy.
pub(super) fn is_heavy(registry: &Registry, parts: &Parts, target: &Target, body: &[u8]) -> bool {
    if body.len() > HEAVY_BYTES {
        return true;
    }
    match target {
        // Lists and deletions of collections.
        Target::Resource(path) if path.name.is_empty() && parts.method != Method::POST => true,
        Target::Resource(path) if parts.method != Method::GET => {
            let Some(row) = registry.row(&path.group, &path.version, &path.plural) else { return false };
            let is_large = || {
                let key = steersman_base::ObjectKey::new(&path.namespace, &path.name);
                registry.store.get(&row.collection, &key).is_some_and(|it| it.len() > HEAVY_BYTES)
            };
            // A create has no object yet.
            row.has_heavy_writes() || has_aliases(parts, body) || !path.name.is_empty() && is_large()
        }
        Target::Resource(_) | Target::Group(_) => false,
        Target::CoreVersions | Target::Groups | Target::Version(..) | Target::Other(_) => true,
    }
}

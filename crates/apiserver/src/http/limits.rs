//! How many requests are worked on at a time, for how long, and where.
//!
//! 1. Requests in flight are bounded, those that read and those that write apart; one too many hears 429 at once. Watches
//!    and followed logs do not count, nor do questions about health and requests from the process itself.
//! 2. A request has [`RequestLimits::timeout`] from its headers to its answer, its body included; watches and followed logs
//!    have their own.
//! 3. Heavy requests do not hold a thread that others need: see [`HeavyWork`]. There are never more of them at a time than
//!    processors, so what they allocate is bounded, too.
//!
//! Follows `apiserver/pkg/server/filters/{maxinflight,timeout,waitgroup}.go` of Kubernetes 1.37, with its defaults.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use http::request::Parts;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::path::{self, Target};
use crate::registry::Registry;
use crate::registry::query::Query;

/// How many requests that only read are in flight at most: `--max-requests-inflight`.
pub const READS_MAX: usize = 400;
/// How many requests that write are in flight at most: `--max-mutating-requests-inflight`.
pub const WRITES_MAX: usize = 200;
/// How long a request has: `--request-timeout`.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// A request is heavy if its body, or the object that it changes, is larger than this.
pub const HEAVY_BYTES: usize = 64 << 10;

/// Where heavy requests are worked on: those with a large body or object, lists, and documents about the whole API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeavyWork {
    /// Where they come in. For tests and simulations: paused time does not wait for other threads, and a seed does not
    /// replay with them.
    #[default]
    Inline,
    /// On threads of their own. For servers whose threads have other things to do, such as to renew a lease.
    BlockingPool,
}

/// How many requests are in flight at most, and how long each has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// How many that only read.
    pub reads_max: usize,
    /// How many that write.
    pub writes_max: usize,
    /// How long each has.
    pub timeout: Duration,
}

/// What is left of the limits.
#[derive(Debug)]
pub(crate) struct Limits {
    reads: Arc<Semaphore>,
    writes: Arc<Semaphore>,
    heavy: Arc<Semaphore>,
    pub(super) timeout: Duration,
}

/// What a request is to the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Reads,
    Writes,
    /// It lasts as long as the client likes.
    LongRunning,
}

// === impl RequestLimits ===

impl Default for RequestLimits {
    fn default() -> Self {
        Self { reads_max: READS_MAX, writes_max: WRITES_MAX, timeout: REQUEST_TIMEOUT }
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
            timeout: limits.timeout,
        }
    }

    /// A place for a request, unless there is none.
    pub(super) fn admit(&self, class: Class) -> Option<OwnedSemaphorePermit> {
        let places = match class {
            Class::Reads | Class::LongRunning => &self.reads,
            Class::Writes => &self.writes,
        };
        Arc::clone(places).try_acquire_owned().ok()
    }

    /// A place for heavy work, as soon as there is one.
    pub(super) async fn heavy(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.heavy).acquire_owned().await.ok()
    }
}

// === impl Class ===

impl Class {
    pub(super) fn of(parts: &Parts, query: &Query) -> Self {
        if !matches!(parts.method, Method::GET | Method::HEAD) {
            return Self::Writes;
        }
        match path::parse(parts.uri.path()) {
            Target::Resource(path) if path.is_watch || path.name.is_empty() && query.flag("watch") => Self::LongRunning,
            Target::Resource(path) if path.subresource == "log" && query.flag("follow") => Self::LongRunning,
            _ => Self::Reads,
        }
    }
}

/// Whether a request takes so long that others should not wait for its thread.
pub(super) fn is_heavy(registry: &Registry, parts: &Parts, body: &[u8]) -> bool {
    if body.len() > HEAVY_BYTES {
        return true;
    }
    match path::parse(parts.uri.path()) {
        // Lists, and what is deleted as a collection.
        Target::Resource(path) if path.name.is_empty() => parts.method != Method::POST,
        Target::Resource(path) if parts.method != Method::GET => {
            let row = registry.row(&path.group, &path.version, &path.plural);
            let key = steersman_base::ObjectKey::new(&path.namespace, &path.name);
            row.and_then(|row| registry.store.get(&row.collection, &key))
                .is_some_and(|stored| stored.len() > HEAVY_BYTES)
        }
        Target::Resource(_) | Target::Group(_) => false,
        Target::CoreVersions | Target::Groups | Target::Version(..) | Target::Other(_) => true,
    }
}

//! The contract between a controller and the worker loop.
//!
//! | a reconcile returns | the key |
//! |---|---|
//! | [`Action::Done`] | is forgotten until something changes |
//! | [`Action::After`] | is requeued then, or earlier if something changes |
//! | [`Action::Again`] | is requeued soon, rate-limited, without an error |
//! | an error | is retried with back-off, by the controller's policy |
//! | a [terminal](Error::terminal) error | is not retried before something changes |
//! | a panic | counts as an error; no other key is affected |

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use std::sync::Arc;

use http::StatusCode;
use steersman_base::{Clock, ObjectKey};
use steersman_informer::{HasResource, Lister, WireError};
use tokio_util::sync::CancellationToken;

use crate::connection::exchange::THROTTLED_MIN;
use crate::events::Recorder;
use crate::live::{Live, LiveReadError};
use crate::{ClientError, WriteError, Writer};

/// Brings the current state closer to the desired state of one object.
///
/// It reads the current state, and is called with keys, never with events: a reconciler that misses all events but the
/// last does the same. It is never called for one key twice at a time.
pub trait Reconciler: Send + Sync + 'static {
    /// Reconciles the object with this key.
    fn reconcile(&self, cx: &Context, key: &ObjectKey) -> impl Future<Output = Result<Action, Error>> + Send;
}

/// The context of a reconcile.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Context {
    /// The writer: the only way to write.
    pub writer: Writer,
    /// The clock: the only way to read the time.
    pub clock: Clock,
    /// The recorder of Kubernetes events. Events about writes are declared with their reasons.
    pub events: Recorder,
    /// Reads from the server, with the controller's own account.
    pub live: Live,
    /// Cancelled when the controller is to stop. A reconcile that waits for something outside should return then; one
    /// that does not is dropped after [`shutdown_within`](crate::ManagerOptions::shutdown_within).
    pub stop: CancellationToken,
    pub(crate) freshness: Freshness,
}

/// Whether the caches can be trusted in this pass.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// The caches show everything that this controller wrote for this object before.
    CaughtUp,
    /// The caches have not caught up in time: decisions are based on reads from the server, rate-limited.
    /// [`Context::main`], [`Context::get`], [`Children`](crate::children::Children) and [`Found`](crate::found::Found)
    /// do so by themselves. Only controllers that declare that they can
    /// ([`Builder::reads_live`](crate::controller::Builder::reads_live)) are called with this; for the others, the key
    /// waits.
    ReadLive,
}

/// The result of a successful reconcile.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing is left to do until something changes.
    Done,
    /// Requeue soon, rate-limited.
    Again,
    /// Requeue after this time.
    After(Duration),
}

/// The error of a reconcile. Any `std::error::Error` converts into it with `?` and is retried; others with [`Error::new`].
pub struct Error {
    source: Box<dyn std::error::Error + Send + Sync>,
    terminal: bool,
}

/// A [`Reconciler`] behind a pointer: its future is boxed once per call, here and nowhere else.
pub(crate) trait DynReconciler: Send + Sync {
    fn reconcile<'a>(
        &'a self,
        cx: &'a Context,
        key: &'a ObjectKey,
    ) -> Pin<Box<dyn Future<Output = Result<Action, Error>> + Send + 'a>>;
}

impl<R: Reconciler> DynReconciler for R {
    fn reconcile<'a>(
        &'a self,
        cx: &'a Context,
        key: &'a ObjectKey,
    ) -> Pin<Box<dyn Future<Output = Result<Action, Error>> + Send + 'a>> {
        // The function may panic before it returns a future, so it is called inside of one.
        Box::pin(async move { Reconciler::reconcile(self, cx, key).await })
    }
}

// === impl Context ===

impl Context {
    /// Creates a context whose caches have caught up, to call a reconciler without a controller.
    #[must_use]
    pub fn new(writer: Writer, clock: Clock, events: Recorder) -> Self {
        let live = Live::new(writer.client().clone());
        Self { writer, clock, freshness: Freshness::CaughtUp, events, live, stop: CancellationToken::new() }
    }

    /// Returns the main object with a key: from the cache, or from the server if the cache lags behind this
    /// controller's writes. `None` if it was deleted or replaced by another object of its name, which has an event of
    /// its own.
    ///
    /// # Errors
    /// See [`LiveReadError`].
    pub async fn main<V: HasResource>(
        &self,
        cached: &Lister<V>,
        key: &ObjectKey,
    ) -> Result<Option<Arc<V>>, LiveReadError> {
        let Some(seen) = cached.get(key) else { return Ok(None) };
        if self.freshness == Freshness::CaughtUp {
            return Ok(Some(seen));
        }
        let now = self.live.get::<V>(key).await?;
        Ok(now.filter(|now| now.meta().uid == seen.meta().uid).map(Arc::new))
    }

    /// Returns an object: from the cache, or from the server if the cache lags behind this controller's writes.
    ///
    /// # Errors
    /// See [`LiveReadError`].
    pub async fn get<V: HasResource>(
        &self,
        cached: &Lister<V>,
        key: &ObjectKey,
    ) -> Result<Option<Arc<V>>, LiveReadError> {
        match self.freshness {
            Freshness::CaughtUp => Ok(cached.get(key)),
            Freshness::ReadLive => Ok(self.live.get::<V>(key).await?.map(Arc::new)),
        }
    }

    /// Returns how far the caches can be trusted in this pass.
    #[doc(hidden)]
    #[must_use]
    pub fn freshness(&self) -> Freshness {
        self.freshness
    }

    /// Returns the context of one pass.
    pub(crate) fn of_pass(&self, freshness: Freshness, writer: Writer) -> Self {
        let live = self.live.of_pass(freshness);
        let writer = writer.reading_live(freshness == Freshness::ReadLive);
        let stop = self.stop.clone();
        Self { writer, clock: self.clock.clone(), events: self.events.clone(), live, stop, freshness }
    }
}

// === impl Error ===

impl Error {
    /// Creates an error that is retried, from one that `?` cannot convert: a boxed error, or one of `anyhow`
    /// (`.map_err(Error::new)?`). Its causes are kept.
    pub fn new(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { source: error.into(), terminal: false }
    }

    /// Creates an error that a retry cannot solve: the object itself must change first.
    pub fn terminal(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { source: error.into(), terminal: true }
    }

    /// Creates an error with this text, which is retried.
    pub fn message(text: impl fmt::Display) -> Self {
        Self { source: text.to_string().into(), terminal: false }
    }

    /// Whether a retry cannot solve it: it was declared [terminal](Self::terminal), or a write is
    /// [invalid](WriteError::Invalid) in itself.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        let invalid = |error: &(dyn std::error::Error + 'static)| match error.downcast_ref()? {
            WriteError::Invalid(_) => Some(()),
            _ => None,
        };
        self.terminal || self.find(invalid).is_some()
    }

    /// Whether the server could not be reached, so that the key is requeued when it is back.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        let answer = self.find(|error| {
            let unreachable = if let Some(error) = error.downcast_ref::<WriteError>() {
                matches!(error, WriteError::Unreachable(_) | WriteError::Unknown(_))
            } else if let Some(error) = error.downcast_ref::<ClientError>() {
                matches!(error, ClientError::Unreachable { .. } | ClientError::NoAnswer { .. })
            } else {
                matches!(error.downcast_ref::<kube::Error>()?, kube::Error::Service(_) | kube::Error::HyperError(_))
            };
            Some(unreachable)
        });
        answer.unwrap_or(false)
    }

    /// Returns how long the server asks to wait, if it is overloaded.
    #[must_use]
    pub fn throttled(&self) -> Option<Duration> {
        self.find(|error| {
            if let Some(WriteError::Throttled(wait)) = error.downcast_ref() {
                return Some(*wait);
            }
            if let Some(LiveReadError::Throttled { wait, .. }) = error.downcast_ref() {
                return Some(*wait);
            }
            if let Some(WireError::Status(status)) = error.downcast_ref() {
                let is_throttled = status.code == StatusCode::TOO_MANY_REQUESTS.as_u16();
                return is_throttled.then(|| status.retry_after.unwrap_or(THROTTLED_MIN));
            }
            match error.downcast_ref()? {
                error @ ClientError::TooManyRequests(_) => error.retry_after(),
                _ => None,
            }
        })
    }

    /// Returns the first result of `look` among the causes.
    fn find<'a, T>(&'a self, look: impl Fn(&'a (dyn std::error::Error + 'static)) -> Option<T>) -> Option<T> {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&*self.source);
        while let Some(error) = cause {
            if let Some(found) = look(error) {
                return Some(found);
            }
            cause = error.source();
        }
        None
    }

    /// Returns the underlying error.
    #[must_use]
    pub fn source(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
        &*self.source
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        Self { source: Box::new(error), terminal: false }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)?;
        let mut cause = self.source.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use steersman_informer::ApiStatus;

    use super::*;

    #[test]
    fn a_server_that_asks_to_wait_is_no_failure_whoever_asked() {
        let wait = Duration::from_secs(7);
        let what = || "secrets ns/a".to_owned();
        let live = |code| LiveReadError::Refused { what: what(), code, message: String::new() };
        let list = |code, retry_after| {
            let mut status = ApiStatus::default();
            status.code = code;
            status.retry_after = retry_after;
            WireError::Status(Box::new(status))
        };
        let check = |error: Error, want: Option<Duration>| assert_eq!(error.throttled(), want, "{error}");
        check(WriteError::Throttled(wait).into(), Some(wait));
        check(LiveReadError::Throttled { what: what(), wait }.into(), Some(wait));
        check(list(429, Some(wait)).into(), Some(wait));
        check(list(429, None).into(), Some(THROTTLED_MIN));
        check(live(StatusCode::SERVICE_UNAVAILABLE).into(), None);
        check(list(503, Some(wait)).into(), None);
        check(WriteError::Conflict.into(), None);
        let boxed: Box<dyn std::error::Error + Send + Sync> = WriteError::Throttled(wait).into();
        check(Error::new(boxed), Some(wait));
    }
}

//! The contract between a controller and the worker loop.
//!
//! | a reconcile answers | the key |
//! |---|---|
//! | [`Action::Done`] | is forgotten until something changes |
//! | [`Action::After`] | is looked at again then, or earlier if something changes |
//! | [`Action::Again`] | is looked at again soon, rate-limited, and that is no error |
//! | an error | is retried with back-off, as the controller's policy says |
//! | a [terminal](Error::terminal) error | is not retried before something changes |
//! | a panic | counts as an error; nobody else notices |

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use std::sync::Arc;

use steersman_base::{Clock, ObjectKey};
use steersman_informer::Lister;
use steersman_model::Kind;

use crate::events::Recorder;
use crate::live::{Live, LiveReadError};
use crate::{ClientError, WriteError, Writer};

/// Brings the world closer to what one object asks for.
///
/// It reads the world as it is now, and is called with keys, never with events: whoever misses all of them but the last
/// does the same. It is never called for one key twice at a time.
pub trait Reconciler: Send + Sync + 'static {
    /// Looks at the object with this key and does what is to be done.
    fn reconcile(&self, cx: &Context, key: &ObjectKey) -> impl Future<Output = Result<Action, Error>> + Send;
}

/// What a reconcile is given beside the key.
#[derive(Clone, Debug)]
pub struct Context {
    /// The only way to write.
    pub writer: Writer,
    /// The only way to know the time.
    pub clock: Clock,
    /// Tells people what happened, as Kubernetes events. What a write tells is declared with its reason.
    pub events: Recorder,
    /// Reads from the server, with the controller's own account.
    pub live: Live,
    pub(crate) freshness: Freshness,
}

/// How far the caches can be trusted in this reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// They show all that this controller wrote for this object before.
    CaughtUp,
    /// They did not catch up in time, and have not yet: what is to be decided is read from the server, in turn with others.
    /// [`Context::main`], [`Context::get`], [`Children`](crate::children::Children) and [`Found`](crate::found::Found) do so
    /// by themselves. Only controllers that say that they can
    /// ([`Builder::reads_live`](crate::controller::Builder::reads_live)) are called so; for the others, the key waits.
    ReadLive,
}

/// What a successful reconcile asks for.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing is left to do until something changes.
    Done,
    /// Look again soon, rate-limited.
    Again,
    /// Look again after this time.
    After(Duration),
}

/// Why a reconcile failed. Any error converts into it with `?` and is retried.
pub struct Error {
    source: Box<dyn std::error::Error + Send + Sync>,
    terminal: bool,
}

/// A [`Reconciler`] behind a pointer: boxed once per call, here and nowhere else.
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
        Box::pin(Reconciler::reconcile(self, cx, key))
    }
}

// === impl Context ===

impl Context {
    /// A context whose caches have caught up, for who calls a reconciler without a controller.
    #[must_use]
    pub fn new(writer: Writer, clock: Clock, events: Recorder) -> Self {
        let live = Live::new(writer.client().clone());
        Self { writer, clock, freshness: Freshness::CaughtUp, events, live }
    }

    /// The main object with a key, as it can be trusted: from the cache, or from the server if the cache lags behind what
    /// this controller wrote. `None` if it is gone, or another one has its name by now: that comes with an event of its own.
    ///
    /// # Errors
    /// See [`LiveReadError`].
    pub async fn main<V: Kind>(&self, cached: &Lister<V>, key: &ObjectKey) -> Result<Option<Arc<V>>, LiveReadError> {
        let Some(seen) = cached.get(key) else { return Ok(None) };
        if self.freshness == Freshness::CaughtUp {
            return Ok(Some(seen));
        }
        let now = self.live.get::<V>(key).await?;
        Ok(now.filter(|now| now.meta().uid == seen.meta().uid).map(Arc::new))
    }

    /// An object as it can be trusted: from the cache, or from the server if the cache lags behind what this controller
    /// wrote.
    ///
    /// # Errors
    /// See [`LiveReadError`].
    pub async fn get<V: Kind>(&self, cached: &Lister<V>, key: &ObjectKey) -> Result<Option<Arc<V>>, LiveReadError> {
        match self.freshness {
            Freshness::CaughtUp => Ok(cached.get(key)),
            Freshness::ReadLive => Ok(self.live.get::<V>(key).await?.map(Arc::new)),
        }
    }

    /// How far the caches can be trusted in this reconcile.
    #[must_use]
    pub fn freshness(&self) -> Freshness {
        self.freshness
    }

    /// The same for one pass.
    pub(crate) fn of_pass(&self, freshness: Freshness, writer: Writer) -> Self {
        let live = self.live.of_pass(freshness);
        Self { writer, clock: self.clock.clone(), events: self.events.clone(), live, freshness }
    }
}

// === impl Error ===

impl Error {
    /// An error that trying again cannot mend: the object itself must change first.
    pub fn terminal(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { source: error.into(), terminal: true }
    }

    /// An error with this text, to be retried.
    pub fn message(text: impl fmt::Display) -> Self {
        Self { source: text.to_string().into(), terminal: false }
    }

    /// Whether trying again cannot mend it: it was said to be [terminal](Self::terminal), or a write is
    /// [invalid](WriteError::Invalid) in itself.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        let invalid = |error: &(dyn std::error::Error + 'static)| match error.downcast_ref()? {
            WriteError::Invalid(_) => Some(()),
            _ => None,
        };
        self.terminal || self.find(invalid).is_some()
    }

    /// Whether the server could not be reached, so that its return is worth another look.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        let told = self.find(|error| {
            let unreachable = if let Some(error) = error.downcast_ref::<WriteError>() {
                matches!(error, WriteError::Unreachable(_) | WriteError::Unknown(_))
            } else if let Some(error) = error.downcast_ref::<ClientError>() {
                matches!(error, ClientError::Unreachable { .. } | ClientError::NoAnswer { .. })
            } else {
                matches!(error.downcast_ref::<kube::Error>()?, kube::Error::Service(_) | kube::Error::HyperError(_))
            };
            Some(unreachable)
        });
        told.unwrap_or(false)
    }

    /// How long the server asks to wait, if it has too much to do.
    #[must_use]
    pub fn throttled(&self) -> Option<Duration> {
        self.find(|error| match (error.downcast_ref(), error.downcast_ref()) {
            (Some(WriteError::Throttled(wait)), _) => Some(*wait),
            (_, Some(error @ ClientError::TooManyRequests(_))) => error.retry_after(),
            _ => None,
        })
    }

    /// The first of the causes of which `look` makes something.
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

    /// What went wrong underneath.
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

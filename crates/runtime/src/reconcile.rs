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
use steersman_informer::Scope;
use steersman_informer::WireError;
use steersman_informer::consistency::LiveReads;
use steersman_model::Kind;

use crate::events::Recorder;
use crate::live::{self, LiveReadError};
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
    /// How far the caches can be trusted.
    pub freshness: Freshness,
    /// Tells people what happened, as Kubernetes events. What a write tells is declared with its reason.
    pub events: Recorder,
    pub(crate) live_reads: LiveReads,
}

/// How far the caches can be trusted in this reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// They show all that this controller wrote for this object before.
    CaughtUp,
    /// They did not catch up in time, and have not yet: what is to be decided is read from the server, in turn with others
    /// ([`Context::list_live`]). Only controllers that say that they can ([`Builder::reads_live`](crate::controller::Builder::reads_live))
    /// are called so; for the others, the key waits.
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
        Self { writer, clock, freshness: Freshness::CaughtUp, events, live_reads: LiveReads::default() }
    }

    /// The objects of a kind as the server has them now, in one consistent list: for a pass that is to
    /// [read live](Freshness::ReadLive). All such reads of a manager take turns, so that a watch that stands still does not
    /// become a flood of lists.
    ///
    /// # Errors
    /// As [`live::list`].
    pub async fn list_live<V: Kind>(&self, client: &kube::Client, scope: Scope) -> Result<Vec<Arc<V>>, WireError> {
        let _turn = self.live_reads.turn().await;
        live::list(client, scope).await
    }

    /// As [`list_live`](Self::list_live), one object; `None` if there is none.
    ///
    /// # Errors
    /// As [`live::get`].
    pub async fn get_live<V: Kind>(&self, client: &kube::Client, key: &ObjectKey) -> Result<Option<V>, LiveReadError> {
        let _turn = self.live_reads.turn().await;
        live::get(client, key).await
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

    /// Whether trying again cannot mend it.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.terminal
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

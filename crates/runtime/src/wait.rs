//! Waiting for a condition on an object: woken by the cache, never polling.
//!
//! ```no_run
//! # use std::time::Duration;
//! # use k8s_openapi::api::apps::v1::Deployment;
//! # use steersman_base::ObjectKey;
//! # use steersman_runtime::client::CachedClient;
//! # use steersman_runtime::wait::{self, WaitError, conditions};
//! # async fn example(client: &CachedClient) -> Result<(), WaitError> {
//! let web = ObjectKey::new("default", "web");
//! wait::wait_until(client, &web, conditions::is_deployment_available, Duration::from_secs(60)).await?;
//! let is_large = |object: Option<&Deployment>| object.and_then(|it| it.spec.replicas) > Some(9);
//! wait::wait_until(client, &web, is_large, Duration::from_secs(60)).await?;
//! # Ok(())
//! # }
//! ```

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use steersman_base::ObjectKey;
use steersman_informer::__internal::reflector::{Reflector, ReflectorOptions};
use steersman_informer::{RunningInformer, Selection, SharedInformer, Target, Typed};
use tokio_util::sync::CancellationToken;

use crate::client::{AnyObject, CachedClient, ClientError, Object, Objects};

pub mod conditions;

/// The result of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// The condition holds.
    Met,
    /// The condition does not hold; what was observed instead.
    NotYet(String),
}

/// An error of a wait.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The time is over.
    #[error("{what} is not as wanted after {waited:?}; seen last: {seen}")]
    TimedOut {
        /// The object.
        what: String,
        /// The time that was waited.
        waited: Duration,
        /// The last observation.
        seen: String,
    },
    /// The object cannot be read.
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// Waits until a condition on an object holds, for at most this time; returns the object, or `None` if the condition
/// holds for a missing one. `condition` gets the object as the cache shows it, now and after every change; it returns a
/// [`Verdict`] or a `bool`.
///
/// A [live](CachedClient::live) client, and kinds that are never cached, wait on a watch of that one object.
///
/// # Errors
/// The time is over, or the object cannot be read.
pub async fn wait_until<K: Object, R: Into<Verdict>>(
    client: &CachedClient,
    key: &ObjectKey,
    condition: impl Fn(Option<&K>) -> R,
    within: Duration,
) -> Result<Option<Arc<Typed<K>>>, WaitError> {
    wait_for(&client.objects(), key, condition, within).await
}

/// As [`wait_until`], for a resource chosen at run time.
///
/// # Errors
/// As [`wait_until`].
pub async fn wait_for<T: AnyObject, R: Into<Verdict>>(
    objects: &Objects<T>,
    key: &ObjectKey,
    condition: impl Fn(Option<&T>) -> R,
    within: Duration,
) -> Result<Option<Arc<Typed<T>>>, WaitError> {
    // Nothing, as long as the cache is not filled.
    let seen = Mutex::new(None);
    let wait = async {
        let reader = objects.reader();
        let watched = if reader.is_live() {
            Watched::alone(objects, key, &seen).await
        } else {
            Watched::shared(objects, key).await?
        };
        let look = |object: Option<Arc<Typed<T>>>| match condition(object.as_ref().map(|held| held.object())).into() {
            Verdict::Met => Some(object),
            Verdict::NotYet(what) => {
                *seen.lock() = Some(what);
                None
            }
        };
        Ok(watched.informer.store().until(|store| look(store.get(key))).await)
    };
    match tokio::time::timeout(within, wait).await {
        Ok(outcome) => outcome,
        Err(_) => {
            let what = format!("{} {key}", objects.resource());
            let seen = seen.into_inner().unwrap_or_else(|| unfilled(objects));
            Err(WaitError::TimedOut { what, waited: within, seen })
        }
    }
}

/// Describes the cache that was not filled in time, and why.
fn unfilled<T: AnyObject>(objects: &Objects<T>) -> String {
    let running = objects.client().informers().running();
    let is_meant = |informer: &&RunningInformer| {
        informer.informer.target.resource == *objects.resource() && !informer.informer.synced
    };
    let why = running.iter().find(is_meant).map(|informer| format!(": {informer}")).unwrap_or_default();
    format!("nothing: the cache is not filled{why}")
}

/// An informer that ends with the wait, if it was started for it.
struct Watched<T> {
    informer: SharedInformer<Typed<T>>,
    _end: Option<tokio_util::sync::DropGuard>,
}

// === impl Watched ===

impl<T: AnyObject> Watched<T> {
    async fn shared(objects: &Objects<T>, key: &ObjectKey) -> Result<Self, ClientError> {
        Ok(Self { informer: objects.reader().informer_of(&key.namespace).await?, _end: None })
    }

    /// Starts a watch of one object. `seen` gets the problem, if it cannot be read.
    async fn alone(objects: &Objects<T>, key: &ObjectKey, seen: &Mutex<Option<String>>) -> Self {
        let selection = match &*key.namespace {
            "" => Selection::everything(),
            namespace => Selection::namespace(namespace),
        };
        let selection = selection.with_fields(&format!("metadata.name={}", key.name));
        let target = Target { resource: objects.resource().clone(), selection };
        let stop = CancellationToken::new();
        let informer = SharedInformer::new(target.clone(), stop.clone());
        let reflector = Reflector::new(objects.client().kube(), target, ReflectorOptions::default());
        let mut state = reflector.state();
        tokio::spawn(reflector.run(informer.sink(), stop.clone()));
        let pump = informer.clone();
        let ended = stop.clone();
        tokio::spawn(async move { pump.run(&ended).await });
        let end = Some(stop.drop_guard());
        // Before the first list it is unknown whether the object exists.
        let problems = async {
            while state.changed().await.is_ok() {
                if let Some(problem) = &state.borrow().problem {
                    *seen.lock() = Some(format!("nothing: {}", problem.message));
                }
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = informer.synced() => {}
            () = problems => {}
        }
        Self { informer, _end: end }
    }
}

// === impl Verdict ===

impl Verdict {
    /// Returns [`Verdict::Met`], or what was observed instead.
    pub fn when(met: bool, seen: impl FnOnce() -> String) -> Self {
        if met { Self::Met } else { Self::NotYet(seen()) }
    }
}

impl From<bool> for Verdict {
    fn from(met: bool) -> Self {
        Self::when(met, || "an object that the condition does not hold for, or none".to_owned())
    }
}

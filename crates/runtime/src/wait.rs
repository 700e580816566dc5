//! Waiting for an object to be as wanted: woken by the cache, never polling.
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
use steersman_informer::reflector::{Reflector, ReflectorOptions};
use steersman_informer::{Scope, SharedInformer, Target, Typed};
use tokio_util::sync::CancellationToken;

use crate::client::{AnyObject, CachedClient, ClientError, Object, Objects};

pub mod conditions;

/// What a condition says of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// It is as wanted.
    Met,
    /// It is not; what is seen instead.
    NotYet(String),
}

/// Why a wait ended without what was waited for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The time is over.
    #[error("{what} is not as wanted after {waited:?}; seen last: {seen}")]
    TimedOut {
        /// Which object.
        what: String,
        /// How long it was waited for.
        waited: Duration,
        /// What the condition said last.
        seen: String,
    },
    /// It cannot be read.
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// Waits until an object is as wanted, for so long at most; answers the object, `None` if it is wanted gone. `condition` is
/// asked with what the cache shows, now and after every change; it answers a [`Verdict`], or whether it is met.
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

/// As [`wait_until`], for a resource that may be told at run time.
///
/// # Errors
/// As [`wait_until`].
pub async fn wait_for<T: AnyObject, R: Into<Verdict>>(
    objects: &Objects<T>,
    key: &ObjectKey,
    condition: impl Fn(Option<&T>) -> R,
    within: Duration,
) -> Result<Option<Arc<Typed<T>>>, WaitError> {
    let seen = Mutex::new("nothing: the cache was not filled".to_owned());
    let wait = async {
        let reader = objects.reader();
        let watched =
            if reader.is_live() { Watched::alone(objects, key).await } else { Watched::shared(objects).await? };
        let look = |object: Option<Arc<Typed<T>>>| match condition(object.as_ref().map(|held| held.object())).into() {
            Verdict::Met => Some(object),
            Verdict::NotYet(what) => {
                *seen.lock() = what;
                None
            }
        };
        Ok(watched.informer.store().until(|store| look(store.get(key))).await)
    };
    match tokio::time::timeout(within, wait).await {
        Ok(outcome) => outcome,
        Err(_) => {
            let (what, seen) = (format!("{} {key}", objects.resource()), seen.into_inner());
            Err(WaitError::TimedOut { what, waited: within, seen })
        }
    }
}

/// An informer that ends with the wait, if it was made for it.
struct Watched<T> {
    informer: SharedInformer<Typed<T>>,
    _end: Option<tokio_util::sync::DropGuard>,
}

// === impl Watched ===

impl<T: AnyObject> Watched<T> {
    async fn shared(objects: &Objects<T>) -> Result<Self, ClientError> {
        Ok(Self { informer: objects.reader().informer().await?, _end: None })
    }

    /// A watch of one object.
    async fn alone(objects: &Objects<T>, key: &ObjectKey) -> Self {
        let scope = match &*key.namespace {
            "" => Scope::everything(),
            namespace => Scope::namespace(namespace),
        };
        let scope = scope.with_fields(&format!("metadata.name={}", key.name));
        let target = Target { resource: objects.resource().clone(), scope };
        let stop = CancellationToken::new();
        let informer = SharedInformer::new(target.clone(), stop.clone());
        let reflector = Reflector::new(objects.client().kube(), target, ReflectorOptions::default());
        tokio::spawn(reflector.run(informer.sink(), stop.clone()));
        let (pump, ended) = (informer.clone(), stop.clone());
        tokio::spawn(async move { pump.run(&ended).await });
        let end = Some(stop.drop_guard());
        // Before the first list nobody knows whether the object is there.
        informer.synced().await;
        Self { informer, _end: end }
    }
}

// === impl Verdict ===

impl Verdict {
    /// Met, or what is seen instead.
    pub fn when(met: bool, seen: impl FnOnce() -> String) -> Self {
        if met { Self::Met } else { Self::NotYet(seen()) }
    }
}

impl From<bool> for Verdict {
    fn from(met: bool) -> Self {
        Self::when(met, || "an object that the condition does not hold for, or none".to_owned())
    }
}

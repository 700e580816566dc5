//! Waiting for conditions.

use std::fmt;
use std::future::Future;

use k8s_openapi::NamespaceResourceScope;
use kube::Resource;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::{LOOK_EVERY, PATIENCE, TestCluster};
use crate::Failure;

// === impl TestCluster ===

impl TestCluster {
    /// Calls `look` until it returns a value; its inner error is what it sees meanwhile.
    ///
    /// # Errors
    /// It never does, and the failure shows what was seen last; or `look` fails, which ends the wait at once: an object that may
    /// not exist yet is read with `get_opt`.
    pub async fn until<T, F>(&self, what: &str, mut look: impl FnMut() -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<Result<T, String>, Failure>>,
    {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match look().await {
                Ok(Ok(value)) => return Ok(value),
                Err(failed) => {
                    return Err(self.failure(&format!("cannot decide: {what}; looking failed: {failed:?}")).await);
                }
                Ok(Err(seen)) if Instant::now() > deadline => {
                    return Err(self.failure(&format!("never happened: {what}; seen last: {seen}")).await);
                }
                Ok(Err(_)) => tokio::time::sleep(LOOK_EVERY).await,
            }
        }
    }

    /// Calls `look` until it returns a value that equals `want`.
    ///
    /// # Errors
    /// It never does; the failure shows what was seen last.
    pub async fn until_eq<T, W, F>(&self, what: &str, mut look: impl FnMut() -> F, want: W) -> Result<(), Failure>
    where
        T: PartialEq<W> + fmt::Debug,
        F: Future<Output = Result<T, Failure>>,
    {
        let look = || {
            let look = look();
            async { look.await.map(|seen| if seen == want { Ok(()) } else { Err(format!("{seen:?}")) }) }
        };
        self.until(what, look).await
    }

    /// Calls `look` until it returns a value that `is_right`, and returns it.
    ///
    /// # Errors
    /// It never does; the failure shows what was seen last.
    pub async fn until_right<T, F>(
        &self,
        what: &str,
        mut look: impl FnMut() -> F,
        is_right: impl Fn(&T) -> bool,
    ) -> Result<T, Failure>
    where
        T: fmt::Debug,
        F: Future<Output = Result<T, Failure>>,
    {
        let look = || {
            let look = look();
            async { look.await.map(|seen| if is_right(&seen) { Ok(seen) } else { Err(format!("{seen:?}")) }) }
        };
        self.until(what, look).await
    }

    /// Waits until no object of this name is left in the test's namespace.
    ///
    /// # Errors
    /// The object stays.
    pub async fn until_gone<K>(&self, name: &str) -> Result<(), Failure>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + DeserializeOwned + Clone + fmt::Debug,
    {
        let what = format!("{} {name} is gone", K::kind(&()));
        self.until_right(&what, async || Ok(self.api::<K>().get_opt(name).await?), Option::is_none).await.map(drop)
    }

    /// Waits until there is an object of this name in the test's namespace.
    ///
    /// # Errors
    /// The object is never created.
    pub async fn until_exists<K>(&self, name: &str) -> Result<K, Failure>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + DeserializeOwned + Clone + fmt::Debug,
    {
        let what = format!("{} {name} exists", K::kind(&()));
        self.until(&what, async || Ok(self.api::<K>().get_opt(name).await?.ok_or_else(|| "it does not".to_owned())))
            .await
    }
}

//! The barrier of a new leader: caches must show at least the server's state at the time of the election.
//!
//! 1. A consistent list of one item returns the current version *R* of the resource. A cache that has reached *R* is up
//!    to date; on a busy resource that takes as long as the next event.
//! 2. The version of a quiet resource's cache says nothing: *R* counts changes of other resources too, and bookmarks
//!    come once a minute. After [`QUIET_AFTER`] the metadata of the resource is listed, and the barrier waits until the
//!    cache shows each of its objects at least as new, and no others. The list is not kept, and the cache is not filled
//!    anew.
//! 3. One read serves all controllers that watch the same resource.
//! 4. A cache that was filled by a list begun after the election needs none of this.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use steersman_base::{Meta, ObjectKey, ResourceVersion};
use steersman_informer::__internal::wire::latest_version;
use steersman_informer::Target;
use steersman_informer::WireError;
use tokio::time::Instant;

use crate::live;
use crate::source::Cache;

/// One barrier per watched resource, however many controllers watch it. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Barriers(Arc<Inner>);

struct Inner {
    client: kube::Client,
    versions: Memo<ResourceVersion>,
    lists: Memo<Arc<BTreeMap<ObjectKey, ResourceVersion>>>,
}

/// Finished and running reads, by target.
type Memo<T> = Mutex<BTreeMap<String, Shared<BoxFuture<'static, T>>>>;

/// The maximum time of one read.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time between two tries to read.
const AGAIN_AFTER: Duration = Duration::from_millis(500);
/// A busy resource has had an event by then; a graceful hand-over should take less than a second.
const QUIET_AFTER: Duration = Duration::from_millis(250);
/// The interval at which a lagging cache is checked.
const LOOK_EVERY: Duration = Duration::from_millis(20);

// === impl Barriers ===

impl Barriers {
    pub(super) fn new(client: kube::Client) -> Self {
        Self(Arc::new(Inner { client, versions: Memo::default(), lists: Memo::default() }))
    }

    /// Waits until a cache shows at least the server's state at the time `won`, when the election was won.
    pub(crate) async fn caught_up(&self, target: &Target, cache: &dyn Cache, won: Option<Instant>) {
        if won.zip(cache.listed_since()).is_some_and(|(won, listed)| listed >= won) {
            return;
        }
        let version = self.version(target).await;
        if tokio::time::timeout(QUIET_AFTER, cache.reaches(version.clone())).await.is_ok() {
            return;
        }
        let listed = self.listed(target).await;
        let mut reaches = std::pin::pin!(cache.reaches(version.clone()));
        while cache.lags_behind(&listed, &version) {
            tracing::debug!(%target, "the cache lags behind");
            tokio::select! {
                biased;
                () = &mut reaches => return,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }

    fn version(&self, target: &Target) -> Shared<BoxFuture<'static, ResourceVersion>> {
        let client = self.0.client.clone();
        let asked = target.clone();
        Self::once(&self.0.versions, target, move || {
            let client = client.clone();
            let asked = asked.clone();
            async move { latest_version(&client, &asked, PATIENCE).await }
        })
    }

    fn listed(&self, target: &Target) -> Shared<BoxFuture<'static, Arc<BTreeMap<ObjectKey, ResourceVersion>>>> {
        let client = self.0.client.clone();
        let asked = target.clone();
        Self::once(&self.0.lists, target, move || {
            let client = client.clone();
            let asked = asked.clone();
            async move {
                let objects = live::list_of::<Meta>(&client, &asked).await?;
                Ok(Arc::new(objects.iter().map(|meta| (meta.key(), meta.resource_version.clone())).collect()))
            }
        })
    }

    /// Reads until it succeeds; others that request the same meanwhile or later get the same result.
    fn once<T, F>(
        memo: &Memo<T>,
        target: &Target,
        read: impl Fn() -> F + Send + 'static,
    ) -> Shared<BoxFuture<'static, T>>
    where
        T: Clone + Send + Sync + 'static,
        F: Future<Output = Result<T, WireError>> + Send,
    {
        let name = target.to_string();
        let begin = || {
            let target = name.clone();
            let until_known = async move {
                loop {
                    match read().await {
                        Ok(known) => return known,
                        Err(error) => tracing::warn!(target, %error, "cannot make sure that the cache is up to date"),
                    }
                    tokio::time::sleep(AGAIN_AFTER).await;
                }
            };
            until_known.boxed().shared()
        };
        memo.lock().entry(name.clone()).or_insert_with(begin).clone()
    }
}

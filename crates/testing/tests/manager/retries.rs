//! How long a key that fails waits, and when it is given up.

use std::time::Duration;

use k8s_openapi::api::core::v1::ResourceQuota;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use steersman_base::ObjectKey;
use steersman_runtime::{Action, Context, Error, Manager, Reconciler};
use steersman_testing::{Failure, TestCluster};
use steersman_workqueue::RateLimiter;
use tokio::time::Instant;

use crate::support::*;

/// Fails for ever, and notes how many seconds after its first time.
struct Hopeless(Diary, parking_lot::Mutex<Option<Instant>>);

impl Hopeless {
    fn new(diary: &Diary) -> Self {
        Self(diary.clone(), parking_lot::Mutex::default())
    }
}

impl Reconciler for Hopeless {
    async fn reconcile(&self, _: &Context, _: &ObjectKey) -> Result<Action, Error> {
        let began = *self.1.lock().get_or_insert_with(Instant::now);
        self.0.note(format!("{}", began.elapsed().as_secs()));
        Err(Error::message("on purpose"))
    }
}

/// A minute for each retry so far, and notes when it lets go of a key.
struct Minutes(Diary);

impl RateLimiter<ObjectKey> for Minutes {
    fn delay(&mut self, _: &ObjectKey, requeues: u32, _: Instant) -> Duration {
        Duration::from_secs(60) * (requeues + 1)
    }

    fn forget(&mut self, key: &ObjectKey) {
        self.0.note(format!("{} forgotten", key.name));
    }
}

#[tokio::test(start_paused = true)]
async fn a_limiter_of_ones_own_says_how_long_failed_keys_wait() -> Result<(), Failure> {
    let diary = Diary::default();
    let noted = diary.clone();
    let limited = move |manager: &Manager| {
        let builder = manager.controller::<ResourceQuota>("limited").limiter(Minutes(noted.clone())).give_up_after(3);
        builder.reconcile_with(Hopeless::new(&noted));
    };
    let cluster = TestCluster::builder().with(limited).start().await?;
    cluster.create(quota("a")).await?;
    cluster.advance(Duration::from_secs(3600)).await;
    assert_eq!(
        diary.take(),
        ["0", "60", "180", "360", "a forgotten"],
        "one, two and three minutes; then it is given up"
    );
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_key_that_was_given_up_has_all_its_retries_again_when_it_changes() -> Result<(), Failure> {
    let diary = Diary::default();
    let noted = diary.clone();
    let giving_up = move |manager: &Manager| {
        let builder = manager.controller::<ResourceQuota>("giving-up").give_up_after(2);
        builder.reconcile_with(Hopeless::new(&noted));
    };
    let cluster = TestCluster::builder().with(giving_up).start().await?;
    cluster.create(quota("a")).await?;
    cluster.advance(Duration::from_secs(3600)).await;
    assert_eq!(diary.take().len(), 3, "the first time, and two retries");
    let change = json!({"metadata": {"labels": {"a": "b"}}});
    cluster.api::<ResourceQuota>().patch("a", &PatchParams::default(), &Patch::Merge(change)).await?;
    cluster.advance(Duration::from_secs(3600)).await;
    assert_eq!(diary.take().len(), 3, "and again");
    let key = ObjectKey::new(cluster.namespace(), "a");
    let log = cluster.manager().decisions().for_key("giving-up", &key);
    assert!(log.iter().all(|entry| entry.to_string().contains("on purpose")), "{log:?}");
    cluster.stop().await
}

//! A panic in code of the user costs no more than what it happened to.

use std::future::{Future, ready};
use std::time::Duration;

use k8s_openapi::api::core::v1::ResourceQuota;
use kube::api::{Api, PostParams};
use steersman_base::ObjectKey;
use steersman_informer::{Change, Typed};
use steersman_runtime::manager::{Group, Runnable};
use steersman_runtime::{Action, Context, Error, ManagerOptions, Reconciler};
use steersman_testing::Failure;
use steersman_workqueue::RateLimiter;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn a_reconciler_that_panics_before_it_returns_a_future_costs_its_key_alone() -> Result<(), Failure> {
    struct Early(Diary);
    impl Reconciler for Early {
        fn reconcile(&self, _: &Context, key: &ObjectKey) -> impl Future<Output = Result<Action, Error>> + Send {
            self.0.note(key.name.to_string());
            assert!(key.name != "bad", "on purpose");
            ready(Ok(Action::Done))
        }
    }
    let diary = Diary::default();
    let (manager, _) = embedded(ManagerOptions::default())?;
    let controller = manager.controller::<ResourceQuota>("early").give_up_after(1).reconcile_with(Early(diary.clone()));
    let running = Running::start(manager);
    controller.trigger(ObjectKey::cluster("bad"));
    tokio::time::sleep(SOON).await;
    assert_eq!(diary.take(), ["bad", "bad"], "tried, and tried again");
    controller.trigger(ObjectKey::cluster("good"));
    tokio::time::sleep(SOON).await;
    assert_eq!(diary.take(), ["good"], "the one worker is still there");
    running.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_on_an_object_does_not_keep_a_leader_from_the_others() -> Result<(), Failure> {
    let diary = Diary::default();
    let (manager, client) = embedded(ManagerOptions::default().lease(lease("one")))?;
    let quotas: Api<ResourceQuota> = Api::default_namespaced(client);
    for name in ["a", "bad", "c"] {
        quotas.create(&PostParams::default(), &quota(name)).await?;
    }
    let picky = |change: &Change<Typed<ResourceQuota>>| {
        assert!(change.key().name != "bad", "on purpose");
        change.key()
    };
    manager.controller::<ResourceQuota>("picky").watch_main(picky).reconcile_with(Noting(diary.clone()));
    let running = Running::start(manager);
    tokio::time::sleep(10 * SOON).await;
    assert_eq!(diary.take(), ["a", "c"], "what the caches hold is delivered when the leader starts");
    quotas.create(&PostParams::default(), &quota("d")).await?;
    tokio::time::sleep(SOON).await;
    assert_eq!(diary.take(), ["d"]);
    running.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_panics_outside_of_a_reconcile_stops_the_manager_in_the_name_of_its_controller()
-> Result<(), Failure> {
    struct Failing;
    impl Reconciler for Failing {
        async fn reconcile(&self, _: &Context, _: &ObjectKey) -> Result<Action, Error> {
            Err(Error::message("on purpose"))
        }
    }
    struct Broken;
    impl RateLimiter<ObjectKey> for Broken {
        fn delay(&mut self, _: &ObjectKey, _: u32, _: Instant) -> Duration {
            panic!("no such rate")
        }
    }
    let (manager, _) = embedded(ManagerOptions::default())?;
    let controller = manager.controller::<ResourceQuota>("limited").limiter(Broken).reconcile_with(Failing);
    controller.trigger(ObjectKey::cluster("a"));
    let ended = tokio::time::timeout(HOUR, manager.run(CancellationToken::new())).await?;
    let ended = ended.map_err(|error| error.to_string());
    assert_eq!(ended, Err("limited failed: a worker panicked: no such rate".to_owned()));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_runnable_that_panics_before_it_returns_a_future_is_named() -> Result<(), Failure> {
    struct Bomb;
    impl Runnable for Bomb {
        fn name(&self) -> String {
            "bomb".into()
        }
        fn group(&self) -> Group {
            Group::Others
        }
        fn run(self, _: CancellationToken) -> impl Future<Output = Result<(), Error>> + Send {
            if self.group() == Group::Others {
                panic!("on purpose");
            }
            ready(Ok(()))
        }
    }
    let (manager, _) = embedded(ManagerOptions::default())?;
    manager.add(Bomb);
    let ended = manager.run(CancellationToken::new()).await.map_err(|error| error.to_string());
    assert_eq!(ended, Err("bomb failed: it panicked: on purpose".to_owned()));
    Ok(())
}

//! What starts when, and what ends when.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ResourceQuota, Secret};
use steersman_base::ObjectKey;
use steersman_runtime::manager::{Group, runnable};
use steersman_runtime::{Action, Context, Error, Lister, ManagerError, ManagerOptions, Reconciler};
use steersman_testing::{Failure, Fault, Faults, TestCluster, Verb};
use tokio_util::sync::CancellationToken;

use crate::support::*;

fn phases(diary: &Diary, name: &'static str, group: Group) -> impl steersman_runtime::Runnable {
    let diary = diary.clone();
    runnable(name, group, move |stop: CancellationToken| async move {
        diary.note(format!("{name} starts"));
        stop.cancelled().await;
        diary.note(format!("{name} ends"));
        Ok(())
    })
}

#[tokio::test(start_paused = true)]
async fn groups_start_in_order_and_end_in_reverse() -> Result<(), Failure> {
    let (manager, _) = embedded(ManagerOptions::default())?;
    let diary = Diary::default();
    manager.add(phases(&diary, "leading", Group::Leading));
    manager.add(phases(&diary, "other", Group::Others));
    manager.add(phases(&diary, "server", Group::Servers));
    manager.add(phases(&diary, "cache", Group::Caches));
    let stop = CancellationToken::new();
    let running = tokio::spawn({
        let manager = manager.clone();
        let stop = stop.clone();
        async move { manager.run(stop).await }
    });
    tokio::time::sleep(SOON).await;
    assert_eq!(diary.take(), ["server starts", "cache starts", "other starts", "leading starts"]);
    manager.add(phases(&diary, "late", Group::Others));
    tokio::time::sleep(SOON).await;
    assert_eq!(diary.take(), ["late starts"], "what is added later starts at once");
    stop.cancel();
    running.await??;
    assert_eq!(diary.take(), ["leading ends", "other ends", "late ends", "cache ends", "server ends"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_failing_runnable_stops_the_manager_with_its_error() -> Result<(), Failure> {
    let (manager, _) = embedded(ManagerOptions::default())?;
    let diary = Diary::default();
    manager.add(phases(&diary, "server", Group::Servers));
    manager.add(runnable("flaky", Group::Others, |_| async {
        tokio::time::sleep(SOON).await;
        Err(Error::message("out of flour"))
    }));
    let ended = manager.run(CancellationToken::new()).await;
    assert_eq!(ended.map_err(|error| error.to_string()), Err("flaky failed: out of flour".to_owned()));
    assert_eq!(diary.take(), ["server starts", "server ends"]);
    let again = manager.run(CancellationToken::new()).await;
    assert!(matches!(again, Err(ManagerError::RunsAlready)));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_runnable_that_panics_or_does_not_end_is_named() -> Result<(), Failure> {
    let (manager, _) = embedded(ManagerOptions::default())?;
    manager.add(runnable("bomb", Group::Others, |_| async { panic!("on purpose") }));
    let ended = manager.run(CancellationToken::new()).await.map_err(|error| error.to_string());
    assert_eq!(ended, Err("bomb failed: it panicked: on purpose".to_owned()));

    let (manager, _) = embedded(ManagerOptions::default().shutdown_within(SOON))?;
    manager.add(runnable("deaf", Group::Others, |_| std::future::pending()));
    let stop = CancellationToken::new();
    stop.cancel();
    let begun = tokio::time::Instant::now();
    let ended = manager.run(stop).await;
    // Nothing had started when the stop was requested.
    assert!(ended.is_ok(), "{ended:?}");

    let (manager, _) = embedded(ManagerOptions::default().shutdown_within(SOON))?;
    manager.add(runnable("deaf", Group::Others, |_| std::future::pending()));
    let stop = CancellationToken::new();
    tokio::spawn({
        let stop = stop.clone();
        async move {
            tokio::time::sleep(SOON).await;
            stop.cancel();
        }
    });
    let ended = manager.run(stop).await;
    assert!(matches!(&ended, Err(ManagerError::StoppedHard { names, .. }) if names == &["deaf"]), "{ended:?}");
    assert!(begun.elapsed() < Duration::from_secs(5));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn two_controllers_of_one_name_are_refused() -> Result<(), Failure> {
    let (manager, _) = embedded(ManagerOptions::default())?;
    for _ in 0..2 {
        manager.controller::<ResourceQuota>("twin").reconcile_with(Noting(Diary::default()));
    }
    let ended = manager.run(CancellationToken::new()).await;
    assert!(matches!(ended, Err(ManagerError::SameName("twin"))), "{ended:?}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_in_flight_finishes_before_the_manager_ends() -> Result<(), Failure> {
    struct Slow(Diary);
    impl Reconciler for Slow {
        async fn reconcile(&self, _: &Context, key: &ObjectKey) -> Result<Action, Error> {
            self.0.note(format!("{} begins", key.name));
            tokio::time::sleep(Duration::from_secs(5)).await;
            self.0.note(format!("{} is done", key.name));
            Ok(Action::Done)
        }
    }
    let diary = Diary::default();
    let noted = diary.clone();
    let cluster = TestCluster::builder()
        .with(move |manager| drop(manager.controller::<ResourceQuota>("slow").reconcile_with(Slow(noted.clone()))))
        .start()
        .await?;
    cluster.create(quota("a")).await?;
    cluster.create(quota("b")).await?;
    cluster.advance(SOON).await;
    cluster.stop().await?;
    assert_eq!(diary.take(), ["a begins", "a is done"], "what waits is left, what is in flight is not");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_is_added_while_caches_are_being_filled_works_with_caches_of_its_own() -> Result<(), Failure> {
    let faults = Faults::default();
    for verb in [Verb::Watch, Verb::List] {
        faults.on(verb, "secrets").happens(Fault::Delay(Duration::from_secs(5)));
    }
    let diary = Diary::default();
    let noted = diary.clone();
    let slow = move |manager: &steersman_runtime::Manager| {
        manager.controller::<Secret>("slow").reconcile_with(Noting(noted.clone()));
    };
    let cluster = TestCluster::builder().faults(&faults).with(slow).start().await?;
    cluster.create(quota("a")).await?;
    cluster.advance(SOON).await;
    cluster.manager().controller::<ResourceQuota>("late").reconcile_with(Noting(diary.clone()));
    cluster.manager().add(phases(&diary, "server", Group::Servers));
    cluster.advance(SOON).await;
    assert_eq!(diary.take(), ["server starts", "a"], "neither waits for the cache of another");
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_controller_waits_for_a_kind_that_it_only_reads_if_it_says_so() -> Result<(), Failure> {
    struct Reads(Lister<Secret>, Diary);
    impl Reconciler for Reads {
        async fn reconcile(&self, _: &Context, key: &ObjectKey) -> Result<Action, Error> {
            self.1.note(format!("{} sees {} secrets", key.name, self.0.len()));
            Ok(Action::Done)
        }
    }
    let faults = Faults::default();
    for verb in [Verb::Watch, Verb::List] {
        faults.on(verb, "secrets").happens(Fault::Delay(Duration::from_secs(5)));
    }
    let diary = Diary::default();
    let noted = diary.clone();
    let reads = move |manager: &steersman_runtime::Manager| {
        let reads = Reads(manager.lister(), noted.clone());
        manager.controller::<ResourceQuota>("reads").needs::<Secret>().reconcile_with(reads);
    };
    let cluster = TestCluster::builder().faults(&faults).with(reads).start().await?;
    cluster.create(quota("a")).await?;
    cluster.create(Secret { metadata: steersman_testing::objects::named("s"), ..Secret::default() }).await?;
    cluster.advance(SOON).await;
    assert!(diary.take().is_empty(), "the cache of Secrets is not filled");
    cluster.advance(Duration::from_secs(30)).await;
    assert_eq!(diary.take(), ["a sees 1 secrets"]);
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_lister_that_is_made_while_the_manager_runs_is_filled() -> Result<(), Failure> {
    let cluster = TestCluster::builder().start().await?;
    cluster.settle().await?;
    let secrets = cluster.manager().lister::<Secret>();
    cluster.create(Secret { metadata: steersman_testing::objects::named("s"), ..Secret::default() }).await?;
    cluster.advance(SOON).await;
    assert_eq!(secrets.len(), 1);
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_manager_that_is_ending_is_not_ready() -> Result<(), Failure> {
    struct Slow;
    impl Reconciler for Slow {
        async fn reconcile(&self, _: &Context, _: &ObjectKey) -> Result<Action, Error> {
            tokio::time::sleep(Duration::from_secs(5)).await;
            Ok(Action::Done)
        }
    }
    let (manager, _) = embedded(ManagerOptions::default())?;
    manager.controller::<ResourceQuota>("slow").reconcile_with(Slow).trigger(ObjectKey::cluster("a"));
    let running = Running::start(manager.clone());
    tokio::time::sleep(SOON).await;
    assert!(ready(&manager).passed, "{}", ready(&manager).text);
    running.stop.cancel();
    tokio::time::sleep(SOON).await;
    let report = ready(&manager);
    assert!(!report.passed && report.text.contains("[-]shutdown failed: process is shutting down"), "{}", report.text);
    running.stop().await
}

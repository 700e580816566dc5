//! What comes too late, and what does not let go.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Pod, ResourceQuota};
use steersman_base::ObjectKey;
use steersman_informer::{Selection, Typed};
use steersman_model::View;
use steersman_runtime::manager::{Group, runnable};
use steersman_runtime::source::{self, SendError, Watch};
use steersman_runtime::{Action, Context, Error, Manager, ManagerError, ManagerOptions, Reconciler, handler};
use steersman_testing::{Failure, TestCluster, objects};
use tokio_util::sync::CancellationToken;

use crate::support::*;

fn key_of(quota: &Typed<ResourceQuota>) -> ObjectKey {
    View::meta(quota).key()
}

fn outside(name: &str) -> Arc<Typed<ResourceQuota>> {
    let meta = steersman_base::Meta { name: name.into(), ..steersman_base::Meta::default() };
    Arc::new(Typed::new(meta, quota(name)))
}

#[tokio::test(start_paused = true)]
async fn additions_and_triggers_after_the_end_do_nothing_and_do_not_block() -> Result<(), Failure> {
    let (manager, _) = embedded(ManagerOptions::default())?;
    let diary = Diary::default();
    let (early, events) = source::channel(key_of);
    let builder = manager.controller::<ResourceQuota>("ended").source(events);
    let controller = builder.reconcile_with(Noting(diary.clone()));
    let running = Running::start(manager.clone());
    tokio::time::sleep(SOON).await;
    running.stop().await?;

    controller.trigger(ObjectKey::cluster("a"));
    controller.trigger_all(&[ObjectKey::cluster("b")]);
    assert_eq!(early.send(outside("c")).await, Err(SendError::Ended));
    let (late, events) = source::channel(key_of);
    controller.add_source(events);
    controller.add_source(Watch::new(&manager.informers().typed::<Pod>(Selection::everything()), handler::object()));
    manager.controller::<ConfigMap>("late").reconcile_with(Noting(diary.clone()));
    let noted = diary.clone();
    manager.add(runnable("late", Group::Others, move |_| async move {
        noted.note("runs");
        Ok(())
    }));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(diary.take().is_empty(), "nobody works any more");
    assert_eq!(late.send(outside("d")).await, Err(SendError::Ended));
    assert_eq!(controller.queue().len(), 0, "what nobody will take is not kept");
    let watching = manager.inspection().informers();
    let reading = watching.iter().filter(|each| each.reflector.is_some()).count();
    assert_eq!((watching.len(), reading), (3, 1), "what was asked for late is not read");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_manager_that_is_stopped_before_it_starts_closes_its_channels() -> Result<(), Failure> {
    let (manager, _) = embedded(ManagerOptions::default())?;
    let (sender, events) = source::channel(key_of);
    let controller =
        manager.controller::<ResourceQuota>("never").source(events).reconcile_with(Noting(Diary::default()));
    let stop = CancellationToken::new();
    stop.cancel();
    manager.run(stop).await?;
    // More than the channel holds: whoever waited for room would wait for ever.
    for _ in 0..source::CHANNEL_MAX + 1 {
        assert_eq!(sender.send(outside("a")).await, Err(SendError::Ended));
    }
    let (late, events) = source::channel(key_of);
    controller.add_source(events);
    tokio::time::sleep(SOON).await;
    assert_eq!(late.send(outside("b")).await, Err(SendError::Ended));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_standby_that_ends_closes_its_channels() -> Result<(), Failure> {
    let (leader, client) = embedded(ManagerOptions::default().lease(lease("leader")))?;
    let leader = Running::start(leader);
    tokio::time::sleep(SOON).await;
    let standby = Manager::new(client, ManagerOptions::default().lease(lease("standby")))?;
    let (sender, events) = source::channel(key_of);
    let controller =
        standby.controller::<ResourceQuota>("never").source(events).reconcile_with(Noting(Diary::default()));
    let standby = Running::start(standby);
    tokio::time::sleep(SOON).await;
    standby.stop().await?;
    for _ in 0..source::CHANNEL_MAX + 1 {
        let sent = tokio::time::timeout(HOUR, sender.send(outside("a"))).await;
        assert_eq!(sent, Ok(Err(SendError::Ended)));
    }
    drop(controller);
    leader.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_is_added_under_a_name_that_is_taken_ends_the_manager() -> Result<(), Failure> {
    let cluster = TestCluster::builder().with(add_one_pod_each).start().await?;
    let running = run_one_pod_each(cluster.client(), "beside")?;
    cluster.advance(SOON).await;
    add_one_pod_each(&running.manager);
    let ended = tokio::time::timeout(Duration::from_secs(60), running.task).await??;
    assert!(matches!(ended, Err(ManagerError::SameName("one-pod-each"))), "{ended:?}");
    cluster.create(quota("a")).await?;
    cluster.until_exists::<ResourceQuota>("a").await?;
    cluster.settle().await?;
    assert_eq!(cluster.api::<Pod>().list(&Default::default()).await?.items.len(), 1, "other managers do not mind");
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_does_not_look_at_the_time_is_ended_at_the_deadline() -> Result<(), Failure> {
    struct Deaf;
    impl Reconciler for Deaf {
        async fn reconcile(&self, _: &Context, _: &ObjectKey) -> Result<Action, Error> {
            loop {
                tokio::time::sleep(SOON).await;
            }
        }
    }
    let options = ManagerOptions::default().shutdown_within(Duration::from_secs(5)).lease(lease("one"));
    let (manager, client) = embedded(options)?;
    manager.controller::<ResourceQuota>("deaf").reconcile_with(Deaf).trigger(ObjectKey::cluster("a"));
    let running = Running::start(manager);
    tokio::time::sleep(SOON).await;
    running.stop.cancel();
    let begun = tokio::time::Instant::now();
    let ended = running.task.await?;
    assert!(matches!(&ended, Err(ManagerError::StoppedHard { names, .. }) if names == &["deaf"]), "{ended:?}");
    assert_eq!(begun.elapsed().as_secs(), 5);
    // Whoever was ended in the middle may have something on the wire: the lease runs out, and is not given back.
    let leases: kube::Api<k8s_openapi::api::coordination::v1::Lease> = kube::Api::namespaced(client, "default");
    let holder = leases.get("lease").await?.spec.and_then(|spec| spec.holder_identity);
    assert_eq!(holder.as_deref(), Some("one"));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_waiting_reconcile_is_notified_of_the_stop() -> Result<(), Failure> {
    struct Waiting(Diary);
    impl Reconciler for Waiting {
        async fn reconcile(&self, cx: &Context, _: &ObjectKey) -> Result<Action, Error> {
            let waited = cx.stop.run_until_cancelled(std::future::pending::<()>()).await;
            self.0.note(if waited.is_none() { "stopped" } else { "done" });
            Ok(Action::Done)
        }
    }
    let diary = Diary::default();
    let (manager, _) = embedded(ManagerOptions::default())?;
    manager
        .controller::<ResourceQuota>("waiting")
        .reconcile_with(Waiting(diary.clone()))
        .trigger(ObjectKey::cluster("a"));
    let running = Running::start(manager);
    tokio::time::sleep(SOON).await;
    assert!(diary.take().is_empty(), "it waits");
    let begun = tokio::time::Instant::now();
    running.stop().await?;
    assert_eq!(diary.take(), ["stopped"]);
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    Ok(())
}

/// On threads, and so on the real clock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_that_blocks_its_thread_does_not_keep_the_manager_from_ending() -> Result<(), Failure> {
    struct Blocking {
        began: tokio::sync::mpsc::UnboundedSender<()>,
        held: parking_lot::Mutex<mpsc::Receiver<()>>,
    }
    impl Reconciler for Blocking {
        async fn reconcile(&self, _: &Context, _: &ObjectKey) -> Result<Action, Error> {
            let _ = self.began.send(());
            // Until the other end is gone.
            let _ = self.held.lock().recv();
            Ok(Action::Done)
        }
    }
    let (began, mut has_begun) = tokio::sync::mpsc::unbounded_channel();
    let (release, held) = mpsc::channel();
    let (release_runnable, held_runnable) = mpsc::channel::<()>();
    let within = Duration::from_millis(100);
    let (manager, _) = embedded(ManagerOptions::default().shutdown_within(within))?;
    let blocking =
        manager.controller::<ResourceQuota>("blocking").reconcile_with(Blocking { began, held: held.into() });
    let running = Running::start(manager);
    blocking.trigger(ObjectKey::cluster("a"));
    has_begun.recv().await;
    running.stop.cancel();
    let ended = tokio::time::timeout(Duration::from_secs(30), running.task).await??;
    assert!(matches!(&ended, Err(ManagerError::StoppedHard { names, .. }) if names == &["blocking"]), "{ended:?}");
    drop(release);

    let (manager, _) = embedded(ManagerOptions::default().shutdown_within(within))?;
    let (started, began) = tokio::sync::oneshot::channel();
    manager.add(runnable("held", Group::Others, |_| async move {
        let _ = started.send(());
        let _ = held_runnable.recv();
        Ok(())
    }));
    let running = Running::start(manager);
    began.await?;
    running.stop.cancel();
    let ended = tokio::time::timeout(Duration::from_secs(30), running.task).await??;
    assert!(matches!(&ended, Err(ManagerError::StoppedHard { names, .. }) if names == &["held"]), "{ended:?}");
    drop(release_runnable);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_is_watched_while_the_manager_ends_is_not_read_after_it() -> Result<(), Failure> {
    struct Slow;
    impl Reconciler for Slow {
        async fn reconcile(&self, _: &Context, _: &ObjectKey) -> Result<Action, Error> {
            tokio::time::sleep(Duration::from_secs(5)).await;
            Ok(Action::Done)
        }
    }
    let cluster = TestCluster::builder().start().await?;
    let manager = Manager::new(cluster.faulty_client(), ManagerOptions::default())?;
    let controller = manager.controller::<ResourceQuota>("slow").reconcile_with(Slow);
    controller.trigger(ObjectKey::cluster("a"));
    let running = Running::start(manager.clone());
    cluster.advance(SOON).await;
    running.stop.cancel();
    cluster.advance(SOON).await;
    controller.add_source(Watch::new(&manager.informers().typed::<Pod>(Selection::everything()), handler::object()));
    cluster.advance(SOON).await;
    running.stop().await?;
    // Whoever still reads would have it in its store.
    cluster.create(objects::pod("later")).await?;
    cluster.advance(Duration::from_secs(60)).await;
    let held: usize = manager.inspection().informers().iter().map(|each| each.informer.objects).sum();
    assert_eq!(held, 0, "nobody reads any more");
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_dropped_leaves_no_watch_and_no_source_behind() -> Result<(), Failure> {
    let cluster = TestCluster::builder().start().await?;
    let manager = Manager::new(cluster.faulty_client(), ManagerOptions::default())?;
    let (sender, events) = source::channel(key_of);
    let diary = Diary::default();
    let noted = diary.clone();
    let ticks = source::ticker(SOON, move || {
        noted.note("tick");
        Vec::new()
    });
    manager.controller::<Pod>("dropped").source(events).source(ticks).reconcile_with(Noting(diary.clone()));
    let running = Running::start(manager.clone());
    cluster.advance(10 * SOON).await;
    assert_eq!(diary.take().len(), 9);
    running.task.abort();
    cluster.advance(SOON).await;
    diary.take();
    cluster.create(objects::pod("later")).await?;
    cluster.advance(Duration::from_secs(60)).await;
    assert!(diary.take().is_empty(), "nobody ticks and nobody works");
    assert_eq!(sender.send(outside("a")).await, Err(SendError::Ended));
    let held: usize = manager.inspection().informers().iter().map(|each| each.informer.objects).sum();
    assert_eq!(held, 0, "nobody reads any more");
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn times_that_no_clock_can_count_are_taken_as_what_they_mean() -> Result<(), Failure> {
    let options = ManagerOptions::default().shutdown_within(Duration::MAX);
    let (manager, _) = embedded(options)?;
    struct Never;
    impl Reconciler for Never {
        async fn reconcile(&self, _: &Context, _: &ObjectKey) -> Result<Action, Error> {
            Ok(Action::After(Duration::MAX))
        }
    }
    let builder = manager.controller::<ResourceQuota>("never").timeout(Duration::MAX).resync(Duration::MAX);
    let rarely = source::ticker(Duration::MAX, Vec::new);
    let often = source::ticker(Duration::ZERO, Vec::new);
    builder.source(rarely).source(often).reconcile_with(Never).trigger(ObjectKey::cluster("a"));
    let running = Running::start(manager.clone());
    tokio::time::sleep(SOON).await;
    assert!(ready(&manager).passed, "{}", ready(&manager).text);
    running.stop().await
}

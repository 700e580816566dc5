//! What goes wrong in one place stays there.

use std::time::Duration;

use http::StatusCode;
use k8s_openapi::api::core::v1::{Pod, ResourceQuota, Secret};
use kube::api::{ListParams, ObjectMeta};
use steersman_base::ObjectKey;
use steersman_runtime::health::Probe;
use steersman_runtime::{Action, CachedClient, Context, Error, Manager, Reconciler};
use steersman_testing::{Failure, Fault, Faults, TestCluster, Verb, objects};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_hangs_is_ended_and_costs_no_other_key_anything() -> Result<(), Failure> {
    struct Hanging(Diary);
    impl Reconciler for Hanging {
        async fn reconcile(&self, _: &Context, key: &ObjectKey) -> Result<Action, Error> {
            self.0.note(key.name.to_string());
            if key.name == "hangs" {
                std::future::pending::<()>().await;
            }
            Ok(Action::Done)
        }
    }
    let diary = Diary::default();
    let noted = diary.clone();
    let cluster = TestCluster::builder()
        .with(move |manager| {
            let builder = manager.controller::<ResourceQuota>("hanging").timeout(Duration::from_secs(10));
            builder.reconcile_with(Hanging(noted.clone()));
        })
        .start()
        .await?;
    cluster.create(quota("hangs")).await?;
    cluster.create(quota("works")).await?;
    cluster.advance(Duration::from_secs(25)).await;
    assert_eq!(diary.take(), ["hangs", "works", "hangs", "hangs"]);
    let log = cluster.manager().decisions().for_key("hanging", &ObjectKey::new(cluster.namespace(), "hangs"));
    assert!(log[0].to_string().contains("took over 10s"), "{}", log[0]);
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_write_that_a_timeout_cut_off_is_not_made_again() -> Result<(), Failure> {
    let faults = Faults::default();
    faults.on(Verb::Create, "pods").nth(1).happens(Fault::DoThenDelay(Duration::from_secs(10)));
    faults.on(Verb::Watch, "pods").happens(Fault::Lag(Duration::from_secs(10)));
    let impatient = |manager: &Manager| add_one_pod_each_with(manager, |builder| builder.timeout(2 * SOON));
    let cluster = TestCluster::builder().faults(&faults).with(impatient).start().await?;
    cluster.create(quota("a")).await?;
    cluster.advance(Duration::from_secs(60)).await;
    let pods = cluster.api::<Pod>().list(&ListParams::default()).await?.items;
    assert_eq!(pods.len(), 1, "the server made it, and nobody waited for its answer: {:?}", cluster.last_writes());
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_resource_stalls_no_other_controller_and_health_reports_it() -> Result<(), Failure> {
    let faults = Faults::default();
    faults.on(Verb::Watch, "secrets").refuse(StatusCode::FORBIDDEN);
    faults.on(Verb::List, "secrets").refuse(StatusCode::FORBIDDEN);
    let diary = Diary::default();
    let noted = diary.clone();
    let cluster = TestCluster::builder()
        .faults(&faults)
        .with(move |manager| {
            manager.controller::<ResourceQuota>("works").reconcile_with(Noting(noted.clone()));
            manager.controller::<Secret>("waits").reconcile_with(Noting(noted.clone()));
        })
        .start()
        .await?;
    cluster.create(quota("a")).await?;
    cluster.create(Secret { metadata: objects::named("secret"), ..Secret::default() }).await?;
    cluster.advance(Duration::from_secs(30)).await;
    assert_eq!(diary.take(), ["a"]);
    let ready = || ready(cluster.manager());
    let report = ready();
    assert!(!report.passed && report.text.contains("secrets"), "{}", report.text);
    assert!(report.text.contains("[+]works ok"), "{}", report.text);

    cluster.faults().heal();
    cluster.advance(Duration::from_secs(90)).await;
    assert_eq!(diary.take(), ["secret"], "what may be read later is seen later");
    assert!(ready().passed, "{}", ready().text);
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_is_away_for_an_hour_loses_nothing() -> Result<(), Failure> {
    let cluster = TestCluster::builder().with(add_one_pod_each).start().await?;
    cluster.create(quota("before")).await?;
    cluster.settle().await?;
    cluster.create(quota("seen")).await?;
    // Just long enough for the cache to show it, too short for its pod to be made.
    cluster.faults().on(Verb::Create, "pods").happens(Fault::LoseRequest);
    cluster.advance(Duration::from_millis(100)).await;
    cluster.faults().heal();
    cluster.faults().server_goes_away();
    cluster.create(quota("meanwhile")).await?;
    let held = |cluster: &TestCluster| {
        cluster.manager().inspection().informers().iter().map(|i| i.informer.objects).sum::<usize>()
    };
    let before = held(&cluster);
    cluster.advance(Duration::from_secs(3600)).await;
    assert_eq!(held(&cluster), before, "caches are kept");
    cluster.faults().server_is_back();
    let back = tokio::time::Instant::now();
    let pods = cluster.api::<Pod>();
    while pods.list(&ListParams::default()).await?.items.len() < 3 {
        assert!(back.elapsed() < Duration::from_secs(60), "never recovered");
        cluster.advance(Duration::from_millis(100)).await;
    }
    assert!(back.elapsed() < Duration::from_secs(5), "recovered only after {:?}", back.elapsed());
    cluster.settle().await?;
    assert_eq!(pods.list(&ListParams::default()).await?.items.len(), 3);
    cluster.expect_quiet(Duration::from_secs(600)).await?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_controller_whose_workers_are_all_held_is_alive_for_ten_minutes() -> Result<(), Failure> {
    struct Hangs;
    impl Reconciler for Hangs {
        async fn reconcile(&self, _: &Context, _: &ObjectKey) -> Result<Action, Error> {
            std::future::pending().await
        }
    }
    let (manager, _) = embedded(steersman_runtime::ManagerOptions::default().shutdown_within(SOON))?;
    let hanging = manager.controller::<ResourceQuota>("hanging").workers(2).reconcile_with(Hangs);
    manager.controller::<Secret>("idle").reconcile_with(Noting(Diary::default()));
    let running = Running::start(manager.clone());
    for name in ["a", "b"] {
        hanging.trigger(ObjectKey::cluster(name));
    }
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(probe(&manager, Probe::Livez).passed, "nobody waits for the workers");
    hanging.trigger(ObjectKey::cluster("c"));
    tokio::time::sleep(SOON).await;
    for asked in Probe::ALL {
        let report = probe(&manager, asked);
        let want = "[-]hanging failed: 1 keys wait, and no reconcile has ended for 3601 s: all 2 workers are held";
        assert!(!report.passed && report.text.contains(want), "{asked:?}: {}", report.text);
        assert!(report.text.contains("[+]idle ok"), "{asked:?}: {}", report.text);
    }
    running.stop.cancel();
    assert!(running.task.await?.is_err(), "what hangs is ended");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_neither_renews_nor_ends_is_not_healthy() -> Result<(), Failure> {
    let (manager, _) = embedded(steersman_runtime::ManagerOptions::default().lease(lease("one")))?;
    let running = Running::start(manager.clone());
    manager.leadership().acquired().await;
    assert!(probe(&manager, Probe::Healthz).text.contains("[+]leaderElection ok"));
    // One jump: nobody in the process gets to run meanwhile, as if it had been stopped.
    #[expect(clippy::disallowed_methods, reason = "that timers are skipped is what is wanted")]
    let jump = async |time| tokio::time::advance(time).await;
    let mut jumping = std::pin::pin!(jump(Duration::from_secs(40)));
    let report = std::future::poll_fn(|cx| {
        let _ = jumping.as_mut().poll(cx);
        std::task::Poll::Ready(probe(&manager, Probe::Healthz))
    })
    .await;
    assert!(!report.passed && report.text.contains("failed election to renew leadership"), "{}", report.text);
    running.task.abort();
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_server_that_has_too_much_to_do_is_asked_again_when_it_says() -> Result<(), Failure> {
    /// Writes through the client.
    struct Writing(Diary, CachedClient);
    impl Reconciler for Writing {
        async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
            self.0.note(format!("{} s", cx.clock.now().unix() % 1000));
            let pod = objects::pod("made");
            let namespace = Some(key.namespace.to_string());
            let metadata = ObjectMeta { namespace, ..pod.metadata.clone() };
            self.1.objects().create(&Pod { metadata, ..pod }).await?;
            Ok(Action::Done)
        }
    }
    let diary = Diary::default();
    let noted = diary.clone();
    let writing = move |manager: &Manager| {
        let writing = Writing(noted.clone(), manager.client().clone());
        manager.controller::<ResourceQuota>("writing").reconcile_with(writing);
    };
    let cluster = TestCluster::builder().with(writing).start().await?;
    cluster.faults().on(Verb::Create, "pods").next(1).happens(Fault::Throttle(30));
    cluster.create(quota("a")).await?;
    cluster.advance(Duration::from_secs(120)).await;
    assert_eq!(diary.take(), ["0 s", "30 s"], "not with a back-off of our own");
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_manager_that_may_not_use_the_lease_is_not_ready_and_reports_why() -> Result<(), Failure> {
    // Each of the requests that an election needs.
    for (verb, what) in [(Verb::Get, "read"), (Verb::Create, "create")] {
        let cluster = TestCluster::builder().start().await?;
        cluster.faults().on(verb, "leases").refuse(StatusCode::FORBIDDEN);
        let running = run_one_pod_each(cluster.faulty_client(), "one")?;
        cluster.advance(Duration::from_secs(30)).await;
        let report = ready(&running.manager);
        let want =
            format!("[-]leaderElection failed: cannot {what} the lease default/lease: the server refused with 403");
        assert!(!report.passed && report.text.contains(&want), "{}", report.text);
        assert!(report.text.contains("[+]one-pod-each ok"), "its caches are warm: {}", report.text);
        assert!(probe(&running.manager, Probe::Livez).passed, "a restart would not help");

        cluster.faults().heal();
        running.manager.leadership().acquired().await;
        assert!(ready(&running.manager).passed, "{}", ready(&running.manager).text);
        let standby = run_one_pod_each(cluster.client(), "two")?;
        cluster.advance(Duration::from_secs(30)).await;
        assert!(
            ready(&standby.manager).passed,
            "who waits for another's lease is ready: {}",
            ready(&standby.manager).text
        );
        // What may pass does not count.
        cluster.faults().server_goes_away();
        cluster.advance(SOON).await;
        assert!(running.manager.leadership().refusal().is_none());
        cluster.faults().server_is_back();
        running.stop().await?;
        standby.stop().await?;
        cluster.stop().await?;
    }
    Ok(())
}

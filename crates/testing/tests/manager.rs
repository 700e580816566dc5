//! What a manager promises, on the embedded server under a virtual clock.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ResourceQuota, Pod, Secret};
use http::StatusCode;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use parking_lot::Mutex;
use serde_json::json;
use steersman_apiserver::ApiServer;
use steersman_base::{Clock, ObjectKey};
use steersman_informer::{Lister, Scope, Typed};
use steersman_model::View;
use steersman_runtime::event::Event;
use steersman_runtime::handler::{self, Keys};
use steersman_runtime::health::{Ask, Probe, Reasons};
use steersman_runtime::manager::{Group, runnable};
use steersman_runtime::predicate::labels_changed;
use steersman_runtime::source::{self, Watch};
use steersman_runtime::{
    Action, Context, Error, LeaseOptions, Manager, ManagerError, ManagerOptions, Reconciler,
};
use steersman_testing::{Failure, Fault, Faults, TestCluster, Verb, objects};
use tokio_util::sync::CancellationToken;

/// What happened, in order.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    fn note(&self, text: impl Into<String>) {
        self.0.lock().push(text.into());
    }
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// Notes each key it is given.
struct Noting(Diary);

impl Reconciler for Noting {
    async fn reconcile(&self, _: &Context, key: &ObjectKey) -> Result<Action, Error> {
        self.0.note(key.name.to_string());
        Ok(Action::Done)
    }
}

const SOON: Duration = Duration::from_secs(1);

fn quota(name: &str) -> ResourceQuota {
    ResourceQuota { metadata: objects::named(name), ..ResourceQuota::default() }
}

fn phases(diary: &Diary, name: &'static str, group: Group) -> impl steersman_runtime::Runnable {
    let diary = diary.clone();
    runnable(name, group, move |stop: CancellationToken| async move {
        diary.note(format!("{name} starts"));
        stop.cancelled().await;
        diary.note(format!("{name} ends"));
        Ok(())
    })
}

fn embedded(options: ManagerOptions) -> Result<(Manager, kube::Client), Failure> {
    let client = kube::Client::new(ApiServer::new(steersman_apiserver::Options::default()), "default");
    Ok((Manager::new(client.clone(), options)?, client))
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
        let (manager, stop) = (manager.clone(), stop.clone());
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
    assert_eq!(ended, Err("bomb failed: it panicked".to_owned()));

    let (manager, _) = embedded(ManagerOptions { shutdown_within: SOON, ..ManagerOptions::default() })?;
    manager.add(runnable("deaf", Group::Others, |_| std::future::pending()));
    let stop = CancellationToken::new();
    stop.cancel();
    let begun = tokio::time::Instant::now();
    let ended = manager.run(stop).await;
    // Nothing had started when it was told to stop.
    assert!(ended.is_ok(), "{ended:?}");

    let (manager, _) = embedded(ManagerOptions { shutdown_within: SOON, ..ManagerOptions::default() })?;
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
async fn sources_handlers_and_predicates_choose_what_is_looked_at() -> Result<(), Failure> {
    let diary = Diary::default();
    let noted = diary.clone();
    let cluster = TestCluster::builder()
        .with(move |manager| {
            let secrets = manager.informers().typed::<Secret>(Scope::everything());
            let named = |event: Event<'_, Typed<Secret>>, keys: &mut Keys| {
                let meta = &event.object().metadata;
                let of = meta.annotations.as_ref().and_then(|notes| notes.get("of")).cloned().unwrap_or_default();
                keys.add(ObjectKey::new(meta.namespace.as_deref().unwrap_or_default(), &of));
            };
            let typed = |event: Event<'_, Typed<Secret>>| event.object().type_.as_deref() != Some("ignored/type");
            manager
                .controller::<ResourceQuota>("chooser")
                .filter(labels_changed())
                .owns::<Pod>()
                .source(Watch::new(&secrets, named).when(typed))
                .source(source::ticker(Duration::from_secs(100), || vec![ObjectKey::cluster("tick")]))
                .reconcile_with(Noting(noted.clone()));
        })
        .start()
        .await?;
    let owner = cluster.create(quota("main")).await?;
    cluster.advance(SOON).await;
    assert_eq!(diary.take(), ["main"]);

    let patch = |value: serde_json::Value| {
        let api: Api<ResourceQuota> = cluster.api();
        async move { api.patch("main", &PatchParams::default(), &Patch::Merge(value)).await }
    };
    patch(json!({"spec": {"hard": {"pods": "5"}}})).await?;
    cluster.advance(SOON).await;
    assert!(diary.take().is_empty(), "no label changed");
    patch(json!({"metadata": {"labels": {"a": "b"}}})).await?;
    cluster.advance(SOON).await;
    assert_eq!(diary.take(), ["main"]);

    let mut pod = objects::pod("child", "child");
    pod.metadata.owner_references = Some(vec![objects::controller_ref(&owner)]);
    cluster.create(pod).await?;
    cluster.create(objects::pod("stranger", "stranger")).await?;
    cluster.advance(SOON).await;
    assert_eq!(diary.take(), ["main"], "the owner of the one pod, nobody of the other");

    for (name, kind) in [("s1", "any/type"), ("s2", "ignored/type")] {
        let mut metadata = objects::named(name);
        metadata.annotations = Some([("of".to_owned(), format!("mapped-{name}"))].into());
        cluster.create(Secret { metadata, type_: Some(kind.into()), ..Secret::default() }).await?;
    }
    cluster.advance(SOON).await;
    assert_eq!(diary.take(), ["mapped-s1"]);
    cluster.advance(Duration::from_secs(200)).await;
    assert_eq!(diary.take(), ["tick", "tick"]);
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_running_controller_takes_triggers_events_and_late_watches() -> Result<(), Failure> {
    let diary = Diary::default();
    let noted = diary.clone();
    let cluster = TestCluster::builder()
        .with(move |manager| drop(manager.controller::<ResourceQuota>("open").reconcile_with(Noting(noted.clone()))))
        .start()
        .await?;
    cluster.advance(SOON).await;
    let controller = cluster.manager().inspection().controllers()[0].clone();
    controller.trigger(ObjectKey::cluster("by-hand"));
    cluster.advance(SOON).await;
    assert_eq!(diary.take(), ["by-hand"]);

    let (sender, events) = source::channel::<Typed<ResourceQuota>>(handler::object());
    controller.watch(events);
    let meta = steersman_base::Meta { name: "from-outside".into(), ..steersman_base::Meta::default() };
    sender.send(Arc::new(Typed::new(meta, quota("from-outside")))).await?;
    cluster.advance(SOON).await;
    assert_eq!(diary.take(), ["from-outside"]);

    cluster.create(objects::pod("early", "early")).await?;
    let pods = cluster.manager().informers().typed::<Pod>(Scope::everything());
    controller.watch(Watch::new(&pods, handler::object()));
    cluster.advance(SOON).await;
    assert_eq!(diary.take(), ["early"], "who comes late gets the state first");
    cluster.create(objects::pod("later", "later")).await?;
    cluster.advance(SOON).await;
    assert_eq!(diary.take(), ["later"]);
    let kinds: Vec<_> = cluster.manager().inspection().informers().iter().map(|i| i.informer.target.to_string()).collect();
    assert_eq!(kinds.len(), 2, "{kinds:?}");
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_standby_is_warm_and_takes_over_without_a_full_list() -> Result<(), Failure> {
    let server = ApiServer::new(steersman_apiserver::Options { clock: Clock::default(), ..steersman_apiserver::Options::default() });
    let client = kube::Client::new(server.clone(), "default");
    let diary = Diary::default();
    let start = |identity: &'static str| -> Result<_, Failure> {
        let lease = LeaseOptions {
            identity: Some(identity.into()),
            release_on_exit: true,
            ..LeaseOptions::new("default", "standby-test")
        };
        let manager = Manager::new(client.clone(), ManagerOptions { lease: Some(lease), ..ManagerOptions::default() })?;
        struct Signed(&'static str, Diary);
        impl Reconciler for Signed {
            async fn reconcile(&self, _: &Context, key: &ObjectKey) -> Result<Action, Error> {
                self.1.note(format!("{} {}", self.0, key.name));
                Ok(Action::Done)
            }
        }
        manager.controller::<ResourceQuota>("signed").reconcile_with(Signed(identity, diary.clone()));
        let stop = CancellationToken::new();
        let running = tokio::spawn({
            let (manager, stop) = (manager.clone(), stop.clone());
            async move { manager.run(stop).await }
        });
        Ok((manager, stop, running))
    };
    let (_first, stop_first, first_runs) = start("first")?;
    tokio::time::sleep(SOON).await;
    let (second, stop_second, second_runs) = start("second")?;
    let maps: Api<ResourceQuota> = Api::default_namespaced(client.clone());
    maps.create(&PostParams::default(), &quota("a")).await?;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(diary.take(), ["first a"]);
    let informers = second.inspection().informers();
    assert!(informers.iter().all(|running| running.informer.synced && running.informer.objects == 1), "{informers:?}");

    let begun = tokio::time::Instant::now();
    stop_first.cancel();
    first_runs.await??;
    second.leadership().acquired().await;
    assert!(begun.elapsed() <= Duration::from_millis(2_400), "handed over in {:?}", begun.elapsed());
    tokio::time::sleep(SOON).await;
    assert_eq!(diary.take(), ["second a"], "all is looked at once by the new leader");
    maps.create(&PostParams::default(), &quota("b")).await?;
    tokio::time::sleep(SOON).await;
    assert_eq!(diary.take(), ["second b"]);
    stop_second.cancel();
    second_runs.await??;
    Ok(())
}

/// Makes one pod for every quota that has none, by what the cache shows.
struct OnePodEach {
    quotas: Lister<Typed<ResourceQuota>>,
    pods: Lister<Typed<Pod>>,
}

steersman_runtime::reasons! {
    /// Why pods are made.
    enum Why {
        /// There is none.
        NoPod => "there is no pod",
    }
}

impl Reconciler for OnePodEach {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(quota) = self.quotas.get(key) else { return Ok(Action::Done) };
        let app = |pod: &Typed<Pod>| pod.metadata.labels.as_ref().and_then(|labels| labels.get("app")).cloned();
        let is_ours = |pod: &Typed<Pod>| app(pod).as_deref() == Some(&key.name);
        if self.pods.namespace(&key.namespace).filter(is_ours).is_empty() {
            let mut pod = objects::pod("", &key.name);
            pod.metadata.name = None;
            pod.metadata.generate_name = Some(format!("{}-", key.name));
            pod.metadata.namespace = Some(key.namespace.to_string());
            cx.writer.on_behalf_of(View::meta(&*quota)).create_object(&pod, &Why::NoPod).await?;
        }
        Ok(Action::Done)
    }
}

fn add_one_pod_each(manager: &Manager) {
    let reconciler = OnePodEach { quotas: manager.lister(), pods: manager.lister() };
    manager.controller::<ResourceQuota>("one-pod-each").owns::<Pod>().reconcile_with(reconciler);
}

/// A manager of its own, with a lease, that runs until it is stopped.
fn run_one_pod_each(client: kube::Client, identity: &str) -> Result<(Manager, Stop), Failure> {
    let lease = LeaseOptions {
        identity: Some(identity.into()),
        release_on_exit: true,
        ..LeaseOptions::new("default", "one-pod-each")
    };
    let manager = Manager::new(client, ManagerOptions { lease: Some(lease), ..ManagerOptions::default() })?;
    add_one_pod_each(&manager);
    let stop = CancellationToken::new();
    let running = tokio::spawn({
        let (manager, stop) = (manager.clone(), stop.clone());
        async move { manager.run(stop).await }
    });
    Ok((manager, Stop(stop, running)))
}

struct Stop(CancellationToken, tokio::task::JoinHandle<Result<(), ManagerError>>);

impl Stop {
    async fn now(self) -> Result<(), Failure> {
        self.0.cancel();
        Ok(self.1.await??)
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_whose_api_server_lags_makes_nothing_twice() -> Result<(), Failure> {
    for lag in [0, 1, 10] {
        let cluster = TestCluster::builder().start().await?;
        cluster.faults().on(Verb::Watch, "pods").happens(Fault::Lag(Duration::from_secs(lag)));
        let (_, stop_first) = run_one_pod_each(cluster.client(), "first")?;
        cluster.advance(SOON).await;
        let (second, stop_second) = run_one_pod_each(cluster.faulty_client(), "second")?;
        cluster.advance(Duration::from_secs(30)).await;
        for n in 0..3 {
            cluster.create(quota(&format!("q{n}"))).await?;
        }
        cluster.advance(Duration::from_millis(100)).await;
        stop_first.now().await?;
        second.leadership().acquired().await;
        let pods = cluster.api::<Pod>();
        let count = async || pods.list(&ListParams::default()).await.map(|pods| pods.items.len());
        assert_eq!(count().await?, 3);
        cluster.create(quota("later")).await?;
        cluster.advance(Duration::from_secs(120)).await;
        assert_eq!(count().await?, 4, "with a lag of {lag} s, one pod each");
        stop_second.now().await?;
        cluster.stop().await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_may_not_be_read_stalls_nobody_else_and_health_says_so() -> Result<(), Failure> {
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
    let ready = || cluster.manager().health().report(Probe::Readyz, &Ask { verbose: true, reasons: Reasons::Told, ..Ask::default() });
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
    let held = |cluster: &TestCluster| cluster.manager().inspection().informers().iter().map(|i| i.informer.objects).sum::<usize>();
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

//! Of several managers, one works.

use std::time::Duration;

use http::StatusCode;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Pod, ResourceQuota};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use steersman_apiserver::ApiServer;
use steersman_base::{Clock, ObjectKey};
use steersman_informer::{InformerFactory, Selection};
use steersman_runtime::client::{ClientError, Patch as ClientPatch, Query};
use steersman_runtime::{
    Action, Context, Error, Leadership, Manager, ManagerError, ManagerOptions, Reconciler, handler,
};
use steersman_testing::{Failure, Fault, TestCluster, Verb};
use tokio::time::Instant;

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn a_standby_is_warm_and_takes_over_without_a_full_list() -> Result<(), Failure> {
    let server = ApiServer::new(steersman_apiserver::Options::default().clock(Clock::default()));
    let client = kube::Client::new(server.clone(), "default");
    let diary = Diary::default();
    let start = |identity: &'static str| -> Result<_, Failure> {
        let options = ManagerOptions::default().lease(lease(identity));
        let manager = Manager::new(client.clone(), options)?;
        struct Signed(&'static str, Diary);
        impl Reconciler for Signed {
            async fn reconcile(&self, _: &Context, key: &ObjectKey) -> Result<Action, Error> {
                self.1.note(format!("{} {}", self.0, key.name));
                Ok(Action::Done)
            }
        }
        manager.controller::<ResourceQuota>("signed").reconcile_with(Signed(identity, diary.clone()));
        Ok(Running::start(manager))
    };
    let first = start("first")?;
    tokio::time::sleep(SOON).await;
    let second = start("second")?;
    let maps: Api<ResourceQuota> = Api::default_namespaced(client.clone());
    maps.create(&PostParams::default(), &quota("a")).await?;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(diary.take(), ["first a"]);
    let informers = second.manager.inspection().informers();
    assert!(informers.iter().all(|running| running.informer.synced && running.informer.objects == 1), "{informers:?}");

    let begun = Instant::now();
    first.stop().await?;
    second.manager.leadership().acquired().await;
    assert!(begun.elapsed() <= Duration::from_millis(2_400), "handed over in {:?}", begun.elapsed());
    tokio::time::sleep(SOON).await;
    assert_eq!(diary.take(), ["second a"], "all is looked at once by the new leader");
    maps.create(&PostParams::default(), &quota("b")).await?;
    tokio::time::sleep(SOON).await;
    assert_eq!(diary.take(), ["second b"]);
    second.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_whose_api_server_lags_makes_nothing_twice() -> Result<(), Failure> {
    for lag in [0, 1, 10] {
        let cluster = TestCluster::builder().start().await?;
        cluster.faults().on(Verb::Watch, "pods").happens(Fault::Lag(Duration::from_secs(lag)));
        let first = run_one_pod_each(cluster.client(), "first")?;
        cluster.advance(SOON).await;
        let second = run_one_pod_each(cluster.faulty_client(), "second")?;
        cluster.advance(Duration::from_secs(30)).await;
        for n in 0..3 {
            cluster.create(quota(&format!("q{n}"))).await?;
        }
        cluster.advance(Duration::from_millis(100)).await;
        first.stop().await?;
        second.manager.leadership().acquired().await;
        let pods = cluster.api::<Pod>();
        let count = async || pods.list(&ListParams::default()).await.map(|pods| pods.items.len());
        assert_eq!(count().await?, 3);
        cluster.create(quota("later")).await?;
        cluster.advance(Duration::from_secs(120)).await;
        assert_eq!(count().await?, 4, "with a lag of {lag} s, one pod each");
        second.stop().await?;
        cluster.stop().await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_cache_of_another_cluster_does_not_keep_a_new_leader_from_work() -> Result<(), Failure> {
    let (first, here) = embedded(ManagerOptions::default().lease(lease("first")))?;
    let first = Running::start(first);
    first.manager.leadership().acquired().await;
    Api::default_namespaced(here.clone()).create(&PostParams::default(), &quota("a")).await?;

    let (_, elsewhere) = embedded(ManagerOptions::default())?;
    let others = InformerFactory::new(elsewhere.clone());
    let quotas = others.typed::<ResourceQuota>(Selection::everything());
    others.start();
    let diary = Diary::default();
    let second = Manager::new(here, ManagerOptions::default().lease(lease("second")))?;
    let builder = second.controller::<ResourceQuota>("both").watch(&quotas, handler::object());
    builder.reconcile_with(Noting(diary.clone()));
    let second = Running::start(second);
    tokio::time::sleep(Duration::from_secs(30)).await;
    first.stop().await?;
    second.manager.leadership().acquired().await;
    tokio::time::sleep(SOON).await;
    assert_eq!(diary.take(), ["a"], "that cluster has no such object, and never will");
    Api::default_namespaced(elsewhere).create(&PostParams::default(), &quota("b")).await?;
    tokio::time::sleep(SOON).await;
    assert_eq!(diary.take(), ["b"]);
    second.stop().await?;
    others.stop().await;
    Ok(())
}

/// How many pods the controllers asked for; leaders record events, too.
fn pods_written(cluster: &TestCluster) -> usize {
    cluster.last_writes().iter().filter(|write| write.resource == "pods").count()
}

/// When a lease that is not renewed is lost, at the latest; and when it is polled.
const DEADLINE: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_secs(2);

#[tokio::test(start_paused = true)]
async fn a_leader_that_may_not_renew_ends_and_writes_nothing_after_its_deadline() -> Result<(), Failure> {
    let cluster = TestCluster::builder().start().await?;
    let running = run_one_pod_each(cluster.faulty_client(), "one")?;
    running.manager.leadership().acquired().await;
    cluster.create(quota("before")).await?;
    cluster.advance(SOON).await;
    assert_eq!(pods_written(&cluster), 1, "{:?}", cluster.last_writes());

    for verb in [Verb::Update, Verb::Patch, Verb::Get] {
        cluster.faults().on(verb, "leases").refuse(StatusCode::SERVICE_UNAVAILABLE);
    }
    let refused = Instant::now();
    cluster.advance(DEADLINE / 2).await;
    cluster.create(quota("in-time")).await?;
    cluster.advance(SOON).await;
    assert_eq!(pods_written(&cluster), 2, "it leads until its deadline");
    running.manager.leadership().lost().await;
    assert!(refused.elapsed() <= DEADLINE, "{:?}", refused.elapsed());
    cluster.create(quota("too-late")).await?;
    let ended = running.task.await?;
    assert!(matches!(ended, Err(ManagerError::LeadershipLost)), "{ended:?}");
    assert!(refused.elapsed() <= DEADLINE + SOON, "nobody is waited for: {:?}", refused.elapsed());
    cluster.advance(Duration::from_secs(60)).await;
    assert_eq!(pods_written(&cluster), 2, "{:?}", cluster.last_writes());
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn what_was_decided_in_time_and_is_sent_too_late_is_not_sent() -> Result<(), Failure> {
    /// Decides, thinks for a minute, and writes.
    struct Slow(Diary);
    impl Reconciler for Slow {
        async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
            tokio::time::sleep(Duration::from_secs(20)).await;
            let pod = steersman_testing::objects::pod("late");
            let owner = steersman_base::Meta { namespace: key.namespace.clone(), ..steersman_base::Meta::default() };
            let sent = cx.writer.on_behalf_of(&owner).create_object(&pod, &Why::NoPod).await;
            self.0.note(sent.map_or_else(|error| error.to_string(), |_| "sent".to_owned()));
            Ok(Action::Done)
        }
    }
    let cluster = TestCluster::builder().start().await?;
    let diary = Diary::default();
    let options = ManagerOptions::default().lease(lease("slow"));
    let manager = Manager::new(cluster.faulty_client(), options)?;
    manager.controller::<ResourceQuota>("slow").reconcile_with(Slow(diary.clone()));
    let running = Running::start(manager);
    running.manager.leadership().acquired().await;
    cluster.create(quota("a")).await?;
    cluster.advance(SOON).await;
    cluster.faults().on(Verb::Update, "leases").refuse(StatusCode::FORBIDDEN);
    let ended = running.task.await?;
    assert!(matches!(ended, Err(ManagerError::LeadershipLost)), "{ended:?}");
    let said = diary.take();
    assert!(said.len() == 1 && said[0].contains("lead"), "the pass in flight was waited for, and refused: {said:?}");
    assert!(pods_written(&cluster) == 0, "{:?}", cluster.last_writes());
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_stolen_ends_the_manager_and_stays_the_thiefs() -> Result<(), Failure> {
    let cluster = TestCluster::builder().start().await?;
    let running = run_one_pod_each(cluster.faulty_client(), "one")?;
    running.manager.leadership().acquired().await;
    cluster.advance(SOON).await;
    let leases: Api<Lease> = Api::namespaced(cluster.client(), "default");
    let theft = json!({"spec": {"holderIdentity": "a thief"}});
    leases.patch("lease", &PatchParams::default(), &Patch::Merge(theft)).await?;
    let stolen = Instant::now();
    let ended = running.task.await?;
    assert!(matches!(ended, Err(ManagerError::LeadershipLost)), "{ended:?}");
    assert!(stolen.elapsed() <= RETRY + SOON, "{:?}", stolen.elapsed());
    cluster.create(quota("after")).await?;
    cluster.advance(Duration::from_secs(60)).await;
    assert!(pods_written(&cluster) == 0, "{:?}", cluster.last_writes());
    let holder = leases.get("lease").await?.spec.and_then(|spec| spec.holder_identity);
    assert_eq!(holder.as_deref(), Some("a thief"), "what is another's is not given back");
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_dropped_run_does_not_keep_the_lease() -> Result<(), Failure> {
    let cluster = TestCluster::builder().start().await?;
    let first = run_one_pod_each(cluster.client(), "first")?;
    first.manager.leadership().acquired().await;
    let second = run_one_pod_each(cluster.client(), "second")?;
    cluster.advance(Duration::from_secs(60)).await;
    assert!(!second.manager.leadership().is_leading());
    first.task.abort();
    let runs_out = Duration::from_secs(15) + 2 * RETRY;
    tokio::time::timeout(runs_out, second.manager.leadership().acquired()).await?;
    second.stop().await?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_shadow_decides_everything_and_sends_nothing() -> Result<(), Failure> {
    let cluster = TestCluster::builder()
        .manager_options(|options| {
            options.shadow = true;
            options.lease = Some(lease("shadow"));
        })
        .with(add_one_pod_each)
        .start()
        .await?;
    let leader = run_one_pod_each(cluster.client(), "leader")?;
    leader.manager.leadership().acquired().await;
    // The shadow sees it too, and sees no pod in that moment.
    cluster.faults().on(Verb::Watch, "pods").happens(Fault::Lag(SOON));
    let made = cluster.create(quota("a")).await?;
    cluster.advance(Duration::from_secs(120)).await;
    assert!(leader.manager.leadership().is_leading(), "a shadow does not take the lease from who leads");
    assert!(cluster.last_writes().is_empty(), "neither writes nor events: {:?}", cluster.last_writes());
    let log = cluster.manager().decisions().for_key("one-pod-each", &ObjectKey::new(cluster.namespace(), "a"));
    let reported = log.first().map(ToString::to_string).unwrap_or_default();
    for want in ["NoPod: there is no pod", "create pods", "not sent (shadow mode)"] {
        assert!(reported.contains(want), "{want} is not in: {reported}");
    }
    let version = made.metadata.resource_version.unwrap_or_default();
    assert!(reported.contains(&version), "what was seen is reported, too: {reported}");
    leader.stop().await?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn the_client_of_a_standby_reads_and_does_not_write() -> Result<(), Failure> {
    let cluster = TestCluster::builder().start().await?;
    let first = run_one_pod_each(cluster.client(), "first")?;
    first.manager.leadership().acquired().await;
    let second = run_one_pod_each(cluster.faulty_client(), "second")?;
    let made = cluster.create(quota("a")).await?;
    cluster.advance(SOON).await;
    let client = second.manager.client();
    let key = ObjectKey::new(cluster.namespace(), "a");
    for client in [client.clone(), client.live()] {
        let read = client.get::<ResourceQuota>(&key).await?;
        assert_eq!(read.object().metadata.uid, made.metadata.uid, "reads need no lease");
        assert_eq!(client.list::<Pod>(&Query::namespace(cluster.namespace())).await?.len(), 1);
    }
    let mut namesake = quota("b");
    namesake.metadata.namespace = Some(cluster.namespace().to_owned());
    let merge = json!({"metadata": {"labels": {"a": "b"}}});
    let refused = [
        client.objects().create(&namesake).await.map(drop),
        client.objects().update(&made).await.map(drop),
        client.objects::<ResourceQuota>().patch(&key, ClientPatch::Merge(&merge)).await.map(drop),
        client.objects::<ResourceQuota>().delete(&key, &Default::default()).await.map(drop),
        client
            .objects::<ResourceQuota>()
            .delete_collection(&Query::namespace(cluster.namespace()), &Default::default())
            .await,
    ];
    for (number, outcome) in refused.into_iter().enumerate() {
        assert!(matches!(&outcome, Err(ClientError::NotLeader(_))), "write {number}: {outcome:?}");
        let text = outcome.map_err(|error| error.to_string()).unwrap_err();
        assert!(text.contains("lead"), "{text}");
    }
    assert_eq!(
        cluster.api::<ResourceQuota>().get("a").await?.metadata.resource_version,
        made.metadata.resource_version
    );
    let always = client.clone().led_by(Leadership::always());
    always.objects().create(&namesake).await?;
    first.stop().await?;
    second.manager.leadership().acquired().await;
    client.objects::<ResourceQuota>().delete(&key, &Default::default()).await?;
    second.stop().await?;
    cluster.stop().await
}

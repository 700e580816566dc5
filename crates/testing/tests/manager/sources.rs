//! Where keys come from.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, ResourceQuota, Secret};
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use steersman_base::ObjectKey;
use steersman_informer::{Change, Lister, Selection, Typed};
use steersman_model::View;
use steersman_runtime::handler::{self, Keys};
use steersman_runtime::health::Probe;
use steersman_runtime::predicate::labels_changed;
use steersman_runtime::source::{self, Watch};
use steersman_runtime::{Action, Context, Error, Manager, ManagerOptions, Reconciler};
use steersman_testing::objects::{self, ObjectBuilder as _};
use steersman_testing::{Failure, Fault, TestCluster, Verb};
use steersman_workqueue::Priority;

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn sources_handlers_and_predicates_choose_what_is_looked_at() -> Result<(), Failure> {
    let diary = Diary::default();
    let noted = diary.clone();
    let cluster = TestCluster::builder()
        .with(move |manager| {
            let secrets = manager.informers().typed::<Secret>(Selection::everything());
            let named = |change: &Change<Typed<Secret>>| {
                let meta = &change.object().metadata;
                let of = meta.annotations.as_ref().and_then(|notes| notes.get("of")).cloned().unwrap_or_default();
                ObjectKey::new(meta.namespace.as_deref().unwrap_or_default(), &of)
            };
            let typed = |change: &Change<Typed<Secret>>| change.object().type_.as_deref() != Some("ignored/type");
            manager
                .controller::<ResourceQuota>("chooser")
                .filter_all(labels_changed())
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

    let mut pod = objects::pod("child");
    pod.metadata.owner_references = Some(vec![objects::controller_ref(&owner)]);
    cluster.create(pod).await?;
    cluster.create(objects::pod("stranger")).await?;
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
async fn a_filter_goes_for_main_objects_and_leaves_owned_ones_alone() -> Result<(), Failure> {
    let diary = Diary::default();
    let noted = diary.clone();
    let cluster = TestCluster::builder()
        .with(move |manager| {
            let controller = manager.controller::<ResourceQuota>("main-only").filter(labels_changed());
            controller.owns::<Secret>().reconcile_with(Noting(noted.clone()));
        })
        .start()
        .await?;
    let owner = cluster.create(quota("main")).await?;
    let mut secret = Secret { metadata: objects::named("owned"), ..Secret::default() };
    secret.metadata.owner_references = Some(vec![objects::controller_ref(&owner)]);
    cluster.create(secret).await?;
    cluster.advance(SOON).await;
    diary.take();

    let spec = Patch::Merge(json!({"spec": {"hard": {"pods": "5"}}}));
    cluster.api::<ResourceQuota>().patch("main", &PatchParams::default(), &spec).await?;
    cluster.advance(SOON).await;
    assert!(diary.take().is_empty(), "no label of the main object changed");
    let data = Patch::Merge(json!({"stringData": {"a": "b"}}));
    cluster.api::<Secret>().patch("owned", &PatchParams::default(), &data).await?;
    cluster.advance(SOON).await;
    assert_eq!(diary.take(), ["main"], "no label of the Secret changed, and it is not filtered");
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

    let (sender, sent) = source::channel(|quota: &Typed<ResourceQuota>| View::meta(quota).key());
    controller.add_source(sent);
    let meta = steersman_base::Meta { name: "from-outside".into(), ..steersman_base::Meta::default() };
    sender.send(Arc::new(Typed::new(meta, quota("from-outside")))).await?;
    cluster.advance(SOON).await;
    assert_eq!(diary.take(), ["from-outside"]);

    cluster.create(objects::pod("early")).await?;
    let pods = cluster.manager().informers().typed::<Pod>(Selection::everything());
    controller.add_source(Watch::new(&pods, handler::object()));
    cluster.advance(SOON).await;
    assert_eq!(diary.take(), ["early"], "who comes late gets the state first");
    cluster.create(objects::pod("later")).await?;
    cluster.advance(SOON).await;
    assert_eq!(diary.take(), ["later"]);
    let kinds: Vec<_> =
        cluster.manager().inspection().informers().iter().map(|i| i.informer.target.to_string()).collect();
    assert_eq!(kinds.len(), 2, "{kinds:?}");
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn the_first_pass_comes_after_all_caches_are_filled_and_delivered() -> Result<(), Failure> {
    const PODS: usize = 50;
    /// Notes how many pods it finds in the cache, and how many the handler received.
    struct Counting(Diary, Lister<Typed<Pod>>, Arc<AtomicUsize>);
    impl Reconciler for Counting {
        async fn reconcile(&self, _: &Context, _: &ObjectKey) -> Result<Action, Error> {
            self.0.note(format!("{} cached, {} received", self.1.list().len(), self.2.load(Ordering::Relaxed)));
            Ok(Action::Done)
        }
    }
    let cluster = TestCluster::builder().start().await?;
    cluster.create(quota("a")).await?;
    for n in 0..PODS {
        cluster.create(objects::pod(&format!("p{n}")).app("p")).await?;
    }
    for verb in [Verb::List, Verb::Watch] {
        cluster.faults().on(verb, "pods").happens(Fault::Delay(Duration::from_secs(5)));
    }
    let manager = Manager::new(cluster.faulty_client(), ManagerOptions::default())?;
    let diary = Diary::default();
    let reported = Arc::new(AtomicUsize::new(0));
    let count = reported.clone();
    let counted = move |_: &Change<Typed<Pod>>| {
        count.fetch_add(1, Ordering::Relaxed);
        Keys::default()
    };
    let counting = Counting(diary.clone(), manager.lister(), reported);
    manager.controller::<ResourceQuota>("counting").watches::<Pod>(counted).reconcile_with(counting);
    let running = Running::start(manager);
    cluster.advance(Duration::from_secs(4)).await;
    assert!(diary.take().is_empty(), "the pods are not there yet");
    cluster.advance(Duration::from_secs(30)).await;
    assert_eq!(diary.take(), [format!("{PODS} cached, {PODS} received")]);
    running.stop().await?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn what_is_of_low_priority_waits_behind_what_happens_now() -> Result<(), Failure> {
    /// Takes a second for each key.
    struct Slow(Diary);
    impl Reconciler for Slow {
        async fn reconcile(&self, _: &Context, key: &ObjectKey) -> Result<Action, Error> {
            self.0.note(key.name.to_string());
            tokio::time::sleep(SOON).await;
            Ok(Action::Done)
        }
    }
    let diary = Diary::default();
    let noted = diary.clone();
    let slow = move |manager: &Manager| {
        let pods = manager.informers().typed::<Pod>(Selection::everything());
        let builder = manager.controller::<ResourceQuota>("slow");
        let pods = Watch::new(&pods, handler::object()).priority(Priority::Background);
        builder.source(pods).reconcile_with(Slow(noted.clone()));
    };
    let cluster = TestCluster::builder().with(slow).start().await?;
    cluster.create(quota("first")).await?;
    cluster.advance(SOON / 2).await;
    for name in ["p0", "p1"] {
        cluster.create(objects::pod(name)).await?;
    }
    cluster.create(quota("second")).await?;
    cluster.advance(Duration::from_secs(10)).await;
    assert_eq!(diary.take(), ["first", "second", "p0", "p1"]);
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_source_that_panics_stops_no_other_source_and_health_reports_it() -> Result<(), Failure> {
    let diary = Diary::default();
    let noted = diary.clone();
    let cluster = TestCluster::builder()
        .with(move |manager| {
            let builder = manager.controller::<ResourceQuota>("deaf");
            builder
                .source(source::task(|feed, _| async move {
                    feed.trigger(ObjectKey::cluster("told"));
                    tokio::time::sleep(SOON).await;
                    panic!("on purpose");
                }))
                // Before there is a future to catch.
                .source(source::task(|_, _| -> std::future::Ready<()> { panic!("at once") }))
                .source(source::ticker(Duration::from_secs(100), || vec![ObjectKey::cluster("tick")]))
                .reconcile_with(Noting(noted.clone()));
            manager.controller::<Secret>("other").reconcile_with(Noting(noted.clone()));
        })
        .start()
        .await?;
    cluster.advance(Duration::from_secs(10)).await;
    assert_eq!(diary.take(), ["told"]);
    cluster.create(quota("a")).await?;
    cluster.create(Secret { metadata: objects::named("b"), ..Secret::default() }).await?;
    cluster.advance(Duration::from_secs(100)).await;
    let mut seen = diary.take();
    seen.sort_unstable();
    assert_eq!(seen, ["a", "b", "tick"], "other sources and other controllers go on");
    for asked in Probe::ALL {
        let report = probe(cluster.manager(), asked);
        let want = "[-]deaf failed: one of its sources panicked, and sends nothing any more: at once";
        assert!(!report.passed && report.text.contains(want), "{asked:?}: {}", report.text);
        assert!(report.text.contains("[+]other ok"), "{asked:?}: {}", report.text);
    }
    cluster.stop().await
}

//! What a `TestCluster` promises to tests.

use std::future;
use std::time::Duration;

use futures::future::try_join_all;
use http::StatusCode;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use serde_json::json;
use steersman_base::ObjectKey;
use steersman_informer::{Lister, Typed};
use steersman_model::View;
use steersman_model::core::PodView;
use steersman_runtime::__internal::descriptor::Built;
use steersman_runtime::__internal::descriptor::{BuiltIn, Disabled, Row};
use steersman_runtime::{
    Action, Context, Descriptor, Error, LeaseOptions, Manager, ManagerOptions, Patch, Reconciler, reasons,
};
use steersman_testing::objects::{self, ObjectBuilder as _, PodBuilder as _, WorkloadBuilder as _};
use steersman_testing::{Failure, TestCluster, Verb};

reasons! {
    enum Why {
        NoLabel => "it has no label",
    }
}

/// Labels each pod.
struct Labels(Lister<Typed<Pod>>);

impl Reconciler for Labels {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(pod) = self.0.get(key) else { return Ok(Action::Done) };
        let resource = steersman_informer::resource_of::<Pod>();
        let label = json!({"metadata": {"labels": {"seen": "yes"}}});
        cx.writer.on_behalf_of(View::meta(&*pod)).patch(&resource, key, Patch::Merge(&label), &Why::NoLabel).await?;
        Ok(Action::Done)
    }
}

#[tokio::test(start_paused = true)]
async fn a_disabled_controller_fails_the_cluster_at_once_with_its_reason() {
    const PICKY: Descriptor = Descriptor::built_in(
        Row::new,
        &BuiltIn {
            name: "picky",
            needs: &[],
            options: |_| (),
            build: |_, ()| Err::<Built, _>(Disabled("it has no certificate".to_owned())),
        },
    );
    let failure = TestCluster::builder().controllers(&[PICKY]).start().await.err().expect("it is disabled");
    assert_eq!(format!("{failure:?}"), "the controller picky is disabled: it has no certificate");
}

#[tokio::test(start_paused = true)]
async fn a_wait_returns_the_right_state_or_shows_the_last_one() -> Result<(), Failure> {
    let cluster = TestCluster::builder().start().await?;
    let mut looks = 0..;
    cluster.until_eq("a third look", || future::ready(Ok(looks.next().unwrap_or(0))), 2).await?;
    let seen = cluster.until_right("a fifth look", || future::ready(Ok(looks.next().unwrap_or(0))), |n| *n > 3).await?;
    assert_eq!(seen, 4);
    let never = cluster.until_eq("seven", async || Ok(6), 7).await.expect_err("it is six");
    assert!(format!("{never:?}").starts_with("never happened: seven; seen last: 6"), "{never:?}");
    cluster.create(objects::pod("web")).await?;
    let stays = cluster.until_gone::<Pod>("web").await.expect_err("nobody deletes it");
    assert!(format!("{stays:?}").starts_with("never happened: Pod web is gone"), "{stays:?}");
    cluster.stop().await
}

#[test]
fn objects_are_what_is_said_of_them() {
    let web = objects::replica_set("web").replicas(3).image("web:2").uid("u-1");
    let seen = serde_json::to_value(&web).expect("JSON");
    assert_eq!(seen["spec"]["replicas"], 3);
    assert_eq!(seen["spec"]["selector"]["matchLabels"], seen["spec"]["template"]["metadata"]["labels"]);
    assert_eq!(seen["spec"]["template"]["spec"]["containers"][0]["image"], "web:2");
    let pod = objects::pod("a").app("web").ready().owned_by(&web).finalizer("x").terminating(objects::LONG_AGO);
    let view: PodView = pod.view();
    assert!(view.is_ready() && view.meta().is_terminating());
    assert_eq!(view.meta().controller().map(|owner| owner.uid.to_string()), Some("u-1".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn hundreds_of_clusters_live_in_one_process_and_know_nothing_of_each_other() -> Result<(), Failure> {
    let clusters = try_join_all((0..300).map(|number| async move {
        let cluster = TestCluster::builder().start().await?;
        cluster.create(objects::pod(&format!("pod-{number}")).app("web")).await?;
        Ok::<_, Failure>(cluster)
    }))
    .await?;
    for (number, cluster) in clusters.iter().enumerate() {
        let pods = cluster.api::<Pod>().list(&ListParams::default()).await?;
        let names: Vec<_> = pods.items.iter().filter_map(|pod| pod.metadata.name.clone()).collect();
        assert_eq!(names, [format!("pod-{number}")]);
    }
    try_join_all(clusters.into_iter().map(TestCluster::stop)).await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn time_is_the_tests_own() -> Result<(), Failure> {
    let cluster = TestCluster::builder().start().await?;
    let before = cluster.clock().now();
    let started = tokio::time::Instant::now();
    cluster.advance(Duration::from_secs(86_400)).await;
    let pod = cluster.create(objects::pod("late").app("web")).await?;
    assert_eq!(cluster.clock().now().since(before), Duration::from_secs(86_400));
    assert_eq!(started.elapsed(), Duration::from_secs(86_400), "timers and the clock agree");
    let created = pod.metadata.creation_timestamp.map(|time| time.0.as_second());
    assert_eq!(created, Some(cluster.clock().now().unix()), "and so does the server");
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn faults_never_happen_to_the_tests_own_requests() -> Result<(), Failure> {
    let cluster = TestCluster::builder().start().await?;
    cluster.faults().on(Verb::Create, "pods").refuse(StatusCode::INTERNAL_SERVER_ERROR);
    cluster.create(objects::pod("web")).await?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_failure_shows_the_world() -> Result<(), Failure> {
    let cluster = TestCluster::builder().start().await?;
    cluster.create(objects::pod("lonely").app("web")).await?;
    let never = cluster.until("a miracle", || async { Ok(Err::<(), _>("nothing".to_owned())) }).await;
    let text = format!("{:?}", never.err().ok_or_else(|| Failure::new("there are no miracles"))?);
    assert!(text.contains("never happened: a miracle; seen last: nothing"), "{text}");
    assert!(text.contains("lonely"), "{text}");
    let pods = cluster.api::<Pod>();
    let failed = cluster.until_right("the pod has a name", async || Ok(pods.get("missing").await?), |_| true).await;
    let text = format!("{:?}", failed.err().ok_or_else(|| Failure::new("there is no such pod"))?);
    assert!(text.starts_with("cannot decide: the pod has a name; looking failed: "), "{text}");
    assert!(text.contains("not found") && text.contains("lonely"), "{text}");
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_failure_shows_codes_failed_passes_and_how_the_manager_ended() -> Result<(), Failure> {
    let writing = |manager: &Manager| {
        let pods = manager.lister::<Pod>();
        manager.controller::<Pod>("labels").reconcile_with(Labels(pods));
    };
    let lease = |options: &mut ManagerOptions| options.lease = Some(LeaseOptions::new("default", "test"));
    let cluster = TestCluster::builder().with(writing).manager_options(lease).start().await?;
    cluster.faults().on(Verb::Patch, "pods").refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE);
    cluster.create(objects::pod("web")).await?;
    cluster.settle().await?;
    assert_eq!(cluster.manager_ended(), None);
    // Longer than the lease can do without being renewed.
    cluster.faults().server_goes_away();
    cluster.advance(Duration::from_secs(60)).await;
    cluster.faults().server_is_back();
    let never = cluster.until("a label", || async { Ok(Err::<(), _>("none".to_owned())) }).await;
    let text = format!("{:?}", never.err().ok_or_else(|| Failure::new("nobody can have labelled it"))?);
    assert!(text.contains("has ended, so nobody reconciles: leaderelection lost"), "{text}");
    assert!(text.contains("pods/web: 415"), "{text}");
    assert!(text.contains("failed: the server refused: refused with 415"), "{text}");
    assert!(cluster.manager_ended().is_some());
    for outcome in [cluster.settle().await, cluster.expect_quiet(Duration::from_secs(1)).await] {
        let text = format!("{:?}", outcome.err().ok_or_else(|| Failure::new("silence proves nothing now"))?);
        assert!(text.starts_with("cannot decide: the controllers"), "{text}");
        assert!(text.contains("leaderelection lost"), "{text}");
    }
    // It ended badly, as it should.
    assert!(cluster.stop().await.is_err());
    Ok(())
}

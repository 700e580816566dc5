//! Autoscalers under faults: what a metric asks for is reached, whatever the answers say.

use std::time::Duration;

use http::StatusCode;
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::json;
use steersman_testing::{Builder, Failure, Fault, Faults, TestCluster, Verb, expect, expect_eq};

use crate::scenarios::horizontal_pod_autoscaler::{
    autoscaler, external, queue, status, until_ready, until_replicas, web, with_nodes,
};
use crate::scenarios::support::controllers::{self, Controller};
use crate::scenarios::support::crash::{Scene, crash_after_each_write};

/// The manager that crashes; the target's own controllers do not.
const CONTROLLERS: &[Controller] = &[controllers::QUICK_AUTOSCALER];

/// Longer than the window after which replicas are removed, and several passes.
const LONG_ENOUGH: Duration = Duration::from_secs(40);

fn targets() -> Builder {
    TestCluster::builder().controllers(&[controllers::DEPLOYMENT, controllers::REPLICA_SET]).nodes(2).metrics()
}

/// The queue grows, and shrinks again.
async fn story(scene: &Scene<'_>) -> Result<(), Failure> {
    let cluster = scene.cluster();
    cluster.create(web(1)).await?;
    until_ready(cluster, 1).await?;
    queue(cluster, "30")?;
    cluster.create(autoscaler("web", json!({ "metrics": external("10") }))).await?;
    until_replicas(cluster, 3).await?;
    until_ready(cluster, 3).await?;
    scene.rest().await?;
    queue(cluster, "10")?;
    until_replicas(cluster, 1).await?;
    until_ready(cluster, 1).await?;
    scene.rest().await?;
    cluster.advance(LONG_ENOUGH).await;
    Ok(())
}

async fn world(cluster: &TestCluster) -> Result<Vec<String>, Failure> {
    let reported = status(cluster, "web").await?;
    let conditions = reported.conditions.unwrap_or_default();
    let conditions: Vec<_> =
        conditions.into_iter().map(|it| format!("{} {} {:?}", it.type_, it.status, it.reason)).collect();
    let replicas = cluster.api::<Deployment>().get("web").await?.spec.replicas;
    Ok(vec![
        format!("{conditions:?}"),
        format!("{replicas:?} of {:?} to {}", reported.current_replicas, reported.desired_replicas),
        format!("scaled: {}, metrics: {:?}", reported.last_scale_time.is_some(), reported.current_metrics),
    ])
}

/// The manager dies between the change of a scale and the status that reports it, and so on.
#[tokio::test(start_paused = true)]
async fn a_crash_after_any_write_of_an_autoscaler_changes_nothing() -> Result<(), Failure> {
    let crashes = crash_after_each_write(targets, CONTROLLERS, story, world).await?;
    expect(crashes >= 4, "two scales, and the statuses that report them", &crashes)
}

/// The answer to a write is lost, or says that it failed though it was made: the target is never scaled too far.
#[tokio::test(start_paused = true)]
async fn writes_of_an_autoscaler_without_an_answer_do_not_overshoot() -> Result<(), Failure> {
    let lies = [Fault::LoseReply, Fault::DoThenRefuse(StatusCode::INTERNAL_SERVER_ERROR)];
    for (lie, lost) in lies.into_iter().flat_map(|lie| [1, 2].map(|lost| (lie.clone(), lost))) {
        let faults = Faults::default();
        faults.on(Verb::Watch, "horizontalpodautoscalers").happens(Fault::Lag(Duration::from_secs(6)));
        faults.on(Verb::Watch, "deployments").happens(Fault::Lag(Duration::from_secs(3)));
        faults.on(Verb::Update, "deployments/scale").nth(lost).happens(lie.clone());
        faults.on(Verb::Update, "horizontalpodautoscalers/status").nth(lost).happens(lie.clone());
        let cluster = with_nodes().faults(&faults).start().await?;
        cluster.create(web(1)).await?;
        until_ready(&cluster, 1).await?;
        queue(&cluster, "30")?;
        cluster.create(autoscaler("web", json!({ "metrics": external("10") }))).await?;
        for _ in 0..20 {
            cluster.advance(Duration::from_secs(2)).await;
            let replicas = cluster.api::<Deployment>().get("web").await?.spec.replicas.unwrap_or_default();
            expect((1..=3).contains(&replicas), "as many as the queue asks for", &replicas)?;
        }
        until_replicas(&cluster, 3).await?;
        until_ready(&cluster, 3).await?;
        queue(&cluster, "10")?;
        until_replicas(&cluster, 1).await?;
        until_ready(&cluster, 1).await?;
        cluster.advance(LONG_ENOUGH).await;
        let reported = status(&cluster, "web").await?;
        expect_eq("replicas", &(reported.current_replicas, reported.desired_replicas), &(Some(1), 1))?;
        cluster.stop().await?;
    }
    Ok(())
}

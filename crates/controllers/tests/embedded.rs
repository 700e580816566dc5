//! The scenarios on the embedded server, under the paused clock.

use std::time::Duration;

use steersman_controllers::replicaset;
use steersman_testing::{Failure, Fault, Faults, TestCluster, Verb, objects};

#[path = "scenarios/replicaset.rs"]
mod replicaset_scenarios;

macro_rules! embedded {
    ($($scenario:ident with $controllers:expr),* $(,)?) => {$(
        #[tokio::test(start_paused = true)]
        async fn $scenario() -> Result<(), Failure> {
            let cluster = TestCluster::builder().controllers($controllers).start().await?;
            replicaset_scenarios::$scenario(&cluster).await?;
            cluster.settle().await?;
            cluster.expect_quiet(Duration::from_secs(600)).await?;
            cluster.stop().await
        }
    )*};
}

embedded! {
    a_deleted_pod_is_replaced_and_status_follows with &[replicaset::DESCRIPTOR],
    scaling_down_deletes_the_surplus_and_keeps_the_ready_ones with &[replicaset::DESCRIPTOR],
    an_orphan_is_adopted_and_a_stranger_is_released with &[replicaset::DESCRIPTOR],
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_never_makes_a_second_pod() -> Result<(), Failure> {
    for lost in 1..=3 {
        // The cache lags, so that it cannot tell by chance what became of the create.
        let faults = Faults::default();
        faults.on(Verb::Watch, "pods").happens(Fault::Lag(Duration::from_secs(1)));
        faults.on(Verb::Create, "pods").nth(lost).lose_reply();
        let cluster = TestCluster::builder().controllers(&[replicaset::DESCRIPTOR]).faults(&faults).start().await?;
        let web = cluster.create(objects::replica_set("web", 3)).await?;
        cluster.settle().await?;
        cluster.pods_of(&web).until_count(3).await?;
        cluster.expect_quiet(Duration::from_secs(600)).await?;
        let creates = cluster.last_writes().iter().filter(|write| write.verb == Verb::Create).count();
        assert_eq!(creates, 3, "reply {lost} was lost, and no pod was asked for twice: {:?}", cluster.last_writes());
        cluster.stop().await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_lagging_cache_never_makes_a_second_pod() -> Result<(), Failure> {
    let faults = Faults::default();
    faults.on(Verb::Watch, "pods").happens(Fault::Lag(Duration::from_secs(3)));
    let cluster = TestCluster::builder().controllers(&[replicaset::DESCRIPTOR]).faults(&faults).start().await?;
    let web = cluster.create(objects::replica_set("web", 3)).await?;
    cluster.settle().await?;
    cluster.pods_of(&web).until_count(3).await?;
    let creates = cluster.last_writes().iter().filter(|write| write.verb == Verb::Create).count();
    assert_eq!(creates, 3, "{:?}", cluster.last_writes());
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_refused_create_is_retried_and_shows_as_a_condition() -> Result<(), Failure> {
    let cluster = TestCluster::builder().controllers(&[replicaset::DESCRIPTOR]).start().await?;
    cluster.faults().on(Verb::Create, "pods").next(4).refuse(http::StatusCode::FORBIDDEN);
    let web = cluster.create(objects::replica_set("web", 3)).await?;
    cluster
        .until("the condition ReplicaFailure", || async {
            let set = cluster.api::<k8s_openapi::api::apps::v1::ReplicaSet>().get("web").await?;
            let conditions = set.status.and_then(|status| status.conditions).unwrap_or_default();
            let seen = format!("{conditions:?}");
            Ok(if conditions.iter().any(|condition| condition.type_.as_deref() == Some("ReplicaFailure")) {
                Ok(())
            } else {
                Err(seen)
            })
        })
        .await?;
    cluster.settle().await?;
    cluster.pods_of(&web).until_count(3).await?;
    let set = cluster.api::<k8s_openapi::api::apps::v1::ReplicaSet>().get("web").await?;
    assert_eq!(set.status.and_then(|status| status.conditions).unwrap_or_default(), [], "it is over");
    cluster.stop().await
}

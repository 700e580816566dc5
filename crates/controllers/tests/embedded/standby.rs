//! A standby manager: its memory is bounded by the live objects, and it misses nothing when it becomes the leader.

use std::time::Duration;

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{DeleteParams, ListParams};
use steersman_runtime::{LeaseOptions, Manager, ManagerOptions};
use steersman_testing::objects::{self, WorkloadBuilder as _};
use steersman_testing::{Failure, TestCluster, expect_eq};

use crate::scenarios::garbage_collector::{config_map, delete, held, owner, until_owned_by};
use crate::scenarios::services::service;
use crate::scenarios::support::beside::Beside;
use crate::scenarios::support::controllers::{self, Controller};

const CONTROLLERS: &[Controller] =
    &[controllers::REPLICA_SET, controllers::GARBAGE_COLLECTOR, controllers::ENDPOINTS, controllers::ENDPOINT_SLICE];
/// The churn of a day, an hour of it in two minutes: what a standby would gather does not depend on how long it takes.
const ROUNDS: usize = 24;
const ROUND: Duration = Duration::from_secs(120);
/// How many objects come and go in a round: each of them is in some queue for a moment.
const CHURN: usize = 4;

fn start(cluster: &TestCluster, identity: &str) -> Result<Beside, Failure> {
    // Long times: polling every two seconds would be most of the work.
    let lease = LeaseOptions::new("default", "lease")
        .identity(identity)
        .lease_duration(Duration::from_secs(900))
        .renew_deadline(Duration::from_secs(600))
        .retry_period(Duration::from_secs(120));
    let options = ManagerOptions::default().clock(cluster.clock().clone()).lease(lease);
    Beside::run(Manager::new(cluster.client(), options)?, CONTROLLERS)
}

/// How many keys wait in all queues of a manager.
fn waiting(manager: &Manager) -> usize {
    manager.inspection().controllers().iter().map(|controller| controller.queue().stats().depth).sum()
}

async fn count<K>(cluster: &TestCluster) -> Result<usize, Failure>
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    Ok(cluster.api::<K>().list(&ListParams::default()).await?.items.len())
}

/// Objects come, own others, and go.
async fn churn(cluster: &TestCluster, round: usize) -> Result<(), Failure> {
    for number in 0..CHURN {
        let name = format!("churn-{round}-{number}");
        let parent = cluster.create(config_map(&name, vec![])).await?;
        cluster.create(config_map(&format!("{name}-child"), vec![owner(&parent)])).await?;
        let mut set = objects::replica_set(&name).replicas(1);
        set.metadata.name = Some(name.clone());
        cluster.create(set).await?;
        cluster.create(service(&name, serde_json::json!({}))).await?;
        cluster.advance(Duration::from_secs(2)).await;
        delete::<ConfigMap>(cluster, &name, DeleteParams::background()).await?;
        delete::<ReplicaSet>(cluster, &name, DeleteParams::background()).await?;
        cluster.delete::<k8s_openapi::api::core::v1::Service>(&name).await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_standby_holds_what_lives_and_misses_nothing_when_it_wins() -> Result<(), Failure> {
    let cluster = TestCluster::builder().start().await?;
    let first = start(&cluster, "first")?;
    first.manager().leadership().acquired().await;
    let second = start(&cluster, "second")?;
    let lasting = cluster.create(config_map("lasting", vec![])).await?;
    cluster.create(config_map("lasting-child", vec![owner(&lasting)])).await?;
    for round in 0..ROUNDS {
        churn(&cluster, round).await?;
        cluster.advance(ROUND).await;
        let lives =
            count::<Pod>(&cluster).await? + count::<ReplicaSet>(&cluster).await? + count::<ConfigMap>(&cluster).await?;
        assert!(lives <= 8, "the leader works: {lives} objects are left");
        let held = waiting(second.manager());
        assert!(held <= lives, "in round {round} the standby has {held} keys of {lives} living objects");
    }

    // The leader dies; before anybody knows, all this happens.
    let garbage = cluster.create(config_map("garbage", vec![])).await?;
    cluster.create(config_map("garbage-child", vec![owner(&garbage)])).await?;
    let left = cluster.create(held(config_map("left", vec![]))).await?;
    cluster.create(config_map("left-child", vec![owner(&left)])).await?;
    cluster.advance(Duration::from_secs(1)).await;
    first.kill().await;
    let mut set = objects::replica_set("web").replicas(3);
    set.metadata.name = Some("web".to_owned());
    cluster.create(set).await?;
    delete::<ConfigMap>(&cluster, "garbage", DeleteParams::background()).await?;
    delete::<ConfigMap>(
        &cluster,
        "left",
        DeleteParams { propagation_policy: Some(kube::api::PropagationPolicy::Orphan), ..DeleteParams::default() },
    )
    .await?;
    let nobody = crate::scenarios::garbage_collector::reference("v1", "ConfigMap", "nobody", 77);
    cluster.create(config_map("of-nobody", vec![nobody])).await?;
    second.manager().leadership().acquired().await;
    cluster.until_gone::<ConfigMap>("garbage-child").await?;
    cluster.until_gone::<ConfigMap>("of-nobody").await?;
    until_owned_by::<ConfigMap>(&cluster, "left-child", &[]).await?;
    cluster.settle().await?;
    cluster.advance(Duration::from_secs(60)).await;
    expect_eq("pods of the set that was made while nobody led", &count::<Pod>(&cluster).await?, &3)?;
    until_owned_by::<ConfigMap>(&cluster, "lasting-child", &[owner(&lasting)]).await?;
    second.stop().await?;
    cluster.stop().await
}

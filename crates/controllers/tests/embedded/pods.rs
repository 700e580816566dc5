//! Pods that no kubelet ends, under faults.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use prometheus::Registry;
use steersman_controllers::pod_garbage_collector;
use steersman_testing::{Failure, Fault, Faults, TestCluster, Verb};

use crate::scenarios::pod_garbage_collector::{CONTROLLERS, create_node, held, names, on_node, release, until_phase};
use crate::scenarios::support::crash::{Scene, crash_after_each_write};

/// A quarantine, and two passes.
const LONG_ENOUGH: Duration = Duration::from_secs(81);

#[tokio::test(start_paused = true)]
async fn a_pod_that_only_a_finalizer_keeps_is_left_alone_and_counted_once() -> Result<(), Failure> {
    let registry = Registry::new();
    let counted = registry.clone();
    let cluster = TestCluster::builder()
        .manager_options(move |options| options.metrics = Some(counted.clone()))
        .controllers(CONTROLLERS)
        .start()
        .await?;
    cluster.create(held("orphan", Some("gone"))).await?;
    cluster.expect_quiet(pod_garbage_collector::QUARANTINE).await?;
    cluster.advance(LONG_ENOUGH - pod_garbage_collector::QUARANTINE).await;
    until_phase(&cluster, "orphan", "Failed").await?;
    cluster.settle().await?;
    cluster.expect_quiet(Duration::from_secs(600)).await?;
    release::<Pod>(&cluster, "orphan").await?;
    cluster.until_gone::<Pod>("orphan").await?;
    let page = cluster.manager().exposition().text();
    let want = format!(
        r#"pod_gc_collector_force_delete_pods_total{{namespace="{}",reason="orphaned"}} 1"#,
        cluster.namespace()
    );
    assert!(page.contains(&want), "{page}");
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_node_that_only_the_cache_misses_keeps_its_pods() -> Result<(), Failure> {
    let faults = Faults::default();
    faults.on(Verb::Watch, "nodes").happens(Fault::Lag(Duration::from_secs(300)));
    let cluster = TestCluster::builder().faults(&faults).controllers(CONTROLLERS).start().await?;
    cluster.settle().await?;
    create_node(&cluster, "new", "True", false).await?;
    cluster.create(on_node("pod", "new")).await?;
    cluster.expect_quiet(LONG_ENOUGH * 3).await?;
    assert_eq!(names(&cluster).await?, ["pod"]);
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_be_asked_for_keeps_its_pods() -> Result<(), Failure> {
    let cluster = crate::scenarios::pod_garbage_collector::cluster().start().await?;
    cluster.faults().on(Verb::Get, "nodes").refuse(http::StatusCode::SERVICE_UNAVAILABLE);
    cluster.create(on_node("pod", "gone")).await?;
    cluster.expect_quiet(LONG_ENOUGH * 2).await?;
    assert_eq!(names(&cluster).await?, ["pod"]);
    cluster.faults().heal();
    cluster.advance(LONG_ENOUGH).await;
    cluster.until_gone::<Pod>("pod").await?;
    cluster.stop().await
}

/// Many nodes are lost at once, and the server is asked about one after the other: meanwhile one is registered again.
#[tokio::test(start_paused = true)]
async fn a_pod_that_comes_to_a_node_that_is_back_is_no_orphan() -> Result<(), Failure> {
    let cluster = crate::scenarios::pod_garbage_collector::cluster().start().await?;
    // The first node is known not to exist at 40 or at 60 s, the second one 25 s later.
    cluster.faults().on(Verb::Get, "nodes").nth(2).delay(Duration::from_secs(25));
    cluster.create(on_node("orphan-a", "node-a")).await?;
    cluster.create(on_node("orphan-b", "node-b")).await?;
    cluster.advance(Duration::from_secs(62)).await;
    assert_eq!(names(&cluster).await?, ["orphan-a", "orphan-b"]);
    create_node(&cluster, "node-a", "True", false).await?;
    cluster.create(on_node("new", "node-a")).await?;
    cluster.until_gone::<Pod>("orphan-b").await?;
    cluster.until_gone::<Pod>("orphan-a").await?;
    cluster.advance(LONG_ENOUGH).await;
    assert_eq!(names(&cluster).await?, ["new"]);
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_any_write_of_the_pod_collector_changes_nothing() -> Result<(), Failure> {
    let story = async |scene: &Scene<'_>| {
        let cluster = scene.cluster();
        cluster.create(held("held", None)).await?;
        cluster.delete::<Pod>("held").await?;
        let ended = format!("{}-dead", cluster.namespace());
        create_node(cluster, &ended, "Unknown", true).await?;
        cluster.create(on_node("stuck", &ended)).await?;
        cluster.delete::<Pod>("stuck").await?;
        cluster.create(on_node("orphan", "gone")).await?;
        // A quarantine that begins anew with another manager.
        cluster.advance(LONG_ENOUGH * 2).await;
        Ok(())
    };
    let world = async |cluster: &TestCluster| {
        let pods = cluster.api::<Pod>().list(&Default::default()).await?.items.into_iter();
        let seen = pods.map(|pod| (pod.metadata.name, pod.status.and_then(|status| status.phase)));
        Ok(seen.map(|pod| format!("{pod:?}")).collect())
    };
    crash_after_each_write(TestCluster::builder, CONTROLLERS, story, world).await?;
    Ok(())
}

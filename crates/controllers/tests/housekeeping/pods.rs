//! Pods that nobody ends, when things go wrong.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, Patch, PatchParams};
use prometheus::Registry;
use serde_json::json;
use steersman_controllers::pod_gc;
use steersman_runtime::{Descriptor, Manager};
use steersman_testing::{Failure, Fault, Faults, TestCluster, Verb, objects};

use crate::crash;
use crate::namespace_scenarios::release;
use crate::pod_gc_scenarios::{create_node, held, on_node, until_gone, until_phase};

const CONTROLLERS: &[Descriptor] = &[pod_gc::DESCRIPTOR];
/// A quarantine, and two passes.
const LONG_ENOUGH: Duration = Duration::from_secs(81);

/// Names of the pods that are there.
pub(crate) async fn pods(cluster: &TestCluster) -> Result<Vec<String>, Failure> {
    let pods = cluster.api::<Pod>().list(&ListParams::default()).await?;
    Ok(pods.items.into_iter().filter_map(|pod| pod.metadata.name).collect())
}

/// Says how far a pod is.
async fn set_phase(cluster: &TestCluster, name: &str, phase: &str, reason: &str) -> Result<(), Failure> {
    let patch = Patch::Merge(json!({ "status": { "phase": phase, "reason": reason } }));
    cluster.api::<Pod>().patch_status(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_pod_on_a_node_that_is_gone_fails_and_goes_after_the_quarantine() -> Result<(), Failure> {
    let registry = Registry::new();
    let counted = registry.clone();
    let cluster = TestCluster::builder()
        .manager_options(move |options| options.metrics = Some(counted.clone()))
        .controllers(CONTROLLERS)
        .start()
        .await?;
    create_node(&cluster, "here", "True", false).await?;
    cluster.create(held("orphan", Some("gone"))).await?;
    cluster.create(on_node("well", "here")).await?;
    cluster.expect_quiet(pod_gc::QUARANTINE).await?;
    cluster.advance(LONG_ENOUGH - pod_gc::QUARANTINE).await;
    let orphan = until_phase(&cluster, "orphan", "Failed").await?;
    let conditions = orphan.status.and_then(|status| status.conditions).unwrap_or_default();
    let target = conditions.iter().find(|condition| condition.type_ == "DisruptionTarget");
    let target = target.ok_or_else(|| Failure::new(format!("{conditions:?}")))?;
    let told = (target.status.as_str(), target.reason.as_deref(), target.message.as_deref());
    assert_eq!(told, ("True", Some("DeletionByPodGC"), Some("PodGC: node no longer exists")));
    cluster.settle().await?;
    // Only a finalizer keeps it: nothing is asked for again.
    cluster.expect_quiet(Duration::from_secs(600)).await?;
    release::<Pod>(&cluster, "orphan").await?;
    until_gone(&cluster, "orphan").await?;
    assert_eq!(pods(&cluster).await?, ["well"]);
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
    assert_eq!(pods(&cluster).await?, ["pod"]);
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_be_asked_for_keeps_its_pods() -> Result<(), Failure> {
    let cluster = TestCluster::builder().controllers(CONTROLLERS).start().await?;
    cluster.faults().on(Verb::Get, "nodes").refuse(http::StatusCode::SERVICE_UNAVAILABLE);
    cluster.create(on_node("pod", "gone")).await?;
    cluster.expect_quiet(LONG_ENOUGH * 2).await?;
    assert_eq!(pods(&cluster).await?, ["pod"]);
    cluster.faults().heal();
    cluster.advance(LONG_ENOUGH).await;
    until_gone(&cluster, "pod").await?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn of_too_many_ended_pods_the_evicted_go_first_and_then_the_oldest() -> Result<(), Failure> {
    let few = |manager: &Manager| {
        manager.set_options(pod_gc::Options { terminated_pod_threshold: 2 });
        let _ = manager.build(&pod_gc::DESCRIPTOR, None);
    };
    let cluster = TestCluster::builder().with(few).start().await?;
    for name in ["oldest", "older", "newer", "evicted", "newest"] {
        cluster.create(objects::pod(name, "web")).await?;
        let (phase, reason) = if name == "evicted" { ("Failed", "Evicted") } else { ("Succeeded", "") };
        set_phase(&cluster, name, phase, reason).await?;
        cluster.advance(Duration::from_secs(2)).await;
    }
    cluster.create(objects::pod("pending", "web")).await?;
    cluster.advance(Duration::from_secs(21)).await;
    cluster.settle().await?;
    assert_eq!(pods(&cluster).await?, ["newer", "newest", "pending"]);
    cluster.expect_quiet(Duration::from_secs(600)).await?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn wherever_the_manager_dies_pods_that_nobody_ends_go() -> Result<(), Failure> {
    let story = async |cluster: &TestCluster| {
        cluster.create(held("held", None)).await?;
        cluster.delete::<Pod>("held").await?;
        let ended = format!("{}-dead", cluster.namespace());
        create_node(cluster, &ended, "Unknown", true).await?;
        cluster.create(on_node("stuck", &ended)).await?;
        cluster.delete::<Pod>("stuck").await?;
        // Until the next pass.
        cluster.advance(Duration::from_secs(21)).await;
        Ok(())
    };
    let world = async |cluster: &TestCluster| {
        let pods = cluster.api::<Pod>().list(&Default::default()).await?.items.into_iter();
        let seen = pods.map(|pod| (pod.metadata.name, pod.status.and_then(|status| status.phase)));
        Ok(seen.map(|pod| format!("{pod:?}")).collect())
    };
    crash::crash_after_each_write(TestCluster::builder, CONTROLLERS, story, world).await
}

//! One scenario per issue of kubernetes/kubernetes that the design answers.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use http::Method;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{ConfigMap, Endpoints};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use steersman_testing::objects::{self, WorkloadBuilder as _};
use steersman_testing::{Failure, TestCluster, expect};

pub(crate) use crate::scenarios::garbage_collector::alone as garbage_collector;
use crate::scenarios::garbage_collector::{config_map, delete, looks, owner, reference, until_known, until_owned_by};
use crate::scenarios::namespace::reported;
pub(crate) use crate::scenarios::replicaset::cluster as replica_sets;
pub(crate) use crate::scenarios::services::cluster as services;
use crate::scenarios::services::{
    AT_ONCE, CONTROLLERS, add_node, addresses_in_words, endpoints_in_words, kill_pod, remove_node, run_pod, service,
    set_ready, slices_of,
};
use crate::scenarios::support::beside::Beside;
use crate::scenarios::support::controllers;
use crate::scenarios::support::line::{Line, Trouble};
pub(crate) use crate::scenarios::support::no_controllers;

scenarios! {
    issue_125638_however_fast_pods_flap_the_last_state_stays on no_controllers,
    issue_127370_a_write_that_changes_nothing_stalls_nobody on services,
    issue_130767_a_lagging_cache_never_makes_a_second_pod on no_controllers,
    issue_132805_events_do_not_inflate_the_back_off on replica_sets,
    issue_141382_healthy_objects_are_not_reconciled_for_ever on garbage_collector,
}

/// 125638: a cache that lagged behind fast changes left endpoints stuck at a state in between.
pub(crate) async fn issue_125638_however_fast_pods_flap_the_last_state_stays(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let lags = Trouble::Lags(&["/endpoints", "/endpointslices"], Duration::from_secs(2));
    let line = Line::to(cluster.faulty_client(), lags);
    let manager = Beside::start_within(cluster, line.client(), CONTROLLERS)?;
    let node = flap(cluster, Duration::from_secs(6)).await?;
    manager.stop().await?;
    for pod in ["one", "two"] {
        kill_pod(cluster, pod).await?;
    }
    remove_node(cluster, &node).await
}

/// Pods become ready and unready, faster than anybody follows; a while later, the last state must be reported. Answers the name
/// of their node.
pub(crate) async fn flap(cluster: &TestCluster, later: Duration) -> Result<String, Failure> {
    const ROUNDS: u64 = 40;
    let node = add_node(cluster, "a", None).await?;
    cluster.create(service("web", json!({}))).await?;
    for (name, ip) in [("one", "10.1.0.1"), ("two", "10.1.0.2")] {
        run_pod(cluster, name, &node, ip).await?;
    }
    for round in 0..ROUNDS {
        set_ready(cluster, "one", round % 2 == 1).await?;
        set_ready(cluster, "two", round % 3 == 0).await?;
        cluster.advance(Duration::from_millis(1 + (round * 37) % 400)).await;
    }
    cluster.advance(later).await;
    cluster.settle().await?;
    let want = ["10.1.0.1 ready", "10.1.0.2 ready"];
    let slices = slices_of(cluster, "web").await?;
    expect(endpoints_in_words(&slices) == want, "the last state in slices", &endpoints_in_words(&slices))?;
    expect(slices.len() == 1, "one slice has them", &slices)?;
    let endpoints = cluster.api::<Endpoints>().get("web").await?;
    expect(addresses_in_words(&endpoints) == want, "the last state", &addresses_in_words(&endpoints))?;
    Ok(node)
}

/// 127370: a write that changed nothing made the controller wait for ever for a version that never came.
pub(crate) async fn issue_127370_a_write_that_changes_nothing_stalls_nobody(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    const PODS: usize = 1010;
    let node = add_node(cluster, "a", None).await?;
    let pods = (0..PODS).map(|number| {
        let node = &node;
        async move {
            let ip = format!("10.1.{}.{}", number / 250, number % 250 + 1);
            run_pod(cluster, &format!("pod-{number:04}"), node, &ip).await
        }
    });
    stream::iter(pods).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    cluster.create(service("web", json!({}))).await?;
    cluster.until_exists::<Endpoints>("web").await?;
    cluster.settle().await?;
    let before = cluster.api::<Endpoints>().get("web").await?.metadata.resource_version;
    let written = || cluster.last_writes().iter().filter(|write| write.resource == "endpoints").count();
    let written_before = written();
    // 10.1.4.99 sorts behind all others: it is not among the thousand, whatever becomes of it.
    run_pod(cluster, "last", &node, "10.1.4.99").await?;
    set_ready(cluster, "last", true).await?;
    cluster.settle().await?;
    let after = cluster.api::<Endpoints>().get("web").await?.metadata.resource_version;
    expect(before == after, "nothing that is reported has changed", &(before, after))?;
    expect(written() == written_before, "so nothing is written", &cluster.last_writes())?;
    let since = tokio::time::Instant::now();
    kill_pod(cluster, "pod-0000").await?;
    let is_there = async || {
        let addresses = addresses_in_words(&cluster.api::<Endpoints>().get("web").await?);
        Ok(addresses.contains(&"10.1.0.1 ready".to_owned()))
    };
    cluster.until_eq("the address of the deleted pod is removed", is_there, false).await?;
    expect(
        since.elapsed() < Duration::from_secs(20),
        "nobody waited for a version that never comes",
        &since.elapsed(),
    )?;
    remove_node(cluster, &node).await
}

/// 130767: with a cache that lags, expectations that were lost or had run out made pods twice.
pub(crate) async fn issue_130767_a_lagging_cache_never_makes_a_second_pod(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let line = Line::to(cluster.faulty_client(), Trouble::Lags(&["/pods"], Duration::from_secs(3)));
    let manager = Beside::start_within(cluster, line.client(), &[controllers::REPLICA_SET])?;
    let web = cluster.create(objects::replica_set("web").replicas(3)).await?;
    cluster.pods_of(&web).until_count(3).await?;
    // Each of these is a pass, while the cache has none of the pods.
    for poke in 0..20 {
        poke_set(cluster, poke).await?;
        cluster.advance(Duration::from_millis(100)).await;
    }
    // Until long after the cache has them.
    cluster.advance(Duration::from_secs(8)).await;
    cluster.pods_of(&web).until_count(3).await?;
    let creates = line.count(&Method::POST, "/pods");
    manager.stop().await?;
    expect(creates == 3, "each pod was asked for once", &creates)
}

async fn poke_set(cluster: &TestCluster, poke: u32) -> Result<(), Failure> {
    let patch = Patch::Merge(json!({ "metadata": { "annotations": { "poke": poke.to_string() } } }));
    cluster.api::<ReplicaSet>().patch("web", &PatchParams::default(), &patch).await?;
    Ok(())
}

/// 132805: each event of an object in back-off was a try of its own, and each try that failed doubled the back-off, up to a
/// quarter of an hour.
pub(crate) async fn issue_132805_events_do_not_inflate_the_back_off(cluster: &TestCluster) -> Result<(), Failure> {
    const EVERY: Duration = Duration::from_millis(100);
    crate::refuse_pods(cluster, true).await?;
    let web = cluster.create(objects::replica_set("web").replicas(1)).await?;
    for poke in 0..100 {
        poke_set(cluster, poke).await?;
        cluster.advance(EVERY).await;
    }
    // The last event has had its try, too: from here on there are only retries.
    cluster.advance(Duration::from_secs(2)).await;
    crate::refuse_pods(cluster, false).await?;
    // Retries alone would be at most 21 seconds apart by now: 5 ms, doubled as often as it fits into ten seconds. With
    // an exponent for each event it would be a quarter of an hour.
    cluster.pods_of(&web).until_count(1).await?;
    Ok(())
}

/// 141382: objects with a solid owner are looked at again and again, eight times a second.
///
/// Owners under several identities, of which none is observed, took turns in the graph, each time as a new one without
/// back-off.
pub(crate) async fn issue_141382_healthy_objects_are_not_reconciled_for_ever(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let solid = cluster.create(config_map("solid", vec![])).await?;
    let as_one = reference("example.com/v1", "Unknown", "one", 1);
    let as_other = reference("example.com/v2", "Unknown", "other", 1);
    let held_by = |other: &OwnerReference| vec![owner(&solid), other.clone()];
    cluster.create(config_map("a", held_by(&as_one))).await?;
    cluster.create(config_map("b", held_by(&as_other))).await?;
    let absent = reference("v1", "ConfigMap", "absent", 2);
    cluster.create(config_map("c", held_by(&absent))).await?;
    cluster.create(config_map("d", held_by(&OwnerReference { kind: "Secret".into(), ..absent }))).await?;
    cluster.settle().await?;
    cluster.advance(crate::LONG).await;
    for name in ["c", "d"] {
        until_owned_by::<ConfigMap>(cluster, name, &[owner(&solid)]).await?;
    }
    let before = looks(cluster);
    cluster.expect_quiet(crate::LONG).await?;
    let later = looks(cluster) - before;
    expect(later <= 6, "few looks, as nothing happens", &later)?;
    for name in ["a", "b", "c", "d", "solid"] {
        cluster.api::<ConfigMap>().get(name).await?;
    }
    Ok(())
}

/// 101078: one resource that cannot be read, and nothing is collected after a restart. The cluster has one, and a collector
/// that has just started.
pub(crate) async fn collects_what_is_not_broken(cluster: &TestCluster) -> Result<(), Failure> {
    let parent = cluster.create(config_map("parent", vec![])).await?;
    let other = cluster.create(config_map("other", vec![])).await?;
    cluster.create(config_map("child", vec![owner(&parent)])).await?;
    cluster.create(config_map("left-behind", vec![owner(&other)])).await?;
    delete::<ConfigMap>(cluster, "parent", DeleteParams::background()).await?;
    cluster.until_gone::<ConfigMap>("child").await?;
    until_known(cluster, 2).await?;
    delete::<ConfigMap>(cluster, "other", DeleteParams::orphan()).await?;
    until_owned_by::<ConfigMap>(cluster, "left-behind", &[]).await?;
    cluster.until_gone::<ConfigMap>("other").await
}

/// 60807: waits until the conditions of the namespace report an API that cannot be discovered.
pub(crate) async fn until_discovery_failure(cluster: &TestCluster, api: &str) -> Result<(), Failure> {
    let says = format!(
        "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: {api}: "
    );
    let condition = async || reported(cluster, "NamespaceDeletionDiscoveryFailure").await;
    let is_reported = |[status, reason, text]: &[String; 3]| {
        status == "True" && reason == "DiscoveryFailed" && text.starts_with(&says)
    };
    cluster.until_right("the condition that reports discovery", condition, is_reported).await.map(drop)
}

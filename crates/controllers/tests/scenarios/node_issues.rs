//! Issues of kubernetes/kubernetes about nodes: their health, the pods that leave them, and their ranges.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod, Toleration};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use steersman_testing::objects::{self, ObjectBuilder as _, PodBuilder as _};
use steersman_testing::{Builder, Failure, TestCluster, expect, expect_eq};

pub(crate) use crate::scenarios::node_ipam::three_ranges;
use crate::scenarios::node_ipam::{
    self, create, create_with_ranges, delete, expect_apart, own, ranges, until_none_is_left, until_ranges,
};
pub(crate) use crate::scenarios::node_lifecycle::impatient;
use crate::scenarios::node_lifecycle::{condition, keys, node_says, report};
use crate::scenarios::services::set_ready;
use crate::scenarios::support::beside::Beside;
use crate::scenarios::support::controllers::{self, Controller};
pub(crate) use crate::scenarios::support::no_controllers;
pub(crate) use crate::scenarios::taint_eviction::cluster as evicting;
use crate::scenarios::taint_eviction::{clean, create_node, exists, maintenance, on, taint, tolerating, until_notes};

scenarios! {
    issue_70957_ranges_of_other_sizes_overlap_with_none_that_is_given on four_ranges alone,
    issue_82773_a_node_with_a_foreign_range_stops_nobody on no_controllers alone,
    issue_90794_a_pod_stays_if_only_taints_that_it_tolerates_are_left on evicting,
    issue_94183_a_node_that_is_lost_a_second_time_is_tainted_again on impatient alone,
    issue_96416_a_restart_counts_no_range_twice on no_controllers alone,
    issue_102993_a_longer_toleration_counts_from_when_it_is_set on evicting,
    issue_112733_pods_of_an_unready_node_that_falls_silent_are_not_ready on impatient alone,
    issue_127792_a_terminating_node_keeps_its_range_until_it_is_gone on three_ranges alone,
}

/// Four ranges, as all tests of ranges here use them.
const RANGES: [&str; 4] = ["10.60.0.0/24", "10.60.1.0/24", "10.60.2.0/24", "10.60.3.0/24"];

/// The controller with these four ranges.
const FOUR_RANGES: Controller =
    controllers::NODE_IPAM.prepared_by(|manager| manager.set_options(node_ipam::options("10.60.0.0/22", "", 24)));

pub(crate) fn four_ranges() -> Builder {
    TestCluster::builder().controllers(&[FOUR_RANGES])
}

/// 70957, 90922: after `--node-cidr-mask-size` was changed, ranges were given that overlap with those of older nodes; also when one of
/// several in the same place was deleted.
pub(crate) async fn issue_70957_ranges_of_other_sizes_overlap_with_none_that_is_given(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    for (name, range) in [("small", "10.60.0.0/27"), ("other", "10.60.0.32/27"), ("large", "10.60.2.0/23")] {
        create(cluster, name, Some(&[range])).await?;
    }
    create(cluster, "first", None).await?;
    until_ranges(cluster, "first", &[RANGES[1]]).await?;
    create(cluster, "second", None).await?;
    until_none_is_left(cluster, "second").await?;
    delete(cluster, &["small"]).await?;
    cluster.advance(Duration::from_secs(2)).await;
    expect_eq("half of a range is not free", &ranges(cluster, "second").await?, &Vec::<String>::new())?;
    delete(cluster, &["large"]).await?;
    let look = async || ranges(cluster, "second").await;
    let second = cluster.until_right("it gets a range", look, |ranges: &Vec<_>| ranges.len() == 1).await?;
    expect(RANGES[2..].contains(&&*second[0]), "one of the two that are free", &second)?;
    delete(cluster, &["other", "first", "second"]).await
}

/// 82773: one node with a range that is not the cluster's ended every manager at its start.
pub(crate) async fn issue_82773_a_node_with_a_foreign_range_stops_nobody(cluster: &TestCluster) -> Result<(), Failure> {
    create(cluster, "foreign", Some(&["192.168.7.0/24"])).await?;
    let manager = Beside::start(cluster, cluster.client(), &[FOUR_RANGES])?;
    for (name, range) in ["a", "b", "c", "d"].iter().zip(RANGES) {
        create(cluster, name, None).await?;
        until_ranges(cluster, name, &[range]).await?;
    }
    until_ranges(cluster, "foreign", &["192.168.7.0/24"]).await?;
    manager.stop().await?;
    delete(cluster, &["foreign", "a", "b", "c", "d"]).await
}

/// 90794: a pod was deleted though the taint that it did not tolerate for ever was removed in time, because another one was left.
pub(crate) async fn issue_90794_a_pod_stays_if_only_taints_that_it_tolerates_are_left(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let node = create_node(cluster, "node").await?;
    let own = json!({ "key": "own", "effect": "NoExecute" });
    taint(cluster, &node, &json!([own])).await?;
    cluster.create(on(&node, "pod", &json!([exists("own", None), exists("maintenance", Some(4))]))).await?;
    cluster.settle().await?;
    taint(cluster, &node, &json!([own, maintenance(None)])).await?;
    cluster.advance(Duration::from_secs(1)).await;
    taint(cluster, &node, &json!([own])).await?;
    until_notes(cluster, "pod", &["Cancelling deletion of Pod NAMESPACE/pod"]).await?;
    expect_stays(cluster, "pod").await?;
    clean(cluster, &node, &["pod"]).await
}

/// 94183, 96183: a node that was well for a while and was lost again did not get the taint that evicts.
pub(crate) async fn issue_94183_a_node_that_is_lost_a_second_time_is_tainted_again(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let names = cluster.nodes().names();
    let Some(node) = names.first() else { return Err(Failure::new("no node")) };
    cluster.settle().await?;
    let says = async || node_says(cluster, node).await;
    let well = ("True".to_owned(), "KubeletReady".to_owned(), BTreeSet::new());
    cluster.until_eq("it is well", says, well.clone()).await?;
    for _ in 0..2 {
        cluster.nodes().stop_heartbeats(node)?;
        let lost = ("Unknown".to_owned(), "NodeStatusUnknown".to_owned(), keys(&["NoExecute", "NoSchedule"]));
        cluster.until_eq("it is lost, and its pods are evicted", says, lost).await?;
        cluster.nodes().resume(node)?;
        cluster.until_eq("it is well again", says, well.clone()).await?;
    }
    Ok(())
}

/// 96416: ranges in use were counted twice after a restart, and the last ones never given.
pub(crate) async fn issue_96416_a_restart_counts_no_range_twice(cluster: &TestCluster) -> Result<(), Failure> {
    let names = ["a", "b", "c", "d"];
    for two in names.chunks(2) {
        let manager = Beside::start(cluster, cluster.client(), &[FOUR_RANGES])?;
        create_with_ranges(cluster, two, 1).await?;
        manager.stop().await?;
    }
    let mut all = Vec::new();
    for name in names {
        all.extend(ranges(cluster, name).await?);
    }
    expect_apart(&all)?;
    delete(cluster, &names).await
}

/// 102993: a toleration that was made longer in time had no effect on a node that was tainted already.
pub(crate) async fn issue_102993_a_longer_toleration_counts_from_when_it_is_set(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let node = create_node(cluster, "node").await?;
    cluster.create(on(&node, "pod", &tolerating(Some(4)))).await?;
    taint(cluster, &node, &json!([maintenance(None)])).await?;
    cluster.advance(Duration::from_secs(1)).await;
    let pods = cluster.api::<Pod>();
    let mut held = pods.get("pod").await?.spec.and_then(|spec| spec.tolerations).unwrap_or_default();
    let is_it = |toleration: &&mut Toleration| toleration.key.as_deref() == Some("maintenance");
    held.iter_mut().filter(is_it).for_each(|toleration| toleration.toleration_seconds = Some(3600));
    let patch = Patch::Merge(json!({ "spec": { "tolerations": held } }));
    pods.patch("pod", &PatchParams::default(), &patch).await?;
    expect_stays(cluster, "pod").await?;
    clean(cluster, &node, &["pod"]).await
}

/// 112733: pods of a node that was not ready and then fell silent stayed ready for ever, and got requests.
pub(crate) async fn issue_112733_pods_of_an_unready_node_that_falls_silent_are_not_ready(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let nodes: Api<Node> = Api::all(cluster.client());
    let name = own(cluster, "node");
    nodes.create(&PostParams::default(), &objects::node(&name)).await?;
    report(&nodes, &name, &[("Ready", "True")]).await?;
    let tolerates = json!({ "spec": { "tolerations": [{ "operator": "Exists" }] } });
    cluster.create(objects::pod("pod").on_node(&name).with(tolerates)).await?;
    set_ready(cluster, "pod", true).await?;
    report(&nodes, &name, &[("Ready", "False")]).await?;
    let says = async || Ok(node_says(cluster, &name).await?.0);
    let pod_is = async || Ok(condition(&cluster.api::<Pod>().get("pod").await?, "Ready").0);
    cluster.until_eq("the pod is ready", pod_is, "True".to_owned()).await?;
    cluster.until_eq("the node is unknown", says, "Unknown".to_owned()).await?;
    cluster.until_eq("the pod is not ready", pod_is, "False".to_owned()).await?;
    cluster.api::<Pod>().delete("pod", &DeleteParams::default().grace_period(0)).await?;
    nodes.delete(&name, &DeleteParams::default()).await?;
    Ok(())
}

/// 127792: the range of a node that was terminating, and held by a finalizer, was given to another one.
pub(crate) async fn issue_127792_a_terminating_node_keeps_its_range_until_it_is_gone(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    create_with_ranges(cluster, &["a", "b", "c"], 1).await?;
    let nodes: Api<Node> = Api::all(cluster.client());
    let name = own(cluster, "b");
    let hold = |finalizers: &[&str]| Patch::Merge(json!({ "metadata": { "finalizers": finalizers } }));
    nodes.patch(&name, &PatchParams::default(), &hold(&["example.com/held"])).await?;
    nodes.delete(&name, &DeleteParams::default()).await?;
    create(cluster, "late", None).await?;
    until_none_is_left(cluster, "late").await?;
    let held = ranges(cluster, "b").await?;
    expect_eq("it has its range", &held.len(), &1)?;
    nodes.patch(&name, &PatchParams::default(), &hold(&[])).await?;
    until_ranges(cluster, "late", &[&held[0]]).await?;
    delete(cluster, &["a", "c", "late"]).await
}

/// A pod is there when its first toleration is long over.
async fn expect_stays(cluster: &TestCluster, name: &str) -> Result<(), Failure> {
    cluster.advance(Duration::from_secs(6)).await;
    let pod = cluster.api::<Pod>().get(name).await?;
    expect(pod.metadata.deletion_timestamp.is_none(), "it stays", &pod.metadata)
}

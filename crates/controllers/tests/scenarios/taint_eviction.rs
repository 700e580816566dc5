//! Pods on nodes with taints that evict.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use steersman_testing::objects::{self, ObjectBuilder as _, PodBuilder as _};
use steersman_testing::{Builder, Failure, TestCluster, expect};

use crate::scenarios::support::controllers::{self, Controller};

scenarios! {
    pods_leave_a_tainted_node_unless_they_tolerate_it on cluster,
    a_taint_that_is_removed_in_time_evicts_nobody on cluster,
    a_time_is_counted_from_when_the_taint_was_added on cluster,
}

pub(crate) const CONTROLLERS: &[Controller] = &[controllers::TAINT_EVICTION];

pub(crate) fn cluster() -> Builder {
    TestCluster::builder().controllers(CONTROLLERS)
}

/// A pod that does not tolerate the taint leaves at once, one that does for a time after that, one that does for ever stays.
pub(crate) async fn pods_leave_a_tainted_node_unless_they_tolerate_it(cluster: &TestCluster) -> Result<(), Failure> {
    let node = create_node(cluster, "node").await?;
    cluster.create(on(&node, "no", &json!([]))).await?;
    cluster.create(on(&node, "some", &tolerating(Some(3)))).await?;
    cluster.create(on(&node, "forever", &tolerating(None))).await?;
    taint(cluster, &node, &json!([maintenance(None)])).await?;
    cluster.until_gone::<Pod>("no").await?;
    let some = cluster.api::<Pod>().get("some").await?;
    expect(some.metadata.deletion_timestamp.is_none(), "it has its time", &some.metadata)?;
    cluster.until_gone::<Pod>("some").await?;
    // A pod that comes later leaves, too.
    cluster.create(on(&node, "late", &json!([]))).await?;
    cluster.until_gone::<Pod>("late").await?;
    until_notes(cluster, "no", &["Marking for deletion Pod NAMESPACE/no"]).await?;
    let stays = cluster.api::<Pod>().get("forever").await?;
    expect(stays.metadata.deletion_timestamp.is_none(), "it tolerates the taint", &stays.metadata)?;
    clean(cluster, &node, &["forever"]).await
}

/// A taint that is removed before the time is over evicts nobody, and an event says so; neither does one that is tolerated
/// in time.
pub(crate) async fn a_taint_that_is_removed_in_time_evicts_nobody(cluster: &TestCluster) -> Result<(), Failure> {
    let node = create_node(cluster, "node").await?;
    cluster.create(on(&node, "spared", &tolerating(Some(4)))).await?;
    cluster.create(on(&node, "learns", &tolerating(Some(4)))).await?;
    taint(cluster, &node, &json!([maintenance(None)])).await?;
    cluster.advance(Duration::from_secs(1)).await;
    let pods = cluster.api::<Pod>();
    let held = pods.get("learns").await?.spec.and_then(|spec| spec.tolerations).unwrap_or_default();
    let defaults = json!(held).as_array().cloned().unwrap_or_default();
    let all: Vec<Value> = [exists("maintenance", None)].into_iter().chain(defaults).collect();
    let patch = Patch::Merge(json!({ "spec": { "tolerations": all } }));
    pods.patch("learns", &PatchParams::default(), &patch).await?;
    until_notes(cluster, "learns", &["Cancelling deletion of Pod NAMESPACE/learns"]).await?;
    taint(cluster, &node, &json!([])).await?;
    until_notes(cluster, "spared", &["Cancelling deletion of Pod NAMESPACE/spared"]).await?;
    cluster.advance(Duration::from_secs(6)).await;
    for name in ["spared", "learns"] {
        let pod = pods.get(name).await?;
        expect(pod.metadata.deletion_timestamp.is_none(), "it stays", &pod.metadata)?;
    }
    clean(cluster, &node, &["spared", "learns"]).await
}

/// A taint that was added a while ago leaves a pod only the rest of its time.
pub(crate) async fn a_time_is_counted_from_when_the_taint_was_added(cluster: &TestCluster) -> Result<(), Failure> {
    let node = create_node(cluster, "node").await?;
    cluster.create(on(&node, "old", &tolerating(Some(8)))).await?;
    cluster.advance(Duration::from_secs(6)).await;
    let added = cluster.clock().now().plus_seconds(-5);
    let before = cluster.clock().now();
    taint(cluster, &node, &json!([maintenance(Some(&added.to_string()))])).await?;
    cluster.until_gone::<Pod>("old").await?;
    let took = cluster.clock().now().since(before);
    expect(took < Duration::from_secs(7) && took >= Duration::from_secs(2), "three seconds are left", &took)?;
    clean(cluster, &node, &[]).await
}

/// Creates a node; the name is the test's own.
pub(crate) async fn create_node(cluster: &TestCluster, name: &str) -> Result<String, Failure> {
    let name = format!("{}-{name}", cluster.namespace());
    Api::<Node>::all(cluster.client()).create(&PostParams::default(), &objects::node(&name)).await?;
    taint(cluster, &name, &json!([])).await?;
    Ok(name)
}

/// A pod on a node; nobody ends it, so it ends at once.
pub(crate) fn on(node: &str, name: &str, tolerations: &Value) -> Pod {
    let spec = json!({ "tolerations": tolerations, "terminationGracePeriodSeconds": 0 });
    objects::pod(name).on_node(node).with(json!({ "spec": spec }))
}

pub(crate) fn tolerating(seconds: Option<i64>) -> Value {
    json!([exists("maintenance", seconds)])
}

pub(crate) fn exists(key: &str, seconds: Option<i64>) -> Value {
    match seconds {
        Some(seconds) => {
            json!({ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds })
        }
        None => json!({ "key": key, "operator": "Exists", "effect": "NoExecute" }),
    }
}

pub(crate) fn maintenance(added: Option<&str>) -> Value {
    match added {
        Some(added) => json!({ "key": "maintenance", "effect": "NoExecute", "timeAdded": added }),
        None => json!({ "key": "maintenance", "effect": "NoExecute" }),
    }
}

/// Sets the taints of a node.
pub(crate) async fn taint(cluster: &TestCluster, node: &str, taints: &Value) -> Result<(), Failure> {
    let patch = Patch::Merge(json!({ "spec": { "taints": taints } }));
    Api::<Node>::all(cluster.client()).patch(node, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Waits until exactly these events say what becomes of a pod.
pub(crate) async fn until_notes(cluster: &TestCluster, pod: &str, want: &[&str]) -> Result<(), Failure> {
    let about = ListParams::default().fields(&format!("involvedObject.name={pod},reason=TaintManagerEviction"));
    let notes = async || {
        let found = cluster.api::<Event>().list(&about).await?.items;
        Ok(found.into_iter().filter_map(|event| event.message).collect::<Vec<_>>())
    };
    let want: Vec<String> = want.iter().map(|note| note.replace("NAMESPACE", cluster.namespace())).collect();
    cluster.until_eq("the events about the pod", notes, want).await
}

pub(crate) async fn clean(cluster: &TestCluster, node: &str, pods: &[&str]) -> Result<(), Failure> {
    for pod in pods {
        cluster.api::<Pod>().delete(pod, &DeleteParams::default().grace_period(0)).await?;
    }
    Api::<Node>::all(cluster.client()).delete(node, &DeleteParams::default()).await?;
    Ok(())
}

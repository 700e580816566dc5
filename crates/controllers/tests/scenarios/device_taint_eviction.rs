//! Pods that use devices with taints that evict.

use k8s_openapi::api::core::v1::{Event, Pod};
use k8s_openapi::api::resource::v1::{DeviceTaintRule, ResourceClaim, ResourceSlice};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use steersman_testing::objects::{self, ObjectBuilder as _, PodBuilder as _};
use steersman_testing::{Builder, Failure, TestCluster, expect, expect_eq};

use crate::scenarios::protection::end;
use crate::scenarios::resourceclaim::{allocate_device, claim, pod_with_claim, remove_claims};
use crate::scenarios::support::controllers::{self, Controller};

scenarios! {
    pods_leave_a_tainted_device_unless_their_claims_tolerate_it on cluster,
    a_rule_that_is_removed_in_time_evicts_nobody on cluster,
    a_rule_says_what_it_has_done on cluster,
    a_rule_without_effect_says_what_it_would_do on cluster,
}

pub(crate) const CONTROLLERS: &[Controller] = &[controllers::DEVICE_TAINT_EVICTION];

pub(crate) fn cluster() -> Builder {
    TestCluster::builder().controllers(CONTROLLERS)
}

/// A driver taints a device in its slice: the pod whose claim does not tolerate it leaves at once, the one that does for a
/// time after that, the one that does for ever stays, and so does the one with another device.
pub(crate) async fn pods_leave_a_tainted_device_unless_their_claims_tolerate_it(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    publish(cluster, &json!([])).await?;
    use_device(cluster, "no", "gpu-0", &json!([])).await?;
    use_device(cluster, "some", "gpu-0", &tolerating(Some(3))).await?;
    use_device(cluster, "forever", "gpu-0", &tolerating(None)).await?;
    use_device(cluster, "other", "gpu-1", &json!([])).await?;
    cluster.settle().await?;
    publish(cluster, &json!([{ "key": "example.com/broken", "effect": "NoExecute" }])).await?;
    until_leaving(cluster, "no").await?;
    let some = cluster.api::<Pod>().get("some").await?;
    expect(some.metadata.deletion_timestamp.is_none(), "it has its time", &some.metadata)?;
    until_leaving(cluster, "some").await?;
    for stays in ["forever", "other"] {
        let pod = cluster.api::<Pod>().get(stays).await?;
        expect(pod.metadata.deletion_timestamp.is_none(), "it stays", &stays)?;
    }
    until_note(cluster, "no", "Marking for deletion").await?;
    clean(cluster, &["no", "some", "forever", "other"]).await
}

/// The pod has a minute; the rule goes before that.
pub(crate) async fn a_rule_that_is_removed_in_time_evicts_nobody(cluster: &TestCluster) -> Result<(), Failure> {
    use_device(cluster, "web", "gpu-0", &tolerating(Some(60))).await?;
    let rule = create_rule(cluster, "NoExecute").await?;
    until_reason(cluster, &rule, "PodsPendingEviction").await?;
    rules(cluster).delete(&rule, &DeleteParams::default()).await?;
    until_note(cluster, "web", "Cancelling deletion").await?;
    let pod = cluster.api::<Pod>().get("web").await?;
    expect(pod.metadata.deletion_timestamp.is_none(), "it stays", &pod.metadata)?;
    clean(cluster, &["web"]).await
}

/// The pod leaves with a condition, and the rule says so ten seconds later.
pub(crate) async fn a_rule_says_what_it_has_done(cluster: &TestCluster) -> Result<(), Failure> {
    use_device(cluster, "web", "gpu-0", &json!([])).await?;
    hold(cluster, "web").await?;
    let rule = create_rule(cluster, "NoExecute").await?;
    until_leaving(cluster, "web").await?;
    let pod = cluster.api::<Pod>().get("web").await?;
    let conditions = pod.status.and_then(|status| status.conditions).unwrap_or_default();
    let target = conditions.into_iter().find(|condition| condition.type_ == "DisruptionTarget");
    let reason = target.and_then(|target| target.reason);
    expect_eq("its condition", &reason.as_deref(), &Some("DeletionByDeviceTaintManager"))?;
    let message = until_reason(cluster, &rule, "Completed").await?;
    expect_eq("the rule", &message.as_str(), &"1 pod evicted since starting the controller.")?;
    rules(cluster).delete(&rule, &DeleteParams::default()).await?;
    release(cluster, "web").await?;
    clean(cluster, &["web"]).await
}

/// A dry run.
pub(crate) async fn a_rule_without_effect_says_what_it_would_do(cluster: &TestCluster) -> Result<(), Failure> {
    publish(cluster, &json!([])).await?;
    use_device(cluster, "web", "gpu-0", &json!([])).await?;
    use_device(cluster, "tolerant", "gpu-1", &tolerating(None)).await?;
    let want = "2 published devices selected. 2 allocated devices selected. 1 pod would be evicted in 1 namespace if the \
                effect was NoExecute. This information will not be updated again. Recreate the DeviceTaintRule to trigger \
                an update.";
    // It is reported once, from the caches, which may not show the claim yet.
    let dry_run = async || {
        let rule = create_rule(cluster, "None").await?;
        let message = until_reason(cluster, &rule, "NoEffect").await?;
        rules(cluster).delete(&rule, &DeleteParams::default()).await?;
        Ok(message)
    };
    cluster.until_eq("the rule", dry_run, want.to_owned()).await?;
    let pod = cluster.api::<Pod>().get("web").await?;
    expect(pod.metadata.deletion_timestamp.is_none(), "it stays", &pod.metadata)?;
    clean(cluster, &["tolerant", "web"]).await
}

/// The driver of a test: others run beside it.
pub(crate) fn driver(cluster: &TestCluster) -> String {
    format!("{}.example.com", cluster.namespace())
}

pub(crate) fn rules(cluster: &TestCluster) -> Api<DeviceTaintRule> {
    Api::all(cluster.client())
}

/// Publishes two devices, the first one with these taints.
pub(crate) async fn publish(cluster: &TestCluster, taints: &Value) -> Result<(), Failure> {
    let slices = Api::<ResourceSlice>::all(cluster.client());
    let spec = json!({
        "driver": driver(cluster),
        "pool": { "name": "pool", "generation": 1, "resourceSliceCount": 1 },
        "allNodes": true,
        "devices": [{ "name": "gpu-0", "taints": taints }, { "name": "gpu-1" }],
    });
    let metadata = objects::named(cluster.namespace());
    let slice = ResourceSlice { metadata, ..ResourceSlice::default() }.with(json!({ "spec": spec }));
    if slices.get_opt(cluster.namespace()).await?.is_some() {
        slices.patch(cluster.namespace(), &PatchParams::default(), &Patch::Merge(json!({ "spec": spec }))).await?;
    } else {
        slices.create(&PostParams::default(), &slice).await?;
    }
    Ok(())
}

/// Creates a pod and its claim, allocated and reserved.
pub(crate) async fn use_device(
    cluster: &TestCluster,
    name: &str,
    device: &str,
    tolerations: &Value,
) -> Result<(), Failure> {
    cluster.create(claim(name)).await?;
    let pod = cluster.create(pod_with_claim(name, name).on_node("somewhere")).await?;
    let driver = driver(cluster);
    let result = json!({
        "request": "gpu", "driver": driver, "pool": "pool", "device": device, "tolerations": tolerations,
    });
    allocate_device(cluster, name, &result, &[&pod]).await
}

pub(crate) fn tolerating(seconds: Option<i64>) -> Value {
    json!([{
        "key": "example.com/broken", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds,
    }])
}

/// Creates a rule for the first device.
pub(crate) async fn create_rule(cluster: &TestCluster, effect: &str) -> Result<String, Failure> {
    let selector = json!({ "driver": driver(cluster) });
    let spec = json!({ "deviceSelector": selector, "taint": { "key": "example.com/broken", "effect": effect } });
    let metadata = objects::named(cluster.namespace());
    let rule = DeviceTaintRule { metadata, ..DeviceTaintRule::default() }.with(json!({ "spec": spec }));
    rules(cluster).create(&PostParams::default(), &rule).await?;
    Ok(cluster.namespace().to_owned())
}

/// Waits until the condition of a rule has a reason, and answers its message.
pub(crate) async fn until_reason(cluster: &TestCluster, rule: &str, reason: &str) -> Result<String, Failure> {
    let look = async || {
        let rule = rules(cluster).get(rule).await?;
        let condition = rule.status.and_then(|status| status.conditions).unwrap_or_default().into_iter().next();
        Ok(match condition {
            Some(condition) if condition.reason == reason => Ok(condition.message),
            other => Err(format!("{other:?}")),
        })
    };
    cluster.until(&format!("the rule says {reason}"), look).await
}

/// Waits until a pod is terminating, or gone: nothing runs it.
pub(crate) async fn until_leaving(cluster: &TestCluster, pod: &str) -> Result<(), Failure> {
    let look = async || {
        let pod = cluster.api::<Pod>().get_opt(pod).await?;
        Ok(pod.is_none_or(|pod| pod.metadata.deletion_timestamp.is_some()))
    };
    cluster.until_eq(&format!("{pod} leaves"), look, true).await
}

async fn until_note(cluster: &TestCluster, pod: &str, note: &str) -> Result<(), Failure> {
    let look = async || {
        let events = cluster.api::<Event>().list(&ListParams::default()).await?.items;
        Ok(events.iter().any(|event| {
            event.involved_object.name.as_deref() == Some(pod)
                && event.reason.as_deref() == Some("DeviceTaintManagerEviction")
                && event.message.as_deref() == Some(note)
        }))
    };
    cluster.until_eq(&format!("{note} of {pod}"), look, true).await
}

/// Keeps a pod from going, so that its last status can be read.
async fn hold(cluster: &TestCluster, pod: &str) -> Result<(), Failure> {
    finalizers(cluster, pod, &json!(["example.com/hold"])).await
}

async fn release(cluster: &TestCluster, pod: &str) -> Result<(), Failure> {
    finalizers(cluster, pod, &Value::Null).await
}

async fn finalizers(cluster: &TestCluster, pod: &str, finalizers: &Value) -> Result<(), Failure> {
    let patch = json!({ "metadata": { "finalizers": finalizers } });
    cluster.api::<Pod>().patch(pod, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

/// Deletes what cluster-wide objects a test has made, its pods and its claims.
pub(crate) async fn clean(cluster: &TestCluster, pods: &[&str]) -> Result<(), Failure> {
    let slices = Api::<ResourceSlice>::all(cluster.client());
    if slices.get_opt(cluster.namespace()).await?.is_some() {
        slices.delete(cluster.namespace(), &DeleteParams::default()).await?;
    }
    for pod in pods {
        if cluster.api::<Pod>().get_opt(pod).await?.is_some() {
            end(cluster, pod).await?;
        }
        let status = json!({ "status": { "reservedFor": null, "allocation": null } });
        cluster.api::<ResourceClaim>().patch_status(pod, &PatchParams::default(), &Patch::Merge(status)).await?;
    }
    remove_claims(cluster).await
}

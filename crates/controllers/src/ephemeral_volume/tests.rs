//! Tables of the decisions.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_informer::{Change, End};
use steersman_model::View;
use steersman_model::core::{PersistentVolumeClaimView, PodView};

use super::map::{new_pod, pods_without};
use super::plan::needed;
use crate::test_objects::{NOW, decode, merged, pod};

fn template() -> Value {
    json!({
        "metadata": { "labels": { "app": "web" }, "annotations": { "a": "b" } },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": "1Gi" } },
            "storageClassName": "fast",
            "volumeMode": "Filesystem",
        },
    })
}

fn with_volumes(more: Value) -> Arc<PodView> {
    let volumes = json!([
        { "name": "config", "configMap": { "name": "c" } },
        { "name": "scratch", "ephemeral": { "volumeClaimTemplate": template() } },
        { "name": "data", "persistentVolumeClaim": { "claimName": "data" } },
    ]);
    pod("web", merged(json!({ "spec": { "volumes": volumes } }), more))
}

#[test]
fn an_ephemeral_volume_gets_the_claim_of_its_template_which_the_pod_owns() {
    let pod = with_volumes(json!({}));
    let needed: Vec<_> = needed(&pod).collect();
    assert_eq!(needed.len(), 1);
    let want = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "web-scratch",
            "namespace": "default",
            "labels": { "app": "web" },
            "annotations": { "a": "b" },
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "web",
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": template()["spec"],
    });
    assert_eq!(needed[0].body(pod.meta()), want);
    let problem = "PVC default/web-scratch was not created for pod default/web (pod is not owner)";
    assert_eq!(needed[0].not_ours(&pod), problem);
}

#[test]
fn new_pods_and_deleted_claims_concern_pods_with_ephemeral_volumes() {
    let waiting = with_volumes(json!({}));
    let leaving = with_volumes(json!({ "metadata": { "deletionTimestamp": NOW } }));
    let plain = pod("plain", json!({}));
    let is_enqueued = |new: &Arc<PodView>| new_pod(&Change::Added { new: Arc::clone(new), initial: true }).is_some();
    assert_eq!([&waiting, &leaving, &plain].map(is_enqueued), [true, false, false]);
    assert!(new_pod(&Change::Updated { old: Arc::clone(&waiting), new: Arc::clone(&waiting) }).is_none());

    let claim: Arc<PersistentVolumeClaimView> =
        Arc::new(decode(json!({ "metadata": { "name": "web-scratch", "namespace": "default" } })));
    let pods = |_: &_| vec![Arc::clone(&waiting), Arc::clone(&leaving), Arc::clone(&plain)];
    let deleted = Change::Deleted { last: Arc::clone(&claim), end: End::Observed };
    assert_eq!(pods_without(&deleted, pods).len(), 1);
    assert!(pods_without(&Change::Added { new: claim, initial: false }, pods).is_empty());
}

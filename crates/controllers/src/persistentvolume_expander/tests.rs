//! Tables of the decisions.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_informer::Change;
use steersman_model::core::{PersistentVolumeClaimView, PersistentVolumeView};

use super::plan::{self, Resizer};
use crate::test_objects::{decode, merged};

fn claim(request: &str, capacity: &str, more: Value) -> Arc<PersistentVolumeClaimView> {
    let base = json!({
        "metadata": { "name": "data", "namespace": "default", "uid": "c" },
        "spec": { "volumeName": "disk", "resources": { "requests": { "storage": request } } },
        "status": { "phase": "Bound", "capacity": { "storage": capacity } },
    });
    Arc::new(decode(merged(base, more)))
}

#[allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]
fn volume(source: Value) -> PersistentVolumeView {
    let claim = json!({ "namespace": "default", "name": "data", "uid": "c" });
    decode(merged(json!({ "metadata": { "name": "disk" }, "spec": { "claimRef": claim } }), json!({ "spec": source })))
}

#[test]
fn a_bound_claim_that_asks_for_more_is_enqueued_and_no_other() {
    let check = |name: &str, change: &Change<PersistentVolumeClaimView>, is_enqueued: bool| {
        assert_eq!(plan::to_expand(change).is_some(), is_enqueued, "{name}");
    };
    let none = || json!({});
    let added = |new: Arc<PersistentVolumeClaimView>| Change::Added { new, initial: true };
    let updated = |old: Arc<_>, new: Arc<_>| Change::Updated { old, new };
    check("at a start", &added(claim("2Gi", "1Gi", none())), true);
    check("as large as it asks for", &added(claim("1Gi", "1Gi", none())), false);
    check("larger", &added(claim("1Gi", "2Gi", none())), false);
    check("the same size, in other words", &added(claim("1024Mi", "1Gi", none())), false);
    check("not bound", &added(claim("2Gi", "1Gi", json!({ "status": { "phase": "Pending" } }))), false);
    check("the request grows", &updated(claim("1Gi", "1Gi", none()), claim("2Gi", "1Gi", none())), true);
    check("grown in part", &updated(claim("3Gi", "1Gi", none()), claim("3Gi", "2Gi", none())), true);
    check("done", &updated(claim("2Gi", "1Gi", none()), claim("2Gi", "2Gi", none())), false);
    let labelled = claim("2Gi", "1Gi", json!({ "metadata": { "labels": { "a": "b" } } }));
    check("another field", &updated(claim("2Gi", "1Gi", none()), labelled), false);
}

#[test]
fn a_migrated_volume_waits_for_its_driver_and_any_other_for_whoever_serves_it() {
    let check = |source: Value, want: Resizer, note: &str| {
        let resizer = plan::resizer(&volume(source.clone()));
        assert_eq!(resizer, want, "{source}");
        assert_eq!(plan::note(resizer), note, "{source}");
    };
    let external = "waiting for an external controller to expand this PVC";
    check(json!({ "csi": { "driver": "example.com" } }), Resizer::External, external);
    check(json!({ "hostPath": { "path": "/a" } }), Resizer::External, external);
    check(json!({ "flexVolume": { "driver": "a/b" } }), Resizer::External, external);
    check(
        json!({ "gcePersistentDisk": { "pdName": "disk" } }),
        Resizer::Migrated { plugin: "kubernetes.io/gce-pd", driver: "pd.csi.storage.gke.io" },
        "CSI migration enabled for kubernetes.io/gce-pd; waiting for external resizer to expand the pvc",
    );
}

#[test]
fn the_driver_is_named_once_and_only_the_volume_of_the_claim_counts() {
    let fresh = claim("2Gi", "1Gi", json!({}));
    let patch = plan::naming(&fresh, "pd.csi.storage.gke.io").expect("it is not named");
    assert_eq!(
        patch["metadata"],
        json!({ "uid": "c", "annotations": { "volume.kubernetes.io/storage-resizer": "pd.csi.storage.gke.io" } })
    );
    let named = json!({ "metadata": { "annotations": { "volume.kubernetes.io/storage-resizer": "d" } } });
    assert_eq!(plan::naming(&claim("2Gi", "1Gi", named), "d"), None);
    assert!(plan::is_its(&volume(json!({})), &fresh));
    assert!(!plan::is_its(&volume(json!({})), &claim("2Gi", "1Gi", json!({ "metadata": { "uid": "other" } }))));
    assert!(!plan::is_its(&decode(json!({ "metadata": { "name": "disk" } })), &fresh));
}

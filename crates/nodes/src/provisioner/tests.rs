//! Tables for the decisions of the provisioner.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_model::core::{PersistentVolumeClaimView, PersistentVolumeView};
use steersman_model::storage::StorageClassView;
use steersman_model::{Encoded, View};

use super::object;
use super::plan::{Observed, Step, plan};

const UID: &str = "6cd4b5f0-1111-4222-8333-444455556666";
const FINALIZER: &str = "external-provisioner.volume.kubernetes.io/finalizer";

fn view<V: View>(object: &Value) -> V {
    V::decode(Encoded::Json(object.to_string().as_bytes())).expect("it is one")
}

#[allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]
fn claim(volume: &str, annotations: Value) -> PersistentVolumeClaimView {
    let spec = json!({
        "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } },
        "storageClassName": "standard", "volumeName": volume,
    });
    let metadata = json!({ "namespace": "shop", "name": "data-0", "uid": UID, "annotations": annotations });
    view(&json!({ "metadata": metadata, "spec": spec }))
}

fn class(mode: &str) -> StorageClassView {
    view(&json!({ "metadata": { "name": "standard" }, "provisioner": super::NAME, "volumeBindingMode": mode }))
}

fn volume(uid: &str, phase: &str, policy: &str, is_terminating: bool, held: &[&str]) -> Arc<PersistentVolumeView> {
    let annotations = json!({ "pv.kubernetes.io/provisioned-by": super::NAME });
    let mut volume = json!({
        "metadata": {
            "name": format!("pvc-{uid}"), "uid": "v", "resourceVersion": "7", "annotations": annotations,
            "finalizers": held,
        },
        "spec": {
            "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": policy,
            "claimRef": { "namespace": "shop", "name": "data-0", "uid": uid },
        },
        "status": { "phase": phase },
    });
    if is_terminating {
        volume["metadata"]["deletionTimestamp"] = json!("2026-11-15T12:00:00Z");
    }
    Arc::new(view(&volume))
}

fn steps(observed: &Observed<'_>) -> Vec<&'static str> {
    let name = |step: &Step<'_>| match step {
        Step::Delete(_) => "delete",
        Step::Unprotect(_) => "unprotect",
        Step::Provision(_) => "provision",
    };
    plan(observed).iter().map(name).collect()
}

#[test]
fn a_claim_gets_one_volume_when_it_is_asked_for() {
    let asked = json!({ "volume.kubernetes.io/storage-provisioner": super::NAME });
    let of_others = json!({ "volume.kubernetes.io/storage-provisioner": "example.com/disk" });
    let selected = json!({
        "volume.kubernetes.io/storage-provisioner": super::NAME, "volume.kubernetes.io/selected-node": "node-0",
    });
    let late = "WaitForFirstConsumer";
    let check = |annotations: &Value, mode: &str, want: &[&str]| {
        let claim = claim("", annotations.clone());
        let class = class(mode);
        let observed = Observed { claim: Some(&claim), class: Some(&class), volumes: &[] };
        assert_eq!(steps(&observed), want, "{annotations} {mode}");
        assert!(steps(&Observed { class: None, ..observed }).is_empty(), "a class of others");
        let made = [volume(UID, "Pending", "Delete", false, &[FINALIZER])];
        assert!(steps(&Observed { volumes: &made, ..observed }).is_empty(), "it is made");
    };
    check(&json!({}), "Immediate", &[]);
    check(&of_others, "Immediate", &[]);
    check(&asked, "Immediate", &["provision"]);
    check(&asked, late, &[]);
    check(&selected, late, &["provision"]);
    let bound = claim("disk-1", asked);
    let class = class("Immediate");
    assert!(steps(&Observed { claim: Some(&bound), class: Some(&class), volumes: &[] }).is_empty(), "it has one");
}

#[test]
fn released_volumes_are_deleted_if_their_policy_says_so() {
    let check = |phase: &str, policy: &str, is_terminating: bool, held: &[&str], want: &[&str]| {
        let volumes = [volume("another-uid", phase, policy, is_terminating, held)];
        let gone = Observed { claim: None, class: None, volumes: &volumes };
        assert_eq!(steps(&gone), want, "{phase} {policy} {is_terminating} {held:?}");
        // A new claim of the same name does not inherit it.
        let new = claim("mine", json!({}));
        assert_eq!(steps(&Observed { claim: Some(&new), ..gone }), want, "{phase} {policy}, replaced");
    };
    check("Bound", "Delete", false, &[FINALIZER], &[]);
    check("Bound", "Delete", true, &[FINALIZER], &[]);
    check("Released", "Delete", false, &[FINALIZER], &["delete"]);
    check("Released", "Delete", true, &[FINALIZER], &["unprotect"]);
    check("Released", "Delete", true, &[], &[]);
    check("Released", "Retain", false, &[], &[]);
    check("Released", "Retain", false, &[FINALIZER], &["unprotect"]);
}

#[test]
fn a_volume_has_what_its_claim_asks_for_and_loses_only_our_finalizer() {
    let made = object::volume(&claim("", json!({})), &class("Immediate"));
    assert_eq!(made["metadata"]["name"], format!("pvc-{UID}"));
    assert_eq!(made["metadata"]["finalizers"], json!([FINALIZER]));
    assert_eq!(made["spec"]["capacity"]["storage"], "1Gi");
    assert_eq!(made["spec"]["accessModes"], json!(["ReadWriteOnce"]));
    assert_eq!(made["spec"]["claimRef"]["uid"], UID);
    assert_eq!(made["spec"]["persistentVolumeReclaimPolicy"], "Delete");
    let held = volume(UID, "Released", "Delete", true, &["kubernetes.io/pv-protection", FINALIZER]);
    assert_eq!(
        object::unprotected(&held)["metadata"],
        json!({ "uid": "v", "resourceVersion": "7", "finalizers": ["kubernetes.io/pv-protection"] })
    );
}

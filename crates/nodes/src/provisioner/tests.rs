//! Tables for the decisions of the provisioner.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_model::core::PersistentVolumeClaimView;
use steersman_model::{Encoded, View};

use super::ProvisionerOptions;
use super::object;
use super::plan::{Observed, Step, plan};
use super::view::{ClassView, VolumeView};

const UID: &str = "6cd4b5f0-1111-4222-8333-444455556666";
const BINDS: ProvisionerOptions = ProvisionerOptions { binds: true, default_class: false };
const ASKED: ProvisionerOptions = ProvisionerOptions { binds: false, default_class: false };

fn view<V: View>(object: &Value) -> V {
    V::decode(Encoded::Json(object.to_string().as_bytes())).expect("it is one")
}

#[allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]
fn claim(volume: &str, phase: &str, annotations: Value) -> PersistentVolumeClaimView {
    let spec = json!({
        "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } },
        "storageClassName": "standard", "volumeName": volume,
    });
    let metadata = json!({ "namespace": "shop", "name": "data-0", "uid": UID, "annotations": annotations });
    view(&json!({ "metadata": metadata, "spec": spec, "status": { "phase": phase } }))
}

fn class(mode: &str) -> ClassView {
    view(&json!({ "metadata": { "name": "standard" }, "provisioner": super::NAME, "volumeBindingMode": mode }))
}

fn volume(uid: &str, phase: &str, policy: &str) -> Arc<VolumeView> {
    let annotations = json!({ super::map::PROVISIONED_BY: super::NAME });
    Arc::new(view(&json!({
        "metadata": { "name": format!("pvc-{uid}"), "uid": "v", "annotations": annotations },
        "spec": {
            "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": policy,
            "claimRef": { "namespace": "shop", "name": "data-0", "uid": uid },
        },
        "status": { "phase": phase },
    })))
}

fn steps(observed: &Observed<'_>, options: ProvisionerOptions) -> Vec<&'static str> {
    let name = |step: &Step<'_>| match step {
        Step::Release(_) => "release",
        Step::Delete(_) => "delete",
        Step::Provision(_) => "provision",
        Step::Await => "await",
        Step::BindVolume(_) => "bind volume",
        Step::BindClaim(_) => "bind claim",
        Step::ReportBound(_) => "report",
    };
    plan(observed, options).iter().map(name).collect()
}

#[test]
fn a_claim_gets_one_volume_when_its_class_says_so() {
    let none = json!({});
    let selected = json!({ "volume.kubernetes.io/selected-node": "node-0" });
    let asked = json!({ "volume.kubernetes.io/storage-provisioner": super::NAME });
    let late = "WaitForFirstConsumer";
    let check = |annotations: &Value, mode: &str, is_used: bool, options, want: &[&str]| {
        let claim = claim("", "Pending", annotations.clone());
        let class = class(mode);
        let observed = Observed { claim: Some(&claim), class: Some(&class), volumes: &[], is_used };
        assert_eq!(steps(&observed, options), want, "{annotations} {mode} {is_used}");
        let other = Observed { class: None, ..observed };
        assert!(steps(&other, options).is_empty(), "a class of others");
    };
    check(&none, "Immediate", false, BINDS, &["provision"]);
    check(&none, late, false, BINDS, &["await"]);
    check(&none, late, true, BINDS, &["provision"]);
    check(&selected, late, false, BINDS, &["provision"]);
    check(&none, "Immediate", false, ASKED, &[]);
    check(&asked, "Immediate", false, ASKED, &["provision"]);
    check(&asked, late, false, ASKED, &[]);
}

#[test]
fn claim_and_volume_are_bound_step_by_step() {
    let class = class("Immediate");
    let check = |claim: &PersistentVolumeClaimView, phase: &str, options, want: &[&str]| {
        let volumes = [volume(UID, phase, "Delete")];
        let observed = Observed { claim: Some(claim), class: Some(&class), volumes: &volumes, is_used: true };
        assert_eq!(steps(&observed, options), want, "{phase}");
    };
    let name = format!("pvc-{UID}");
    check(&claim("", "Pending", json!({})), "Available", BINDS, &["bind volume", "bind claim", "report"]);
    check(&claim("", "Pending", json!({})), "Bound", BINDS, &["bind claim", "report"]);
    check(&claim(&name, "Pending", json!({})), "Bound", BINDS, &["report"]);
    check(&claim(&name, "Bound", json!({})), "Bound", BINDS, &[]);
    check(&claim("mine", "Bound", json!({})), "Available", BINDS, &[]);
    check(&claim("", "Pending", json!({})), "Available", ASKED, &[]);
}

#[test]
fn volumes_of_claims_that_are_gone_are_reclaimed() {
    let check = |phase: &str, policy: &str, options, want: &[&str]| {
        let volumes = [volume("another-uid", phase, policy)];
        let gone = Observed { claim: None, class: None, volumes: &volumes, is_used: false };
        assert_eq!(steps(&gone, options), want, "{phase} {policy}");
        // A new claim of the same name does not inherit it.
        let new = claim("mine", "Bound", json!({}));
        let replaced = Observed { claim: Some(&new), ..gone };
        assert_eq!(steps(&replaced, options), want, "{phase} {policy}, replaced");
    };
    check("Bound", "Delete", BINDS, &["release", "delete"]);
    check("Bound", "Retain", BINDS, &["release"]);
    check("Released", "Delete", BINDS, &["delete"]);
    check("Released", "Retain", BINDS, &[]);
    check("Bound", "Delete", ASKED, &[]);
    check("Released", "Delete", ASKED, &["delete"]);
}

#[test]
fn a_volume_has_what_its_claim_asks_for() {
    let made = object::volume(&claim("", "Pending", json!({})), &class("Immediate"));
    assert_eq!(made["metadata"]["name"], format!("pvc-{UID}"));
    assert_eq!(made["spec"]["capacity"]["storage"], "1Gi");
    assert_eq!(made["spec"]["accessModes"], json!(["ReadWriteOnce"]));
    assert_eq!(made["spec"]["claimRef"]["uid"], UID);
    assert_eq!(made["spec"]["persistentVolumeReclaimPolicy"], "Delete");
    let bound = object::bound(&claim("", "Pending", json!({})), &volume(UID, "Bound", "Delete"));
    assert_eq!(bound["status"]["capacity"]["storage"], "1Gi");
}

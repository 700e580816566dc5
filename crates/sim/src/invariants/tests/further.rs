//! Volumes of single pods, ranges of addresses, tokens, tainted devices, classes of volumes and policies.

use serde_json::{Value, json};

use super::Stream;
use super::legal::{expect_checked, expect_stale};
use super::story::{Story, named, patch, terminating, with};
use crate::invariants::{CLASS_PROTECTION, DEVICE_TAINT_EVICTION, EPHEMERAL, SERVICE_CIDR, TOKEN_CLEANER};

const MADE_FOR: &str = "claims_of_pods_are_made_for_pods_that_stay";
const HAS: &str = "every_pod_has_its_volumes";
const DEPEND: &str = "no_range_goes_while_addresses_depend_on_it";
const READY: &str = "ranges_are_ready_or_needed";
const LIVE: &str = "tokens_live_until_they_expire";
const EXPIRED: &str = "expired_tokens_are_deleted";
const SIGNED: &str = "information_is_signed_by_every_token";
const TAINTED: &str = "only_pods_with_tainted_devices_are_evicted";
const KEPT: &str = "only_what_is_in_use_is_kept";
const IN_USE: &str = "a_class_in_use_stays";
const PROTECTED: &str = "classes_are_protected_or_gone";
const CHECKED: &str = "policies_are_checked";
const LONG: i64 = 1000;
const OF_RANGES: &str = "networking.k8s.io/service-cidr-finalizer";
const OF_CLASSES: &str = "kubernetes.io/vac-protection";
const OF_CLAIMS: &str = "kubernetes.io/pvc-protection";
const OF_VOLUMES: &str = "kubernetes.io/pv-protection";

/// A pod with a volume of its own.
fn scratch(story: &mut Story) {
    let volume = json!({ "name": "scratch", "ephemeral": { "volumeClaimTemplate": {} } });
    story.user(with(named("Pod", "user"), &json!({ "spec": { "volumes": [volume] } })));
}

/// The claim of its volume.
fn claim_of(story: &Story) -> Value {
    story.owned(named("PersistentVolumeClaim", "user-scratch"), "Pod", "user")
}

/// A range that is ready.
fn range(story: &mut Story, name: &str, cidr: &str) {
    let made = json!({
        "metadata": { "finalizers": [OF_RANGES] }, "spec": { "cidrs": [cidr] },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
    });
    story.user(with(named("ServiceCIDR", name), &made));
}

/// A user deletes an object that has a finalizer.
fn leaves(story: &mut Story, kind: &str, name: &str) {
    let leaving = patch(kind, name, &terminating(story));
    story.user(leaving);
}

/// A controller takes the last finalizer off.
fn lets_go(story: &mut Story, controller: &str, kind: &str, name: &str) {
    story.deletes(controller, kind, name);
}

/// A token that signs, and expires in so many seconds.
fn token(story: &mut Story, seconds: i64) {
    use base64::Engine as _;
    let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let data = json!({
        "token-id": encode("abcdef"), "usage-bootstrap-signing": encode("true"),
        "expiration": encode(&story.now().plus_seconds(seconds).to_string()),
    });
    story.user(with(named("Secret", "token"), &json!({ "type": "bootstrap.kubernetes.io/token", "data": data })));
}

/// The ConfigMap that tokens sign, with these entries.
fn information(story: &mut Story, data: &Value) {
    let made = json!({ "metadata": { "namespace": "kube-public" }, "data": data });
    story.user(with(named("ConfigMap", "cluster-info"), &made));
}

/// A pod with a device.
fn user_of_device(story: &mut Story) {
    let claims = json!([{ "name": "device", "resourceClaimName": "device" }]);
    story.node(with(named("Pod", "user"), &json!({ "spec": { "nodeName": "node-1", "resourceClaims": claims } })));
    story.wait(LONG);
}

fn rule(story: &mut Story, effect: &str) {
    story.user(with(named("DeviceTaintRule", "broken"), &json!({ "spec": { "taint": { "effect": effect } } })));
}

/// A pod on a node uses a claim that is terminating.
fn claim_that_leaves(story: &mut Story) {
    let volumes = json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }]);
    let spec = json!({ "spec": { "nodeName": "node-1", "volumes": volumes }, "status": { "phase": "Running" } });
    story.node(named("Node", "node-1"));
    story.node(with(named("Pod", "user"), &spec));
    story.user(with(named("PersistentVolumeClaim", "data"), &json!({ "metadata": { "finalizers": [OF_CLAIMS] } })));
    leaves(story, "PersistentVolumeClaim", "data");
}

/// A class that a claim names.
fn class(story: &mut Story) {
    story.user(with(named("VolumeAttributesClass", "gold"), &json!({ "metadata": { "finalizers": [OF_CLASSES] } })));
    let spec = json!({ "spec": { "volumeAttributesClassName": "gold" } });
    story.user(with(named("PersistentVolumeClaim", "golden"), &spec));
    story.wait(LONG);
}

pub(super) const VIOLATIONS: &[(&str, Stream)] = &[
    (MADE_FOR, |story| {
        scratch(story);
        let claim = claim_of(story);
        story.user_deletes("Pod", "user");
        story.wait(LONG);
        story.write(EPHEMERAL, claim);
    }),
    (MADE_FOR, |story| story.write(EPHEMERAL, named("PersistentVolumeClaim", "user-scratch"))),
    (HAS, |story| {
        scratch(story);
        story.rest();
    }),
    (HAS, |story| {
        scratch(story);
        story.user(named("PersistentVolumeClaim", "user-scratch"));
        story.rest();
    }),
    (DEPEND, |story| {
        range(story, "small", "10.250.0.0/24");
        range(story, "other", "10.251.0.0/16");
        story.user(named("IPAddress", "10.250.0.9"));
        leaves(story, "ServiceCIDR", "small");
        lets_go(story, SERVICE_CIDR, "ServiceCIDR", "small");
    }),
    (READY, |story| {
        story.user(with(named("ServiceCIDR", "small"), &json!({ "spec": { "cidrs": ["10.250.0.0/24"] } })));
        story.rest();
    }),
    (READY, |story| {
        range(story, "small", "10.250.0.0/24");
        leaves(story, "ServiceCIDR", "small");
        story.rest();
    }),
    (LIVE, |story| {
        token(story, 100);
        story.wait(50);
        story.deletes(TOKEN_CLEANER, "Secret", "token");
    }),
    (EXPIRED, |story| {
        token(story, 100);
        story.wait(LONG);
        story.user(named("ConfigMap", "later"));
        story.rest();
    }),
    (SIGNED, |story| {
        token(story, LONG);
        information(story, &json!({ "kubeconfig": "text", "jws-kubeconfig-abcdef": "forged" }));
        story.rest();
    }),
    (SIGNED, |story| {
        information(story, &json!({ "kubeconfig": "text", "jws-kubeconfig-abcdef": "a..b" }));
        story.rest();
    }),
    (TAINTED, |story| {
        user_of_device(story);
        rule(story, "NoSchedule");
        story.deletes(DEVICE_TAINT_EVICTION, "Pod", "user");
    }),
    (TAINTED, |story| {
        story.node(named("Pod", "user"));
        rule(story, "NoExecute");
        story.deletes(DEVICE_TAINT_EVICTION, "Pod", "user");
    }),
    (IN_USE, |story| {
        class(story);
        leaves(story, "VolumeAttributesClass", "gold");
        lets_go(story, CLASS_PROTECTION, "VolumeAttributesClass", "gold");
    }),
    (PROTECTED, |story| {
        story.user(named("VolumeAttributesClass", "gold"));
        story.rest();
    }),
    (PROTECTED, |story| {
        class(story);
        leaves(story, "VolumeAttributesClass", "gold");
        story.user_deletes("PersistentVolumeClaim", "golden");
        story.rest();
    }),
    (KEPT, |story| {
        claim_that_leaves(story);
        story.node(patch("Pod", "user", &json!({ "status": { "phase": "Succeeded" } })));
        story.rest();
    }),
    (KEPT, |story| {
        let made = json!({ "metadata": { "finalizers": [OF_VOLUMES] }, "status": { "phase": "Available" } });
        story.user(with(named("PersistentVolume", "disk"), &made));
        leaves(story, "PersistentVolume", "disk");
        story.rest();
    }),
    (CHECKED, |story| {
        let status = json!({ "status": { "observedGeneration": 0, "typeChecking": {} } });
        story.user(with(named("ValidatingAdmissionPolicy", "sized"), &status));
        story.rest();
    }),
];

pub(super) const LEGAL: &[(&str, Stream)] = &[
    ("a volume of a pod has its claim", |story| {
        scratch(story);
        let claim = claim_of(story);
        story.write(EPHEMERAL, claim);
        expect_checked(story, MADE_FOR);
        story.rest();
        expect_checked(story, HAS);
    }),
    ("a pod that is gone had just been there", |story| {
        scratch(story);
        story.wait(LONG);
        let claim = claim_of(story);
        story.freeze("Pod");
        story.user_deletes("Pod", "user");
        story.write(EPHEMERAL, claim);
        expect_stale(story, MADE_FOR);
    }),
    ("a range goes whose addresses are in another one", |story| {
        range(story, "small", "10.250.0.0/24");
        range(story, "large", "10.250.0.0/23");
        story.user(named("IPAddress", "10.250.0.9"));
        leaves(story, "ServiceCIDR", "small");
        lets_go(story, SERVICE_CIDR, "ServiceCIDR", "small");
        expect_checked(story, DEPEND);
        story.rest();
        expect_checked(story, READY);
    }),
    ("a range stays for its addresses", |story| {
        range(story, "small", "10.250.0.0/24");
        story.user(named("IPAddress", "10.250.0.9"));
        leaves(story, "ServiceCIDR", "small");
        let blocked = json!({ "status": { "conditions": [{ "type": "Ready", "status": "False" }] } });
        story.write(SERVICE_CIDR, patch("ServiceCIDR", "small", &blocked));
        story.rest();
        expect_checked(story, READY);
    }),
    ("a token that has expired is deleted", |story| {
        token(story, 100);
        story.wait(101);
        story.deletes(TOKEN_CLEANER, "Secret", "token");
        expect_checked(story, LIVE);
    }),
    ("a token signs until it expires", |story| {
        token(story, 100);
        information(story, &json!({ "kubeconfig": "text", "jws-kubeconfig-abcdef": "a..b" }));
        story.rest();
        expect_checked(story, SIGNED);
        expect_checked(story, EXPIRED);
    }),
    ("a pod whose devices are tainted is evicted", |story| {
        user_of_device(story);
        rule(story, "NoExecute");
        story.deletes(DEVICE_TAINT_EVICTION, "Pod", "user");
        expect_checked(story, TAINTED);
    }),
    ("a pod is evicted by a rule that was there a moment ago", |story| {
        user_of_device(story);
        rule(story, "NoExecute");
        story.user_deletes("DeviceTaintRule", "broken");
        story.deletes(DEVICE_TAINT_EVICTION, "Pod", "user");
        expect_stale(story, TAINTED);
    }),
    ("a class goes that nothing names", |story| {
        class(story);
        leaves(story, "VolumeAttributesClass", "gold");
        story.rest();
        expect_checked(story, PROTECTED);
        story.user_deletes("PersistentVolumeClaim", "golden");
        lets_go(story, CLASS_PROTECTION, "VolumeAttributesClass", "gold");
        expect_checked(story, IN_USE);
    }),
    ("a claim that names the class is too new to be known", |story| {
        class(story);
        leaves(story, "VolumeAttributesClass", "gold");
        story.user_deletes("PersistentVolumeClaim", "golden");
        story.wait(LONG);
        story.freeze("PersistentVolumeClaim");
        let spec = json!({ "spec": { "volumeAttributesClassName": "gold" } });
        story.user(with(named("PersistentVolumeClaim", "golden"), &spec));
        lets_go(story, CLASS_PROTECTION, "VolumeAttributesClass", "gold");
        expect_stale(story, IN_USE);
    }),
    ("a claim is kept while a pod uses it", |story| {
        claim_that_leaves(story);
        story.rest();
        expect_checked(story, KEPT);
    }),
    ("a policy has been checked", |story| {
        let status = json!({ "status": { "observedGeneration": 1 } });
        story.user(with(named("ValidatingAdmissionPolicy", "sized"), &status));
        story.rest();
        expect_checked(story, CHECKED);
    }),
];

//! Autoscalers, certificates, claims, volumes and attachments.

use base64::Engine as _;
use serde_json::{Value, json};

use super::Stream;
use super::legal::{expect_checked, expect_stale};
use super::story::{NS, Story, deployment, named, patch, pod, with};
use crate::invariants::{ATTACH_DETACH, AUTOSCALER, Options, SIGNING, VOLUME_BINDER};

const BOUNDS: &str = "autoscalers_stay_within_their_bounds";
const POLICIES: &str = "pods_are_added_as_fast_as_policies_allow";
const AMBIGUOUS: &str = "pods_of_two_autoscalers_are_scaled_by_neither";
const ASKED_FOR: &str = "replicas_are_what_the_load_asks_for";
const SIGNED: &str = "a_certificate_has_no_more_than_its_signer_may_give";
const OWN_VOLUME: &str = "a_bound_claim_has_a_volume_of_its_own";
const DATA: &str = "a_volume_with_data_is_not_given_to_another_claim";
const IN_USE: &str = "a_claim_in_use_stays";
const ONE_WRITER: &str = "a_volume_of_one_writer_is_attached_once";
const FIT: &str = "claims_and_volumes_fit_at_rest";
const LEFT: &str = "no_attachment_is_left_without_a_pod";
const CLAIM_PROTECTION: &str = "persistentvolumeclaim-protection-controller";
const LONG: i64 = 1000;

/// An autoscaler of the Deployment `web`, with an external metric of ten per pod.
fn autoscaler(name: &str, min: i32, max: i32) -> Value {
    let target = json!({ "type": "AverageValue", "averageValue": "10" });
    let metric = json!({ "type": "External", "external": { "metric": { "name": "demand" }, "target": target } });
    with(
        named("HorizontalPodAutoscaler", name),
        &json!({ "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" },
            "minReplicas": min, "maxReplicas": max, "metrics": [metric],
        } }),
    )
}

fn scaled_to(replicas: i32) -> Value {
    patch("Deployment", "web", &json!({ "spec": { "replicas": replicas } }))
}

fn demand(story: &mut Story, value: i32) {
    let data = json!({ "data": { "demand": format!("[{{external: demand, value: {value}}}]") } });
    story.user(with(named("ConfigMap", "simulated-metrics"), &data));
}

/// A request that was approved, or not.
fn request(approved: bool, signer: &str) -> Value {
    let conditions = if approved { json!([{ "type": "Approved", "status": "True" }]) } else { json!([]) };
    with(
        named("CertificateSigningRequest", "node"),
        &json!({
            "spec": { "signerName": signer, "usages": ["client auth"], "expirationSeconds": 3600 },
            "status": { "conditions": conditions },
        }),
    )
}

/// A certificate for so many days, of an authority or not.
fn certificate(days: i64, authority: bool) -> Value {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::OrganizationName, "system:nodes");
    params.distinguished_name.push(rcgen::DnType::CommonName, "system:node:a");
    params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    params.not_before = rcgen::date_time_ymd(2026, 1, 1);
    params.not_after = rcgen::date_time_ymd(2026, 1, u8::try_from(1 + days).unwrap());
    if authority {
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    }
    let pem = params.self_signed(&key).unwrap().pem();
    let text = base64::engine::general_purpose::STANDARD.encode(pem);
    patch("CertificateSigningRequest", "node", &json!({ "status": { "certificate": text } }))
}

const KUBELET: &str = "kubernetes.io/kube-apiserver-client-kubelet";

fn claim(name: &str) -> Value {
    with(named("PersistentVolumeClaim", name), &json!({ "spec": {}, "status": { "phase": "Pending" } }))
}

fn volume(name: &str) -> Value {
    with(named("PersistentVolume", name), &json!({ "spec": { "accessModes": ["ReadWriteOnce"] } }))
}

/// The volume refers to the claim.
fn given(story: &Story, volume: &str, claim: &str) -> Value {
    let uid = story.uid("PersistentVolumeClaim", claim);
    let spec = json!({ "claimRef": { "namespace": NS, "name": claim, "uid": uid } });
    patch("PersistentVolume", volume, &json!({ "spec": spec, "status": { "phase": "Bound" } }))
}

/// The reference of the volume is taken away.
fn freed(volume: &str) -> Value {
    json!({ "kind": "PersistentVolume", "metadata": { "name": volume }, "spec": { "claimRef": null } })
}

fn bound(claim: &str, volume: &str) -> Value {
    let change = json!({ "spec": { "volumeName": volume }, "status": { "phase": "Bound" } });
    patch("PersistentVolumeClaim", claim, &change)
}

/// A claim `data` that is bound to the volume `disk`.
fn bound_pair(story: &mut Story) {
    story.user(volume("disk"));
    story.user(claim("data"));
    let reference = given(story, "disk", "data");
    story.write(VOLUME_BINDER, reference);
    story.write(VOLUME_BINDER, bound("data", "disk"));
}

/// A pod that uses the claim `data`, on a node.
fn user_of_data(node: &str) -> Value {
    let volumes = json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }]);
    with(pod("web-1", "a", None), &json!({ "spec": { "nodeName": node, "volumes": volumes } }))
}

fn attachment(name: &str, node: &str) -> Value {
    let spec = json!({ "source": { "persistentVolumeName": "disk" }, "nodeName": node });
    with(named("VolumeAttachment", name), &json!({ "spec": spec }))
}

/// The autoscaler `one`, which adds at most two pods per minute.
fn adds_two_per_minute() -> Value {
    let policies = json!([{ "type": "Pods", "value": 2, "periodSeconds": 60 }]);
    let behavior = json!({ "spec": { "behavior": { "scaleUp": { "policies": policies } } } });
    with(autoscaler("one", 1, 40), &behavior)
}

/// A terminating claim with the finalizer, and what lets it go.
fn let_go(story: &mut Story) -> Value {
    let protected = json!({ "metadata": {
        "finalizers": ["kubernetes.io/pvc-protection"], "deletionTimestamp": story.now(),
    } });
    story.user(patch("PersistentVolumeClaim", "data", &protected));
    patch("PersistentVolumeClaim", "data", &json!({ "metadata": { "finalizers": [] } }))
}

pub(super) const VIOLATIONS: &[(&str, Stream)] = &[
    (BOUNDS, |story| {
        story.user(deployment("web", 3, "a"));
        story.user(autoscaler("one", 1, 4));
        story.write(AUTOSCALER, scaled_to(5));
    }),
    (POLICIES, |story| {
        story.user(deployment("web", 3, "a"));
        story.user(autoscaler("one", 1, 40));
        story.write(AUTOSCALER, scaled_to(7));
    }),
    (POLICIES, |story| {
        story.user(deployment("web", 3, "a"));
        story.user(adds_two_per_minute());
        story.write(AUTOSCALER, scaled_to(5));
        story.wait(30);
        story.write(AUTOSCALER, scaled_to(6));
    }),
    (POLICIES, |story| {
        // What was added to an object counts for the next one of its name.
        story.user(deployment("web", 3, "a"));
        story.user(adds_two_per_minute());
        story.write(AUTOSCALER, scaled_to(5));
        story.user_deletes("Deployment", "web");
        story.user(deployment("web", 1, "a"));
        story.write(AUTOSCALER, scaled_to(2));
    }),
    (AMBIGUOUS, |story| {
        let lease = json!({ "spec": { "holderIdentity": "manager" } });
        story.write("manager", with(named("Lease", "kube-controller-manager"), &lease));
        story.user(deployment("web", 3, "a"));
        story.node(pod("web-1", "a", None));
        story.user(autoscaler("one", 1, 9));
        story.user(autoscaler("other", 1, 8));
        story.wait(LONG);
        story.write(AUTOSCALER, scaled_to(4));
    }),
    (ASKED_FOR, |story| {
        story.user(deployment("web", 3, "a"));
        story.user(autoscaler("one", 1, 9));
        demand(story, 55);
        story.rest();
    }),
    (SIGNED, |story| {
        story.user(request(false, KUBELET));
        story.write(SIGNING, certificate(0, false));
    }),
    (SIGNED, |story| {
        story.user(request(true, KUBELET));
        story.write(SIGNING, certificate(1, false));
    }),
    (SIGNED, |story| {
        story.user(request(true, KUBELET));
        story.write(SIGNING, certificate(0, true));
    }),
    (SIGNED, |story| {
        story.user(request(true, "kubernetes.io/kubelet-serving"));
        story.write(SIGNING, certificate(0, false));
    }),
    ("no_old_request_is_left", |story| {
        story.user(request(true, KUBELET));
        story.rest();
    }),
    (OWN_VOLUME, |story| {
        story.user(volume("disk"));
        story.user(claim("data"));
        story.write(VOLUME_BINDER, bound("data", "disk"));
    }),
    (DATA, |story| {
        bound_pair(story);
        story.user(claim("other"));
        let reference = given(story, "disk", "other");
        story.write(VOLUME_BINDER, reference);
    }),
    (DATA, |story| {
        bound_pair(story);
        story.user_deletes("PersistentVolumeClaim", "data");
        story.write(VOLUME_BINDER, freed("disk"));
        story.user(claim("data"));
        let reference = given(story, "disk", "data");
        story.write(VOLUME_BINDER, reference);
    }),
    (DATA, |story| {
        bound_pair(story);
        story.user(freed("disk"));
        story.user(claim("other"));
        let reference = given(story, "disk", "other");
        story.write(VOLUME_BINDER, reference);
    }),
    (IN_USE, |story| {
        bound_pair(story);
        story.node(user_of_data("a"));
        story.wait(LONG);
        let released = let_go(story);
        story.write(CLAIM_PROTECTION, released);
    }),
    (ONE_WRITER, |story| {
        bound_pair(story);
        story.write(ATTACH_DETACH, attachment("one", "a"));
        story.wait(LONG);
        story.write(ATTACH_DETACH, attachment("other", "b"));
    }),
    (FIT, |story| {
        bound_pair(story);
        story.user(freed("disk"));
        story.rest();
    }),
    (FIT, |story| {
        story.options(Options { provisions: true, ..Options::default() });
        story.user(claim("data"));
        story.node(user_of_data("a"));
        story.rest();
    }),
    (LEFT, |story| {
        bound_pair(story);
        story.node(user_of_data("a"));
        story.write(ATTACH_DETACH, attachment("one", "b"));
        story.rest();
    }),
];

pub(super) const LEGAL: &[(&str, Stream)] = &[
    ("an autoscaler doubles the pods, and returns to bounds in one step", |story| {
        story.user(deployment("web", 3, "a"));
        story.user(autoscaler("one", 1, 40));
        story.write(AUTOSCALER, scaled_to(6));
        story.user(patch("HorizontalPodAutoscaler", "one", &json!({ "spec": { "minReplicas": 30 } })));
        story.write(AUTOSCALER, scaled_to(30));
        expect_checked(story, BOUNDS);
        expect_checked(story, POLICIES);
    }),
    ("an autoscaler gives the next object of a name what it took from the last one", |story| {
        story.user(deployment("web", 8, "a"));
        story.user(adds_two_per_minute());
        story.write(AUTOSCALER, scaled_to(3));
        story.user_deletes("Deployment", "web");
        story.user(deployment("web", 1, "a"));
        story.write(AUTOSCALER, scaled_to(6));
        expect_checked(story, POLICIES);
    }),
    ("an autoscaler goes by bounds that it was shown", |story| {
        story.user(deployment("web", 3, "a"));
        story.user(autoscaler("one", 1, 6));
        story.freeze("HorizontalPodAutoscaler");
        story.user(patch("HorizontalPodAutoscaler", "one", &json!({ "spec": { "maxReplicas": 4 } })));
        story.write(AUTOSCALER, scaled_to(6));
        expect_stale(story, BOUNDS);
    }),
    ("a policy allows more after its period", |story| {
        story.user(deployment("web", 3, "a"));
        let policies = json!([{ "type": "Pods", "value": 2, "periodSeconds": 60 }]);
        let behavior = json!({ "spec": { "behavior": { "scaleUp": { "policies": policies } } } });
        story.user(with(autoscaler("one", 1, 40), &behavior));
        story.write(AUTOSCALER, scaled_to(5));
        story.wait(60);
        story.write(AUTOSCALER, scaled_to(7));
        expect_checked(story, POLICIES);
    }),
    ("demand is met, within the tolerance and the bounds", |story| {
        story.options(Options { controllers: Some([AUTOSCALER.into()].into()), ..Options::default() });
        story.user(deployment("web", 6, "a"));
        story.user(autoscaler("one", 1, 9));
        demand(story, 55);
        story.rest();
        demand(story, 57);
        story.rest();
        story.user(scaled_to(9));
        demand(story, 500);
        story.rest();
        expect_checked(story, ASKED_FOR);
    }),
    ("a request gets what it asked for, and is deleted", |story| {
        story.user(request(true, KUBELET));
        story.write(SIGNING, certificate(0, false));
        story.user_deletes("CertificateSigningRequest", "node");
        story.rest();
        expect_checked(story, SIGNED);
    }),
    ("a volume that a user has freed goes to another claim", |story| {
        bound_pair(story);
        story.user_deletes("PersistentVolumeClaim", "data");
        story.user(freed("disk"));
        story.user(claim("other"));
        let reference = given(story, "disk", "other");
        story.write(VOLUME_BINDER, reference);
        story.write(VOLUME_BINDER, bound("other", "disk"));
        story.rest();
        expect_checked(story, DATA);
        expect_checked(story, OWN_VOLUME);
        expect_checked(story, FIT);
    }),
    ("a claim goes when its pod has ended, or when nobody was shown that it has a node", |story| {
        bound_pair(story);
        let mut made = user_of_data("");
        made["spec"]["nodeName"] = json!("");
        story.node(made);
        let released = let_go(story);
        story.freeze("Pod");
        story.node(user_of_data("a"));
        story.write(CLAIM_PROTECTION, released);
        expect_stale(story, IN_USE);
    }),
    ("a volume moves to another node when its attachment goes", |story| {
        bound_pair(story);
        story.write(ATTACH_DETACH, attachment("one", "a"));
        story.wait(LONG);
        story.deletes(ATTACH_DETACH, "VolumeAttachment", "one");
        story.write(ATTACH_DETACH, attachment("other", "b"));
        story.node(named("Node", "b"));
        story.node(user_of_data("b"));
        story.rest();
        expect_checked(story, ONE_WRITER);
        expect_checked(story, LEFT);
    }),
    ("a volume that was taken from its claim stays attached while a pod has it mounted", |story| {
        bound_pair(story);
        story.node(named("Node", "a"));
        story.node(user_of_data("a"));
        story.write(ATTACH_DETACH, attachment("one", "a"));
        story.user(freed("disk"));
        story.write(VOLUME_BINDER, patch("PersistentVolumeClaim", "data", &json!({ "status": { "phase": "Lost" } })));
        story.rest();
        expect_checked(story, LEFT);
    }),
];

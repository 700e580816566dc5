//! Streams about endpoints.

use serde_json::{Value, json};

use super::Stream;
use super::story::{Story, named, pod, with};
use crate::invariants::SLICES;

pub(super) fn service() -> Value {
    with(
        named("Service", "web"),
        &json!({ "spec": {
        "selector": { "app": "web" }, "ports": [{ "port": 80 }], "ipFamilies": ["IPv4"],
    } }),
    )
}

pub(super) fn endpoint(story: &Story, name: &str, ready: bool) -> Value {
    json!({
        "addresses": ["10.0.0.1"], "conditions": { "ready": ready },
        "targetRef": { "kind": "Pod", "name": name, "uid": story.uid("Pod", name) },
    })
}

pub(super) fn slice(name: &str, endpoints: &[Value]) -> Value {
    with(
        named("EndpointSlice", name),
        &json!({
            "addressType": "IPv4",
            "metadata": { "labels": {
                "kubernetes.io/service-name": "web",
                "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
            } },
            "endpoints": endpoints,
        }),
    )
}

pub(super) fn addresses(story: &Story, pods: &[&str]) -> Value {
    let address = |name: &&str| json!({ "ip": "10.0.0.1", "targetRef": { "kind": "Pod", "name": name, "uid": story.uid("Pod", name) } });
    let addresses: Vec<_> = pods.iter().map(address).collect();
    let labels = json!({ "endpoints.kubernetes.io/managed-by": "endpoint-controller" });
    with(
        named("Endpoints", "web"),
        &json!({ "metadata": { "labels": labels }, "subsets": [{ "addresses": addresses }] }),
    )
}

/// A service with one ready pod, in a namespace that is there.
pub(super) fn begun(story: &mut Story) {
    story.user(named("Namespace", super::story::NS));
    story.user(named("ServiceAccount", "default"));
    story.user(with(named("ConfigMap", "kube-root-ca.crt"), &json!({ "data": { "ca.crt": "" } })));
    story.user(named("Node", "node-1"));
    story.user(service());
    let made = pod("a", "a", Some(story.now()));
    story.node(made);
}

pub(super) const VIOLATIONS: &[(&str, Stream)] = &[
    ("slices_are_within_their_limits", |story| {
        begun(story);
        let made = slice("web-1", &[endpoint(story, "a", true), endpoint(story, "a", false)]);
        story.write(SLICES, made);
    }),
    ("slices_are_within_their_limits", |story| {
        begun(story);
        let of = |n: usize| json!({ "addresses": [format!("10.0.0.{n}")] });
        let many: Vec<_> = (0..101).map(of).collect();
        story.write(SLICES, slice("web-1", &many));
    }),
    ("endpoints_stand_for_pods_that_existed", |story| {
        begun(story);
        let target = json!({ "kind": "Pod", "name": "b", "uid": "never" });
        story.write(SLICES, slice("web-1", &[json!({ "addresses": ["10.0.0.2"], "targetRef": target })]));
    }),
    ("ready_endpoints_are_ready_pods", |story| {
        begun(story);
        let made = super::rollout::pod_that(story, "a", "False");
        story.node(made);
        story.wait(100);
        let made = slice("web-1", &[endpoint(story, "a", true)]);
        story.write(SLICES, made);
    }),
    ("slices_are_those_of_the_pods", |story| {
        begun(story);
        story.write(SLICES, slice("web-1", &[]));
        story.rest();
    }),
    // An endpoint is in two slices.
    ("slices_are_those_of_the_pods", |story| {
        begun(story);
        for name in ["web-1", "web-2"] {
            let made = slice(name, &[endpoint(story, "a", true)]);
            story.write(SLICES, made);
        }
        story.rest();
    }),
    // A pod is listed as ready that is not.
    ("slices_are_those_of_the_pods", |story| {
        begun(story);
        let made = slice("web-1", &[endpoint(story, "a", true)]);
        story.write(SLICES, made);
        let made = super::rollout::pod_that(story, "a", "False");
        story.node(made);
        story.rest();
    }),
    ("endpoints_are_those_of_the_pods", |story| {
        begun(story);
        story.node(pod("b", "a", None));
        let made = addresses(story, &["a", "b"]);
        story.user(made);
        story.rest();
    }),
    ("no_endpoints_without_a_service", |story| {
        begun(story);
        let made = addresses(story, &["a"]);
        story.user(made);
        story.user_deletes("Service", "web");
        story.rest();
    }),
];

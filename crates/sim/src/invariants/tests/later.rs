//! Times to live of Jobs, quotas, and claims of devices.

use serde_json::{Value, json};

use super::Stream;
use super::legal::{expect_checked, expect_stale};
use super::story::{Story, named, patch, with};
use crate::invariants::{QUOTA, RESOURCE_CLAIM, TTL_AFTER_FINISHED};

const LIVE: &str = "jobs_live_for_their_time_to_live";
const EXPIRED: &str = "expired_jobs_are_deleted";
const COUNTS: &str = "a_quota_counts_what_is_there";
const TRUE_AT_REST: &str = "quotas_are_true_at_rest";
const KEEP: &str = "pods_that_may_run_keep_their_devices";
const IN_USE: &str = "no_claim_in_use_loses_its_devices";
const BELONG: &str = "devices_belong_to_pods_at_rest";
const HAVE: &str = "every_pod_has_its_claims";
const LONG: i64 = 1000;

/// A Job that is complete since now.
fn finished(story: &mut Story, time_to_live: i64) {
    let done = json!([{ "type": "Complete", "status": "True", "lastTransitionTime": story.now() }]);
    let spec = json!({ "parallelism": 1, "completions": 0, "ttlSecondsAfterFinished": time_to_live });
    story.user(with(named("Job", "sums"), &json!({ "spec": spec, "status": { "conditions": done } })));
}

fn quota(story: &mut Story) {
    story.user(with(named("ResourceQuota", "cap"), &json!({ "spec": { "hard": { "configmaps": "10" } } })));
}

/// The status of the quota, with so many config maps.
fn counts(used: i64) -> Value {
    let status = json!({ "hard": { "configmaps": "10" }, "used": { "configmaps": used.to_string() } });
    patch("ResourceQuota", "cap", &json!({ "status": status }))
}

/// A pod that wants a claim by a template, has it if `named`, and runs on a node.
fn user_of_devices(name: &str) -> Value {
    with(
        named("Pod", name),
        &json!({
            "spec": { "nodeName": "node-1", "resourceClaims": [{ "name": "device", "resourceClaimTemplateName": "devices" }] },
            "status": { "phase": "Running", "resourceClaimStatuses": [{ "name": "device", "resourceClaimName": "claim" }] },
        }),
    )
}

/// A claim that is allocated, and reserved for the pods of these uids.
fn reserved_for(uids: &[String]) -> Value {
    let pods: Vec<Value> = uids.iter().map(|uid| json!({ "resource": "pods", "name": "user", "uid": uid })).collect();
    patch("ResourceClaim", "claim", &json!({ "status": { "allocation": { "devices": {} }, "reservedFor": pods } }))
}

/// A pod `user` and its claim, which is in use.
fn in_use(story: &mut Story) {
    story.node(named("Node", "node-1"));
    story.node(user_of_devices("user"));
    let uid = story.uid("Pod", "user");
    let claim = story.owned(reserved_for(&[uid]), "Pod", "user");
    story.node(claim);
    story.wait(LONG);
}

/// The allocation is taken back.
fn released() -> Value {
    json!({ "kind": "ResourceClaim", "metadata": { "name": "claim" }, "status": { "allocation": null } })
}

fn ended() -> Value {
    patch("Pod", "user", &json!({ "status": { "phase": "Succeeded" } }))
}

pub(super) const VIOLATIONS: &[(&str, Stream)] = &[
    (LIVE, |story| {
        finished(story, 100);
        story.wait(50);
        story.deletes(TTL_AFTER_FINISHED, "Job", "sums");
    }),
    (EXPIRED, |story| {
        finished(story, 100);
        story.wait(LONG);
        story.user(named("ConfigMap", "later"));
        story.rest();
    }),
    (COUNTS, |story| {
        quota(story);
        story.user(named("ConfigMap", "one"));
        story.wait(LONG);
        story.write(QUOTA, counts(2));
    }),
    (TRUE_AT_REST, |story| {
        quota(story);
        story.user(named("ConfigMap", "one"));
        story.user(counts(0));
        story.rest();
    }),
    (KEEP, |story| {
        in_use(story);
        story.write(RESOURCE_CLAIM, reserved_for(&[]));
    }),
    (IN_USE, |story| {
        in_use(story);
        story.write(RESOURCE_CLAIM, released());
    }),
    (BELONG, |story| {
        in_use(story);
        story.node(ended());
        story.rest();
    }),
    (HAVE, |story| {
        story.node(user_of_devices("user"));
        story.rest();
    }),
];

pub(super) const LEGAL: &[(&str, Stream)] = &[
    ("a Job is deleted when its time to live is over", |story| {
        finished(story, 100);
        story.wait(101);
        story.deletes(TTL_AFTER_FINISHED, "Job", "sums");
        expect_checked(story, LIVE);
    }),
    ("a Job is deleted by a user at any time", |story| {
        finished(story, 100);
        story.user_deletes("Job", "sums");
        story.expect(LIVE, |count| count.checked == 0);
    }),
    ("a quota counts what is there", |story| {
        quota(story);
        story.user(named("ConfigMap", "one"));
        story.wait(LONG);
        story.write(QUOTA, counts(1));
        expect_checked(story, COUNTS);
        story.rest();
        expect_checked(story, TRUE_AT_REST);
    }),
    ("a quota counts what its controller was shown", |story| {
        quota(story);
        story.user(named("ConfigMap", "one"));
        story.wait(LONG);
        story.freeze("ConfigMap");
        story.user(named("ConfigMap", "two"));
        story.write(QUOTA, counts(1));
        expect_stale(story, COUNTS);
    }),
    ("a quota need not count what nobody can read", |story| {
        quota(story);
        story.user(named("ConfigMap", "bystander"));
        story.wait(LONG);
        story.write(QUOTA, counts(0));
        expect_checked(story, COUNTS);
        story.rest();
    }),
    ("the devices of a pod that ended are free", |story| {
        in_use(story);
        story.node(ended());
        story.write(RESOURCE_CLAIM, reserved_for(&[]));
        expect_checked(story, KEEP);
        story.write(RESOURCE_CLAIM, released());
        expect_checked(story, IN_USE);
        story.deletes(RESOURCE_CLAIM, "ResourceClaim", "claim");
        story.rest();
    }),
    ("a pod that came back is not known yet", |story| {
        in_use(story);
        story.node(ended());
        story.freeze("Pod");
        story.node(patch("Pod", "user", &json!({ "status": { "phase": "Running" } })));
        story.write(RESOURCE_CLAIM, reserved_for(&[]));
        expect_stale(story, KEEP);
    }),
    ("a pod has the claim that was made for it", |story| {
        in_use(story);
        story.rest();
        expect_checked(story, HAVE);
        expect_checked(story, BELONG);
    }),
];

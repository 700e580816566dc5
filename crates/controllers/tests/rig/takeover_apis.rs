//! Objects of the controllers that look after the API and devices, for the take-over.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::DeviceTaintRule;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};
use steersman_testing::objects::{self, ObjectBuilder as _, PodBuilder as _};
use steersman_testing::{Failure, TestCluster};

use crate::scenarios::attach_detach::until_ready;
use crate::scenarios::device_taint_eviction::{driver, publish, rules, tolerating, until_reason};
use crate::scenarios::resourceclaim::{allocate_device, claim, pod_with_claim, pod_with_template, template};
use crate::scenarios::service_cidr::{create_range, create_service, is_blocked, is_ready, ranges, ready};
use crate::scenarios::storage_version_migrator::{create_tart, migrate, store_in_v2, until_condition};
use crate::scenarios::support::gated::{ask, create_group, groups, member, until_answered};
use crate::scenarios::validatingadmissionpolicy_status::{create as create_policy, until_checked};

/// Creates ranges of addresses, migrations that have ended, a policy with a warning, claims of devices, groups of pods, rules
/// and requests about devices; each in the states that it can rest in.
pub(crate) async fn create(cluster: &TestCluster) -> Result<(), Failure> {
    for (name, range, address) in [("more", "10.250.0.0/24", "10.250.0.9"), ("leaving", "10.251.0.0/24", "10.251.0.9")]
    {
        create_range(cluster, name, range).await?;
        cluster.until_eq("it is ready", || ready(cluster, name), is_ready()).await?;
        create_service(cluster, &format!("in-{name}"), address).await?;
    }
    ranges(cluster).delete("leaving", &DeleteParams::default()).await?;
    cluster.until_eq("it is in use", || ready(cluster, "leaving"), is_blocked()).await?;

    create_tart(cluster, "plum").await?;
    store_in_v2(cluster).await?;
    migrate(cluster, "to-v2", "migration.example.com", "tarts").await?;
    until_migrated(cluster, "to-v2").await?;
    check_policy(cluster, "warned", "object.spec.replica > 1").await?;
    check_policy(cluster, "right", "object.spec.replicas > 1").await?;
    devices(cluster).await?;

    for group in ["gang", "leaving"] {
        create_group(cluster, group, json!({})).await?;
        cluster.create(member(&format!("member-of-{group}"), group).on_node(&node(cluster))).await?;
    }
    groups(cluster).delete("leaving", &DeleteParams::default()).await?;
    Ok(())
}

/// What happens while we are in charge: another of each.
pub(crate) async fn change(cluster: &TestCluster) -> Result<(), Failure> {
    create_range(cluster, "of-ours", "10.252.0.0/24").await?;
    cluster.until_eq("it is ready", || ready(cluster, "of-ours"), is_ready()).await?;
    create_service(cluster, "in-of-ours", "10.252.0.9").await?;
    migrate(cluster, "of-ours", "migration.example.com", "tarts").await?;
    until_migrated(cluster, "of-ours").await?;
    check_policy(cluster, "of-ours", "object.spec.templates.size() > 1").await?;
    cluster.create(pod_with_template("trains-for-us", "gpus")).await?;
    until_ready(cluster, "trains-for-us").await?;
    use_device(cluster, "of-ours", "gpu-1").await?;
    create_rule(cluster, "of-ours", "gpu-1", "NoExecute").await?;
    until_reason(cluster, "of-ours", "PodsPendingEviction").await?;
    ask(cluster, "of-ours", json!({})).await?;
    until_answered(cluster, "of-ours").await?;
    create_group(cluster, "of-ours", json!({})).await?;
    cluster.create(member("member-of-ours", "of-ours").on_node(&node(cluster))).await?;
    Ok(())
}

/// A claim from a template that is in use, a device that is to be vacated in an hour, a rule that only reports, and a request that
/// is answered.
async fn devices(cluster: &TestCluster) -> Result<(), Failure> {
    let request = json!({ "name": "gpu", "exactly": { "deviceClassName": "simulated.steersman.dev" } });
    let spec = json!({ "spec": { "spec": { "devices": { "requests": [request] } } } });
    cluster.create(template("gpus").with(spec)).await?;
    cluster.create(pod_with_template("trains", "gpus")).await?;
    until_ready(cluster, "trains").await?;

    publish(cluster, &json!([])).await?;
    use_device(cluster, "vacates", "gpu-0").await?;
    cluster.settle().await?;
    create_rule(cluster, "broken", "gpu-0", "NoExecute").await?;
    until_reason(cluster, "broken", "PodsPendingEviction").await?;
    create_rule(cluster, "dry-run", "gpu-0", "None").await?;
    until_reason(cluster, "dry-run", "NoEffect").await?;
    ask(cluster, "status", json!({})).await?;
    until_answered(cluster, "status").await.map(drop)
}

/// A pod whose claim has a device, and tolerates for an hour that it is broken.
async fn use_device(cluster: &TestCluster, name: &str, device: &str) -> Result<(), Failure> {
    cluster.create(claim(name)).await?;
    let pod: Pod = cluster.create(pod_with_claim(name, name).on_node(&node(cluster))).await?;
    let result = json!({
        "request": "gpu", "driver": driver(cluster), "pool": "pool", "device": device, "tolerations": tolerating(Some(3600)),
    });
    allocate_device(cluster, name, &result, &[&pod]).await
}

async fn create_rule(cluster: &TestCluster, name: &str, device: &str, effect: &str) -> Result<(), Failure> {
    let selector = json!({ "driver": driver(cluster), "pool": "pool", "device": device });
    let spec = json!({ "deviceSelector": selector, "taint": { "key": "example.com/broken", "effect": effect } });
    let rule = DeviceTaintRule { metadata: objects::named(name), ..DeviceTaintRule::default() };
    rules(cluster).create(&PostParams::default(), &rule.with(json!({ "spec": spec }))).await?;
    Ok(())
}

async fn until_migrated(cluster: &TestCluster, name: &str) -> Result<(), Failure> {
    until_condition(cluster, name, "Succeeded", "StorageVersionMigrationSucceeded", "Migration completed").await
}

async fn check_policy(cluster: &TestCluster, name: &str, expression: &str) -> Result<Value, Failure> {
    let rule = json!({
        "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"],
    });
    let spec = json!({
        "matchConstraints": { "resourceRules": [rule] }, "validations": [{ "expression": expression }],
    });
    create_policy(cluster, name, &spec).await?;
    until_checked(cluster, name, 1).await
}

/// A node of the test that nobody schedules to.
fn node(cluster: &TestCluster) -> String {
    format!("{}-a", cluster.namespace())
}

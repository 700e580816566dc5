//! Bad input of storage and of the API's upkeep: each is reported where upstream reports it, the others go on, and health says who
//! cannot work.

use std::collections::BTreeSet;
use std::time::Duration;

use http::StatusCode;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use steersman_runtime::health::{Ask, Probe};
use steersman_testing::nodes::{AttacherOptions, NodesOptions, ProvisionerOptions};
use steersman_testing::{Failure, Fault, Faults, TestCluster, Verb, expect, expect_eq};

use crate::scenarios::attach_detach::{Disk, pod_on};
use crate::scenarios::persistentvolume_binder::{bound_volume, claim, until_claim, until_event, volume};
use crate::scenarios::storage_version_migrator::{self as migrator, condition, create_tart, migrate, store_in_v2};
use crate::scenarios::support::controllers::{self, Controller};
use crate::scenarios::validatingadmissionpolicy_status::{create as create_policy, until_checked};

const CONTROLLERS: &[Controller] = &[
    controllers::VOLUME_BINDER,
    controllers::ATTACH_DETACH,
    controllers::VOLUME_EXPANDER,
    controllers::SELINUX_WARNING,
    controllers::CLAIM_PROTECTION,
    controllers::STORAGE_VERSION_MIGRATOR,
    controllers::POLICY_STATUS,
    controllers::REPLICA_SET,
];

/// The probes that fail, and which of their checks.
fn failing(cluster: &TestCluster) -> Vec<(&'static str, BTreeSet<String>)> {
    let failing = |probe: Probe| {
        let report = cluster.manager().health().report(probe, &Ask::default());
        let failed = report.text.lines().filter_map(|line| line.strip_prefix("[-]")?.split_once(' '));
        let failed: BTreeSet<_> = failed.map(|(name, _)| name.to_owned()).collect();
        (!report.passed).then_some((probe.name(), failed))
    };
    Probe::ALL.into_iter().filter_map(failing).collect()
}

/// Two claims for one volume, a volume that somebody edits, a node that vanishes with a volume attached, a definition that goes
/// in mid-migration, a policy that does not type-check: nothing of it is a problem of the manager.
#[tokio::test(start_paused = true)]
async fn bad_input_is_reported_and_every_controller_stays_well() -> Result<(), Failure> {
    let nodes = NodesOptions::count(2)
        .provisioner(Some(ProvisionerOptions::default().default_class(false)))
        .attacher(Some(AttacherOptions::default()));
    let cluster = TestCluster::builder().controllers(CONTROLLERS).define(migrator::definition()).nodes_with(nodes);
    let cluster = cluster.start().await?;
    let contested = contested_volume(&cluster).await?;
    vanished_node(&cluster).await?;
    removed_definition(&cluster).await?;
    let rule = json!({
        "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"],
    });
    let validations = json!([{ "expression": "object.spec.replica > 1" }]);
    create_policy(
        &cluster,
        "wrong",
        &json!({ "matchConstraints": { "resourceRules": [rule] }, "validations": validations }),
    )
    .await?;
    let warnings = until_checked(&cluster, "wrong", 1).await?;
    expect_eq("warnings", &warnings.as_array().map(Vec::len), &Some(1))?;

    cluster.settle().await?;
    expect_eq("what health complains about", &failing(&cluster), &Vec::new())?;
    expect_eq("the contested volume is", &bound_volume(&cluster, "first").await?, &contested)?;
    let late = volume(&cluster, "late", "1Gi", json!({})).await?;
    claim(&cluster, "late", json!({ "spec": { "volumeName": late } })).await?;
    expect_eq("others are bound: the volume", &bound_volume(&cluster, "late").await?, &late)?;
    cluster.stop().await
}

/// Two claims name one volume, and then somebody takes it away from the one that has it; returns the volume.
async fn contested_volume(cluster: &TestCluster) -> Result<String, Failure> {
    let contested = volume(cluster, "contested", "1Gi", json!({})).await?;
    let named = json!({ "spec": { "volumeName": contested } });
    claim(cluster, "first", named.clone()).await?;
    bound_volume(cluster, "first").await?;
    claim(cluster, "second", named).await?;
    until_event(cluster, "second", "FailedBinding").await?;
    let volumes: Api<k8s_openapi::api::core::v1::PersistentVolume> = Api::all(cluster.client());
    let patch = kube::api::Patch::Merge(json!({ "spec": { "claimRef": null } }));
    volumes.patch(&contested, &kube::api::PatchParams::default(), &patch).await?;
    let owner = async || {
        let spec = volumes.get(&contested).await?.spec.unwrap_or_default();
        Ok(spec.claim_ref.unwrap_or_default().name)
    };
    cluster.until_eq("it goes back", owner, Some("first".to_owned())).await?;
    until_claim(cluster, "second", "Pending").await?;
    Ok(contested)
}

/// A node and its object go while a volume is attached to it; with its pod, the attachment goes after six minutes.
async fn vanished_node(cluster: &TestCluster) -> Result<(), Failure> {
    let disk = Disk::new(cluster, "ReadWriteOnce", true).await?;
    cluster.create(pod_on("node-0", "web")).await?;
    disk.until_attached_to(&["node-0"]).await?;
    cluster.nodes().remove("node-0")?;
    let exists = async || Ok(Api::<Node>::all(cluster.client()).get_opt("node-0").await?.is_some());
    cluster.until_eq("the node is gone", exists, false).await?;
    cluster.api::<Pod>().delete("web", &DeleteParams::default().grace_period(0)).await?;
    cluster.advance(Duration::from_secs(400)).await;
    expect_eq("attachments", &disk.attachments().await?.len(), &0)
}

/// The definition goes while the first of its objects is being written: the migration comes to an end, and says how.
async fn removed_definition(cluster: &TestCluster) -> Result<(), Failure> {
    for name in ["apple", "plum"] {
        create_tart(cluster, name).await?;
    }
    store_in_v2(cluster).await?;
    cluster.faults().on(Verb::Patch, "tarts").next(1).happens(Fault::Delay(Duration::from_secs(20)));
    migrate(cluster, "doomed", "migration.example.com", "tarts").await?;
    let running = async || Ok(condition(cluster, "doomed", "Running").await?.map(|reported| reported.0));
    cluster.until_eq("it has begun", running, Some("True".to_owned())).await?;
    cluster.advance(Duration::from_secs(2)).await;
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client());
    definitions.delete("tarts.migration.example.com", &DeleteParams::default()).await?;
    let ended = async || {
        let failed = condition(cluster, "doomed", "Failed").await?.is_some_and(|reported| reported.0 == "True");
        let succeeded = condition(cluster, "doomed", "Succeeded").await?.is_some_and(|reported| reported.0 == "True");
        Ok((failed || succeeded, running().await?))
    };
    cluster.until_eq("it has ended", ended, (true, Some("False".to_owned()))).await
}

/// Volumes may not be read: those who need them say so, and nobody else; when they can be, all is well.
#[tokio::test(start_paused = true)]
async fn only_those_who_need_an_unreadable_resource_are_not_ready() -> Result<(), Failure> {
    let faults = Faults::default();
    for verb in [Verb::List, Verb::Watch] {
        faults.on(verb, "persistentvolumes").refuse(StatusCode::FORBIDDEN);
    }
    let cluster = TestCluster::builder().controllers(CONTROLLERS).faults(&faults).start().await?;
    let needing: BTreeSet<String> = [
        "persistentvolume-binder-controller",
        "persistentvolume-attach-detach-controller",
        "selinux-warning-controller",
    ]
    .map(str::to_owned)
    .into();
    cluster.advance(Duration::from_secs(120)).await;
    let failed = failing(&cluster);
    let [(probe, checks)] = &failed[..] else {
        return Err(Failure::new(format!("one probe should fail: {failed:?}")));
    };
    expect_eq("the probe", probe, &"readyz")?;
    let others: Vec<_> = checks.difference(&needing).filter(|name| name.ends_with("-controller")).collect();
    expect(others.is_empty(), "nobody else is not ready", &others)?;
    expect_eq("who is not ready", &checks.intersection(&needing).cloned().collect::<BTreeSet<_>>(), &needing)?;

    // The others work.
    let rule = json!({ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"] });
    let spec = json!({
        "matchConstraints": { "resourceRules": [rule] }, "validations": [{ "expression": "object.spec.nothing > 1" }],
    });
    create_policy(&cluster, "works", &spec).await?;
    expect(until_checked(&cluster, "works", 1).await? != Value::Null, "it is checked", &"no warning")?;
    cluster.faults().heal();
    cluster.advance(Duration::from_secs(120)).await;
    expect_eq("what health complains about", &failing(&cluster), &Vec::new())?;
    cluster.stop().await
}

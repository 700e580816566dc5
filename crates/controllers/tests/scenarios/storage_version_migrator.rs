//! Objects are stored in the current version of their resource.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};
use steersman_testing::{Builder, Failure, TestCluster, expect_eq};

use crate::scenarios::support::controllers;

scenarios! {
    objects_of_a_definition_are_stored_in_its_new_version on cluster alone,
    migrations_of_one_resource_run_one_after_the_other on cluster alone,
    a_resource_that_does_not_come_or_goes_away_fails_its_migration on cluster,
}

const DEFINITION: &str = "tarts.migration.example.com";

pub(crate) fn cluster() -> Builder {
    TestCluster::builder().define(definition()).controllers(&[controllers::STORAGE_VERSION_MIGRATOR])
}

/// The storage version of a definition changes, its objects follow, and it forgets the old version.
pub(crate) async fn objects_of_a_definition_are_stored_in_its_new_version(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    for name in ["plum", "apple", "cherry"] {
        create_tart(cluster, name).await?;
    }
    store_in_v2(cluster).await?;
    let stored = async || Ok(definition_status(cluster).await?["storedVersions"].clone());
    cluster.until_eq("both versions are stored", stored, json!(["v1", "v2"])).await?;
    migrate(cluster, "to-v2", "migration.example.com", "tarts").await?;
    until_condition(cluster, "to-v2", "Succeeded", "StorageVersionMigrationSucceeded", "Migration completed").await?;
    cluster.until_eq("one is left", stored, json!(["v2"])).await?;
    let conditions = definition_status(cluster).await?["conditions"].clone();
    let migrating = conditions.as_array().into_iter().flatten().find(|it| it["type"] == "StorageMigrating").cloned();
    let migrating = migrating.unwrap_or_default();
    let reported = ["status", "reason", "message"].map(|field| migrating[field].as_str().unwrap_or_default());
    let message = "The migration has succeeded and the stored versions have been updated";
    expect_eq("what the definition says", &reported, &["False", "MigrationSucceeded", message])?;
    // The second one finds everything migrated, and takes nothing away.
    migrate(cluster, "again", "migration.example.com", "tarts").await?;
    until_condition(cluster, "again", "Succeeded", "StorageVersionMigrationSucceeded", "Migration completed").await?;
    let done = ("False".to_owned(), "MigrationCompleted".to_owned(), "Migration completed".to_owned());
    cluster.until_eq("it has stopped", || condition(cluster, "again", "Running"), Some(done)).await?;
    expect_eq("what is stored", &stored().await?, &json!(["v2"]))?;
    for name in ["plum", "apple", "cherry"] {
        let tart = tarts(cluster, "v2").get(name).await?;
        expect_eq("the object", &tart.data["spec"], &json!({ "slices": 8 }))?;
    }
    Ok(())
}

/// Both wait for their turn, and both get it.
pub(crate) async fn migrations_of_one_resource_run_one_after_the_other(cluster: &TestCluster) -> Result<(), Failure> {
    create_tart(cluster, "plum").await?;
    for name in ["first", "second"] {
        migrate(cluster, name, "migration.example.com", "tarts").await?;
    }
    migrate(cluster, "maps", "", "configmaps").await?;
    for name in ["first", "second", "maps"] {
        until_condition(cluster, name, "Succeeded", "StorageVersionMigrationSucceeded", "Migration completed").await?;
        until_condition_is(cluster, name, "Running", "False").await?;
    }
    Ok(())
}

/// One never comes; the other has begun when its definition is deleted.
pub(crate) async fn a_resource_that_does_not_come_or_goes_away_fails_its_migration(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let absent = format!("{}-absent", cluster.namespace());
    let gone = format!("{}-gone", cluster.namespace());
    migrate(cluster, &absent, "nowhere.example.com", "pies").await?;
    migrate(cluster, &gone, "elsewhere.example.com", "pies").await?;
    until_condition_is(cluster, &gone, "Running", "True").await?;
    let begun = Patch::Merge(json!({ "status": { "resourceVersion": "1" } }));
    migrations(cluster).patch_status(&gone, &PatchParams::default(), &begun).await?;
    cluster.advance(Duration::from_secs(50)).await;
    let reason = "StorageVersionMigrationFailed";
    until_condition(cluster, &absent, "Failed", reason, "resource does not exist in discovery").await?;
    let message = "migration encountered unhandled error: unable to obtain GVR from discovery";
    until_condition(cluster, &gone, "Failed", reason, message).await?;
    for name in [&absent, &gone] {
        until_condition_is(cluster, name, "Running", "False").await?;
    }
    Ok(())
}

/// Status, reason and message of a condition.
pub(crate) type Reported = Option<(String, String, String)>;

pub(crate) async fn condition(cluster: &TestCluster, name: &str, type_: &str) -> Result<Reported, Failure> {
    let migration = migrations(cluster).get(name).await?;
    let conditions = migration.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let held = conditions.iter().find(|condition| condition["type"] == type_);
    Ok(held.map(|held| (text(&held["status"]), text(&held["reason"]), text(&held["message"]))))
}

pub(crate) async fn until_condition(
    cluster: &TestCluster,
    name: &str,
    type_: &str,
    reason: &str,
    message: &str,
) -> Result<(), Failure> {
    let want = Some(("True".to_owned(), reason.to_owned(), message.to_owned()));
    cluster.until_eq(&format!("{name} is {type_}"), || condition(cluster, name, type_), want).await
}

async fn until_condition_is(cluster: &TestCluster, name: &str, type_: &str, status: &str) -> Result<(), Failure> {
    let look = async || Ok(condition(cluster, name, type_).await?.map(|reported| reported.0));
    cluster.until_eq(&format!("{type_} of {name}"), look, Some(status.to_owned())).await
}

pub(crate) fn migrations(cluster: &TestCluster) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("storagemigration.k8s.io", "v1", "StorageVersionMigration");
    Api::all_with(cluster.client(), &ApiResource::from_gvk_with_plural(&kind, "storageversionmigrations"))
}

pub(crate) async fn migrate(cluster: &TestCluster, name: &str, group: &str, resource: &str) -> Result<(), Failure> {
    let object = json!({
        "apiVersion": "storagemigration.k8s.io/v1", "kind": "StorageVersionMigration",
        "metadata": { "name": name }, "spec": { "resource": { "group": group, "resource": resource } },
    });
    let object = serde_json::from_value(object).map_err(Failure::new)?;
    migrations(cluster).create(&PostParams::default(), &object).await?;
    Ok(())
}

fn tarts(cluster: &TestCluster, version: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("migration.example.com", version, "Tart");
    let resource = ApiResource::from_gvk_with_plural(&kind, "tarts");
    Api::namespaced_with(cluster.client(), cluster.namespace(), &resource)
}

pub(crate) async fn create_tart(cluster: &TestCluster, name: &str) -> Result<(), Failure> {
    let object = json!({
        "apiVersion": "migration.example.com/v1", "kind": "Tart", "metadata": { "name": name },
        "spec": { "slices": 8 },
    });
    let object = serde_json::from_value(object).map_err(Failure::new)?;
    tarts(cluster, "v1").create(&PostParams::default(), &object).await?;
    Ok(())
}

async fn definition_status(cluster: &TestCluster) -> Result<Value, Failure> {
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client());
    let definition = definitions.get(DEFINITION).await?;
    serde_json::to_value(definition.status).map_err(Failure::new)
}

pub(crate) async fn store_in_v2(cluster: &TestCluster) -> Result<(), Failure> {
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client());
    let mut spec = definition()["spec"].clone();
    spec["versions"][0]["storage"] = false.into();
    spec["versions"][1]["storage"] = true.into();
    let versions = Patch::Merge(json!({ "spec": { "versions": spec["versions"] } }));
    definitions.patch(DEFINITION, &PatchParams::default(), &versions).await?;
    Ok(())
}

pub(crate) fn definition() -> Value {
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let version = |name: &str, storage: bool| json!({ "name": name, "served": true, "storage": storage, "schema": { "openAPIV3Schema": schema } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": DEFINITION },
        "spec": {
            "group": "migration.example.com", "scope": "Namespaced",
            "names": { "plural": "tarts", "singular": "tart", "kind": "Tart", "listKind": "TartList" },
            "versions": [version("v1", true), version("v2", false)],
        },
    })
}

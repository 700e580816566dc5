//! Tables of the decisions.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_base::{Meta, Resource, ResourceVersion};
use steersman_informer::Change;
use steersman_model::storagemigration::{StorageVersionMigrationStatus, StorageVersionMigrationView};

use super::status::Progress;
use super::{definition, map, plan, status};
use crate::test_objects::{NOW, decode, merged, now};

const CAKES: Resource = Resource::namespaced("example.com", "v2", "cakes", "Cake");

fn migration(name: &str, conditions: &[(&str, &str)], more: Value) -> Arc<StorageVersionMigrationView> {
    let conditions: Vec<_> =
        conditions.iter().map(|(type_, status)| json!({ "type": type_, "status": status })).collect();
    let object = json!({
        "metadata": { "name": name, "uid": name, "generation": 3, "creationTimestamp": NOW },
        "spec": { "resource": { "group": "example.com", "resource": "cakes" } },
        "status": { "conditions": conditions },
    });
    Arc::new(decode(merged(object, more)))
}

fn written(status: &StorageVersionMigrationStatus, type_: &str) -> [String; 3] {
    let held = status.conditions.iter().find(|condition| condition.type_ == type_).expect("the condition");
    [held.status.as_str().to_owned(), held.reason.to_string(), held.message.to_string()]
}

#[test]
fn one_migration_of_a_resource_runs_at_a_time_and_the_oldest_is_next() {
    let running = migration("running", &[("Running", "True")], json!({}));
    let ended = migration("ended", &[("Running", "True"), ("Succeeded", "True")], json!({}));
    let past = migration("past", &[("Running", "False"), ("Failed", "True")], json!({}));
    let young = migration("a-young", &[], json!({}));
    let old = migration("old", &[], json!({ "metadata": { "creationTimestamp": "2026-11-15T11:00:00Z" } }));
    let twin = migration("b-young", &[], json!({}));
    let check = |all: &[&Arc<StorageVersionMigrationView>], want_ended: &[&str], want_next: Option<&str>| {
        let all: Vec<_> = all.iter().map(|it| Arc::clone(it)).collect();
        let turn = plan::turn(&all);
        let ended: Vec<_> = turn.ended.iter().map(|it| &*it.metadata.name).collect();
        assert_eq!(ended, want_ended);
        assert_eq!(turn.next.as_ref().map(|it| &*it.metadata.name), want_next);
    };
    check(&[], &[], None);
    check(&[&young, &old], &[], Some("old"));
    check(&[&twin, &young], &[], Some("a-young"));
    check(&[&young, &running], &[], None);
    check(&[&running, &young], &[], None);
    // One that has ended makes room for the next when it is not Running any more: until then the definition is its own.
    check(&[&ended, &young, &past], &["ended"], None);
    check(&[&young, &past], &[], Some("a-young"));
    check(&[&past], &[], None);
}

#[test]
fn a_migration_needs_its_turn_then_a_version_then_it_migrates() {
    let version = json!({ "status": { "resourceVersion": "7" } });
    let check = |conditions: &[(&str, &str)], more: Value, want: (bool, bool)| {
        let it = migration("a", conditions, more);
        assert_eq!((plan::needs_version(&it), plan::is_migratable(&it)), want, "{conditions:?}");
        let change = Change::Added { new: it, initial: true };
        assert_eq!(map::migration(&change, plan::is_migratable).is_some(), want.1);
        assert_eq!(map::resources(&change)[0].to_string(), "cakes.example.com");
    };
    check(&[], json!({}), (false, false));
    check(&[("Running", "True")], json!({}), (true, false));
    check(&[("Running", "True")], version.clone(), (false, true));
    check(&[("Running", "True"), ("Failed", "True")], version.clone(), (false, false));
    check(&[("Running", "True"), ("Succeeded", "True")], version, (false, false));
}

#[test]
fn objects_that_were_written_later_are_left_alone() {
    let object = |name: &str, version: &str| -> Arc<Meta> {
        Arc::new(decode(json!({ "metadata": { "name": name, "uid": name, "resourceVersion": version } })))
    };
    let all = vec![object("old", "9"), object("same", "100"), object("new", "101")];
    let work = plan::work(all, &ResourceVersion::new("100")).expect("comparable versions");
    assert_eq!(work.total, 3);
    assert_eq!(work.objects.iter().map(|it| &*it.name).collect::<Vec<_>>(), ["old", "same"]);
    let patch = json!({
        "apiVersion": "example.com/v2", "kind": "Cake", "metadata": { "uid": "old", "resourceVersion": "9" },
    });
    assert_eq!(plan::patch(&CAKES, &work.objects[0]), patch);
    for (version, up_to, wrong) in [("a", "100", "a"), ("1", "b", "b"), ("", "1", ""), ("01", "1", "01")] {
        let refused = plan::work(vec![object("odd", version)], &ResourceVersion::new(up_to));
        let want = format!("resource version is not well formed: {wrong}");
        assert_eq!(refused.map(|work| work.total).map_err(|error| error.to_string()), Err(want), "{version} {up_to}");
    }
    assert_eq!(plan::words(&CAKES), "example.com/v2, Resource=cakes");
}

#[test]
fn a_resource_may_come_within_a_minute() {
    let created = |time: &str| migration("a", &[], json!({ "metadata": { "creationTimestamp": time } }));
    assert!(plan::may_come(&created(NOW), now()));
    assert!(plan::may_come(&created("2026-11-15T11:59:01Z"), now()));
    assert!(!plan::may_come(&created("2026-11-15T11:59:00Z"), now()));
}

#[test]
fn conditions_have_the_words_of_upstream() {
    let fresh = migration("a", &[], json!({}));
    let running = migration("a", &[("Running", "True")], json!({ "status": { "resourceVersion": "7" } }));
    let texts = |parts: [&str; 3]| parts.map(str::to_owned);
    let started = status::started(&fresh, now());
    assert_eq!(written(&started, "Running"), texts(["True", "MigrationRunning", "The migration is running"]));
    assert_eq!(status::started(&running, now()), running.status, "it is started once");
    let versioned = status::versioned(&running, "12");
    assert_eq!((&*versioned.resource_version, versioned.conditions.len()), ("12", 1));
    let refused = status::refused(&running, "resource does not exist in discovery", now());
    let why = "resource does not exist in discovery";
    assert_eq!(written(&refused, "Failed"), texts(["True", "StorageVersionMigrationFailed", why]));
    let progress = Progress { left: 2, total: 5 };
    let delayed = status::delayed(&running, progress, "busy", now());
    let message = "The migration is running, 2/5 objects not yet migrated; transient error: busy";
    assert_eq!(written(&delayed, "Running"), texts(["True", "MigrationRunning", message]));
    let failed = status::failed(&running, Some(progress), "no", now());
    let message = "2/5 not yet migrated. migration encountered unhandled error: no";
    assert_eq!(written(&failed, "Failed"), texts(["True", "StorageVersionMigrationFailed", message]));
    let message = "The migration is running, 2/5 objects not yet migrated";
    assert_eq!(written(&failed, "Running")[2], message);
    let failed = status::failed(&running, None, "no", now());
    assert_eq!(written(&failed, "Failed")[2], "migration encountered unhandled error: no");
    let succeeded = status::succeeded(&running, Progress { left: 0, total: 5 }, now());
    let want = texts(["True", "StorageVersionMigrationSucceeded", "Migration completed"]);
    assert_eq!(written(&succeeded, "Succeeded"), want);
    assert_eq!(written(&succeeded, "Running")[2], "The migration is running, 5 objects verified migrated");
    let empty = status::succeeded(&running, Progress::default(), now());
    assert_eq!(written(&empty, "Running")[2], "The migration is running");
    let stopped = status::stopped(&running, now());
    assert_eq!(written(&stopped, "Running"), texts(["False", "MigrationCompleted", "Migration completed"]));
    assert_eq!(stopped.conditions[0].observed_generation, 3);
    assert_eq!(&*stopped.resource_version, "7", "the rest stays");
}

#[test]
fn a_definition_loses_old_stored_versions_after_a_migration_that_saw_all_of_it() {
    let check = |observed: i64, is_success: bool, stored: &[&str], reason: &str, message: &str| {
        let cakes = json!({
            "metadata": { "name": "cakes.example.com", "uid": "u", "resourceVersion": "5", "generation": 2 },
            "spec": { "versions": [{ "name": "v1" }, { "name": "v2", "storage": true }] },
            "status": {
                "storedVersions": ["v1", "v2"],
                "conditions": [{ "type": "StorageMigrating", "status": "True", "observedGeneration": observed }],
            },
        });
        let applied = definition::migrated(&cakes, is_success, now()).expect("the definition has not been updated yet");
        let metadata = json!({ "name": "cakes.example.com", "uid": "u", "resourceVersion": "5" });
        assert_eq!(applied["metadata"], metadata);
        assert_eq!(applied["status"]["storedVersions"], json!(stored));
        let condition = json!({
            "type": "StorageMigrating", "status": "False", "reason": reason, "message": message,
            "lastTransitionTime": NOW, "observedGeneration": 2,
        });
        assert_eq!(applied["status"]["conditions"], json!([condition]));
    };
    let succeeded = "The migration has succeeded and the stored versions have been updated";
    check(2, true, &["v2"], "MigrationSucceeded", succeeded);
    let changed =
        "The migration has succeeded but the stored versions have not been updated due to a generation mismatch";
    check(1, true, &["v1", "v2"], "MigrationSucceeded", changed);
    // Objects may still be stored in the old version.
    check(2, false, &["v1", "v2"], "MigrationFailed", "The migration has failed");
    let cakes = json!({ "metadata": { "generation": 2 }, "status": { "storedVersions": ["v1"] } });
    let begun = definition::migrating(&cakes, "to-v2", now());
    assert_eq!(begun["status"]["conditions"][0]["message"], "Migration to-v2 is running");
    assert_eq!(begun["status"]["storedVersions"], json!(["v1"]), "what is not applied is removed");
}

#[test]
fn a_definition_is_updated_once_whatever_happens_to_the_write_that_follows() {
    let mut cakes = json!({
        "metadata": { "name": "cakes.example.com", "uid": "u", "resourceVersion": "5", "generation": 2 },
        "spec": { "versions": [{ "name": "v1" }, { "name": "v2", "storage": true }] },
        "status": {
            "storedVersions": ["v1", "v2"],
            "conditions": [{ "type": "StorageMigrating", "status": "True", "observedGeneration": 1 }],
        },
    });
    let written = definition::migrated(&cakes, true, now()).expect("the migration has not been written yet");
    assert_eq!(
        written["status"]["storedVersions"],
        json!(["v1", "v2"]),
        "the storage version may have changed meanwhile"
    );
    // The condition has the generation of now. A second pass must not take it for that of the beginning.
    cakes["status"]["conditions"] = written["status"]["conditions"].clone();
    assert_eq!(definition::migrated(&cakes, true, now()), None);
    assert_eq!(definition::migrated(&cakes, false, now()), None);
    // A definition that was deleted and created again knows nothing of the migration.
    cakes["status"]["conditions"] = json!([]);
    let written = definition::migrated(&cakes, true, now()).expect("nothing has been written");
    assert_eq!(written["status"]["storedVersions"], json!(["v1", "v2"]));
}

//! Pure: what the definition of a migrated resource says about its migration.

use serde_json::{Value, json};
use steersman_base::{Resource, Time};

/// The resource of definitions.
pub(super) const DEFINITIONS: Resource =
    Resource::cluster("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition");

const MIGRATING: &str = "StorageMigrating";

/// Returns the status to apply to a definition while a migration runs.
pub(super) fn migrating(definition: &Value, migration: &str, now: Time) -> Value {
    let message = format!("Migration {migration} is running");
    applied(definition, "True", "MigrationRunning", &message, now)
}

/// Returns the status to apply to a definition after its migration. If it has succeeded, and the definition has not changed
/// since the migration began, no object is stored in any other than the current version.
///
/// `None` if the definition has been updated already, by a pass whose next write was lost: its condition has another
/// generation since then, and would say that nothing has changed.
pub(super) fn migrated(definition: &Value, is_success: bool, now: Time) -> Option<Value> {
    let generation = definition["metadata"]["generation"].as_i64();
    let conditions = definition["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    let begun = conditions.iter().find(|condition| condition["type"] == MIGRATING);
    if begun.is_some_and(|begun| begun["status"] != "True") {
        return None;
    }
    let is_unchanged = begun.is_some_and(|begun| begun["observedGeneration"].as_i64() == generation);
    let reason = if is_success { "MigrationSucceeded" } else { "MigrationFailed" };
    let message = match (is_success, is_unchanged) {
        (true, true) => "The migration has succeeded and the stored versions have been updated",
        (true, false) => {
            "The migration has succeeded but the stored versions have not been updated due to a generation mismatch"
        }
        (false, _) => "The migration has failed",
    };
    let mut applied = applied(definition, "False", reason, message, now);
    if is_success && is_unchanged {
        let versions = definition["spec"]["versions"].as_array().map_or(&[][..], Vec::as_slice);
        let stored = versions.iter().find(|version| version["storage"] == true);
        if let Some(stored) = stored {
            applied["status"]["storedVersions"] = json!([stored["name"]]);
        }
    }
    Some(applied)
}

/// The version is the condition that the definition is the one that was read: its generation is part of the condition. The
/// stored versions are applied as they are, because what an applier does not name any more is removed.
fn applied(definition: &Value, status: &str, reason: &str, message: &str, now: Time) -> Value {
    let meta = &definition["metadata"];
    json!({
        "apiVersion": DEFINITIONS.api_version(),
        "kind": DEFINITIONS.kind,
        "metadata": { "name": meta["name"], "uid": meta["uid"], "resourceVersion": meta["resourceVersion"] },
        "status": {
            "conditions": [{
                "type": MIGRATING, "status": status, "reason": reason, "message": message, "lastTransitionTime": now,
                "observedGeneration": meta["generation"],
            }],
            "storedVersions": definition["status"]["storedVersions"],
        },
    })
}

//! Pure: which migration runs, and which objects it patches.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use steersman_base::{Meta, Resource, ResourceVersion, Time, condition};
use steersman_model::View;
use steersman_model::storagemigration::StorageVersionMigrationView;

use super::status::{FAILED, RUNNING, SUCCEEDED};

/// The time that a migration waits after its creation for a resource that discovery does not show: twice the time
/// between two requests of discovery.
const KNOWN_WITHIN: Duration = Duration::from_secs(60);

/// The action of the runner on the migrations of one resource.
#[derive(Clone, Debug, Default)]
pub(super) struct Turn {
    /// Those that have ended, and are still Running.
    pub(super) ended: Vec<Arc<StorageVersionMigrationView>>,
    /// The one that becomes Running: the oldest, if none is. While one that has ended is still Running, the definition of
    /// the resource is its own.
    pub(super) next: Option<Arc<StorageVersionMigrationView>>,
}

/// The objects of a resource, and those that are to be patched.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Work {
    pub(super) total: usize,
    pub(super) objects: Vec<Arc<Meta>>,
}

/// A version that is not comparable, with upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("resource version is not well formed: {0}")]
pub(super) struct NotWellFormed(pub(super) String);

/// Whether a migration has succeeded or failed.
pub(super) fn has_ended(migration: &StorageVersionMigrationView) -> bool {
    let conditions = &migration.status.conditions;
    condition::is_true(conditions, SUCCEEDED) || condition::is_true(conditions, FAILED)
}

fn is_running(migration: &StorageVersionMigrationView) -> bool {
    condition::is_true(&migration.status.conditions, RUNNING)
}

/// Whether a migration runs and does not know the version up to which it migrates.
pub(super) fn needs_version(migration: &StorageVersionMigrationView) -> bool {
    is_running(migration) && !has_ended(migration) && migration.status.resource_version.is_empty()
}

/// Whether a migration knows the version up to which it migrates, and has not ended.
pub(super) fn is_migratable(migration: &StorageVersionMigrationView) -> bool {
    !has_ended(migration) && !migration.status.resource_version.is_empty()
}

/// Whether a resource that discovery does not show may still come.
pub(super) fn may_come(migration: &StorageVersionMigrationView, now: Time) -> bool {
    migration.meta().creation_timestamp.is_some_and(|created| now.since(created) < KNOWN_WITHIN)
}

/// Returns what the runner does. `migrations` are those of one resource.
pub(super) fn turn(migrations: &[Arc<StorageVersionMigrationView>]) -> Turn {
    let ended = migrations.iter().filter(|it| is_running(it) && has_ended(it)).cloned().collect();
    let is_busy = migrations.iter().any(|it| is_running(it));
    let waiting = migrations.iter().filter(|it| !is_running(it) && !has_ended(it));
    let oldest = waiting.min_by(|left, right| {
        let left = left.meta();
        let right = right.meta();
        left.creation_timestamp.cmp(&right.creation_timestamp).then_with(|| left.name.cmp(&right.name))
    });
    Turn { ended, next: oldest.filter(|_| !is_busy).cloned() }
}

/// Returns the objects that are to be patched: those that have not been written since the migration began.
///
/// # Errors
/// A version is not comparable.
pub(super) fn work(objects: Vec<Arc<Meta>>, up_to: &ResourceVersion) -> Result<Work, NotWellFormed> {
    let total = objects.len();
    let mut old = Vec::new();
    for object in objects {
        let version = &object.resource_version;
        match version.compare(up_to).filter(|_| is_well_formed(version) && is_well_formed(up_to)) {
            Some(Ordering::Greater) => {}
            Some(Ordering::Equal | Ordering::Less) => old.push(object),
            None => {
                let wrong = if is_well_formed(version) { up_to } else { version };
                return Err(NotWellFormed(wrong.as_str().to_owned()));
            }
        }
    }
    Ok(Work { total, objects: old })
}

/// Whether versions such as this one can be compared: a positive number without leading zeros.
pub(super) fn is_well_formed(version: &ResourceVersion) -> bool {
    let text = version.as_str();
    !text.is_empty() && !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the patch that changes nothing: the API server stores the object in its current version. Uid and version are the
/// condition that it is still the same object, in the same state; another state has been stored in the current version.
pub(super) fn patch(resource: &Resource, object: &Meta) -> Value {
    json!({
        "apiVersion": resource.api_version(),
        "kind": resource.kind,
        "metadata": { "uid": object.uid, "resourceVersion": object.resource_version },
    })
}

/// Returns upstream's words for a resource in a version: `apps/v1, Resource=deployments`.
pub(super) fn words(resource: &Resource) -> String {
    format!("{}/{}, Resource={}", resource.group, resource.version, resource.plural)
}

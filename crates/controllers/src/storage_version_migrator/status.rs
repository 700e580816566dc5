//! Pure: the conditions of a migration.

use steersman_base::{Condition, ConditionStatus, Istr, Time, condition};
use steersman_model::View;
use steersman_model::storagemigration::{StorageVersionMigrationStatus, StorageVersionMigrationView};

pub(super) const RUNNING: &str = "Running";
pub(super) const SUCCEEDED: &str = "Succeeded";
pub(super) const FAILED: &str = "Failed";

const RUNNING_REASON: &str = "MigrationRunning";
const COMPLETED_REASON: &str = "MigrationCompleted";
const SUCCEEDED_REASON: &str = "StorageVersionMigrationSucceeded";
const FAILED_REASON: &str = "StorageVersionMigrationFailed";
const COMPLETED: &str = "Migration completed";

/// The progress of a migration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// The objects that are not migrated yet.
    pub(super) left: usize,
    /// All objects of the resource.
    pub(super) total: usize,
}

/// Returns the status of a migration that begins; unchanged if it has been Running before.
pub(super) fn started(migration: &StorageVersionMigrationView, now: Time) -> StorageVersionMigrationStatus {
    once(migration, RUNNING, RUNNING_REASON, &running_message(None, None), now)
}

/// Returns the status of a migration that has failed before it knew its objects; unchanged if it has failed before.
pub(super) fn refused(migration: &StorageVersionMigrationView, why: &str, now: Time) -> StorageVersionMigrationStatus {
    once(migration, FAILED, FAILED_REASON, why, now)
}

/// Returns the status with the version up to which objects are migrated.
pub(super) fn versioned(migration: &StorageVersionMigrationView, version: &str) -> StorageVersionMigrationStatus {
    StorageVersionMigrationStatus { resource_version: Istr::new(version), ..migration.status.clone() }
}

/// Returns the status of a migration that has ended, and is not Running any more.
pub(super) fn stopped(migration: &StorageVersionMigrationView, now: Time) -> StorageVersionMigrationStatus {
    let mut stopped = Condition::new(RUNNING, ConditionStatus::False).because(COMPLETED_REASON, COMPLETED);
    stopped.observed_generation = migration.meta().generation;
    with(migration, [stopped], now)
}

/// Returns the status of a migration that goes on after an error.
pub(super) fn delayed(
    migration: &StorageVersionMigrationView,
    progress: Progress,
    error: &str,
    now: Time,
) -> StorageVersionMigrationStatus {
    with(migration, [running(Some(progress), Some(error))], now)
}

/// Returns the status of a migration that has come to its end.
pub(super) fn succeeded(
    migration: &StorageVersionMigrationView,
    progress: Progress,
    now: Time,
) -> StorageVersionMigrationStatus {
    let done = Condition::new(SUCCEEDED, ConditionStatus::True).because(SUCCEEDED_REASON, COMPLETED);
    with(migration, [running(Some(progress), None), done], now)
}

/// Returns the status of a migration that cannot go on. `progress` is none if it knows nothing of its objects.
pub(super) fn failed(
    migration: &StorageVersionMigrationView,
    progress: Option<Progress>,
    error: &str,
    now: Time,
) -> StorageVersionMigrationStatus {
    let why = format!("migration encountered unhandled error: {error}");
    let failed = |why: &str| Condition::new(FAILED, ConditionStatus::True).because(FAILED_REASON, why);
    match progress {
        None => with(migration, [failed(&why)], now),
        Some(Progress { left, total }) => {
            let why = format!("{left}/{total} not yet migrated. {why}");
            with(migration, [running(progress, None), failed(&why)], now)
        }
    }
}

fn running(progress: Option<Progress>, error: Option<&str>) -> Condition {
    let message = running_message(progress, error);
    Condition::new(RUNNING, ConditionStatus::True).because(RUNNING_REASON, &message)
}

fn running_message(progress: Option<Progress>, error: Option<&str>) -> String {
    let mut message = "The migration is running".to_owned();
    match progress {
        Some(Progress { left, total }) if total > 0 && left > 0 => {
            message += &format!(", {left}/{total} objects not yet migrated");
        }
        Some(Progress { total, .. }) if total > 0 => message += &format!(", {total} objects verified migrated"),
        Some(_) | None => {}
    }
    if let Some(error) = error {
        message += &format!("; transient error: {error}");
    }
    message
}

/// Returns the status with a condition that holds, unless it has been decided before.
fn once(
    migration: &StorageVersionMigrationView,
    type_: &str,
    reason: &str,
    message: &str,
    now: Time,
) -> StorageVersionMigrationStatus {
    let held = condition::find(&migration.status.conditions, type_);
    if held.is_some_and(|held| held.status != ConditionStatus::Unknown) {
        return migration.status.clone();
    }
    with(migration, [Condition::new(type_, ConditionStatus::True).because(reason, message)], now)
}

fn with<const N: usize>(
    migration: &StorageVersionMigrationView,
    wanted: [Condition; N],
    now: Time,
) -> StorageVersionMigrationStatus {
    let mut conditions = migration.status.conditions.to_vec();
    for wanted in wanted {
        condition::set(&mut conditions, wanted, now);
    }
    StorageVersionMigrationStatus { conditions: conditions.into(), ..migration.status.clone() }
}

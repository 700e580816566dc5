//! The migration itself: every object that has not been written since it began is patched with nothing.

use steersman_base::{Meta, ObjectKey, Resource, ResourceVersion};
use steersman_informer::{Lister, Target};
use steersman_model::storagemigration::StorageVersionMigrationView;
use steersman_runtime::mapper::RestMapper;
use steersman_runtime::{Action, Context, Error, Patch, Reconciler, WriteError};

use super::super::plan;
use super::super::status::{self, Progress};
use super::{Why, not_there_yet, served, write};

/// Upstream's field manager of the patches.
const MANAGER: &str = "storage-version-migrator-controller";

/// The shell of the queue of migrations.
pub(in super::super) struct Migrator {
    pub(in super::super) migrations: Lister<StorageVersionMigrationView>,
    pub(in super::super) mapper: RestMapper,
}

/// The result of one patch.
enum Patched {
    /// The object is stored in the current version, or is gone.
    Done,
    /// The server cannot take it now.
    Later(WriteError),
    /// The server does not take it.
    Refused(WriteError),
}

// === impl Migrator ===

impl Reconciler for Migrator {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(migration) = self.migrations.get(key).filter(|it| plan::is_migratable(it)) else {
            return Ok(Action::Done);
        };
        let now = cx.clock.now();
        let Some(found) = served(&self.mapper, &migration).await? else {
            if plan::may_come(&migration, now) {
                return Err(not_there_yet(&self.mapper));
            }
            let failed = status::failed(&migration, None, "unable to obtain GVR from discovery", now);
            write(cx, &migration, &failed, &Why::Failed).await?;
            return Ok(Action::Done);
        };
        // A consistent list shows everything that was written before the version was read.
        let listed = cx.live.list_of::<Meta>(&Target::all(found.resource.clone())).await;
        let objects = listed.inspect_err(|_| self.mapper.invalidate())?;
        let up_to = ResourceVersion::new(&migration.status.resource_version);
        match plan::work(objects, &up_to) {
            Ok(work) => migrate(cx, &migration, &found.resource, work).await?,
            Err(error) => {
                let failed = status::failed(&migration, None, &error.to_string(), now);
                write(cx, &migration, &failed, &Why::Failed).await?;
            }
        }
        Ok(Action::Done)
    }
}

/// Patches the objects, and writes how that went. Those that are patched again after an error are in the current version
/// already, and are not written by the server.
async fn migrate(
    cx: &Context,
    migration: &StorageVersionMigrationView,
    resource: &Resource,
    work: plan::Work,
) -> Result<(), Error> {
    let mut progress = Progress { left: work.objects.len(), total: work.total };
    for object in &work.objects {
        match patch(cx, resource, object).await {
            Patched::Done => progress.left -= 1,
            Patched::Later(error @ WriteError::NotLeader) => return Err(error.into()),
            Patched::Later(error) => {
                let now = cx.clock.now();
                let delayed = status::delayed(migration, progress, &words(&error), now);
                // Whether this is written or not, the migration goes on.
                let written = write(cx, migration, &delayed, &Why::Delayed).await;
                written
                    .inspect_err(|error| tracing::info!(%error, "the delay of a migration could not be written"))
                    .ok();
                return Err(error.into());
            }
            Patched::Refused(error) => {
                let now = cx.clock.now();
                let failed = status::failed(migration, Some(progress), &words(&error), now);
                return write(cx, migration, &failed, &Why::Failed).await;
            }
        }
    }
    let now = cx.clock.now();
    write(cx, migration, &status::succeeded(migration, progress, now), &Why::Succeeded).await
}

async fn patch(cx: &Context, resource: &Resource, object: &Meta) -> Patched {
    let nothing = plan::patch(resource, object);
    let patch = Patch::MergeAs { patch: &nothing, manager: MANAGER };
    match cx.writer.unowned().patch(resource, &object.key(), patch, &Why::Migrated).await {
        // It was written, or deleted, or created anew: in each case it is not stored in an old version.
        Ok(_) | Err(WriteError::Conflict | WriteError::NotFound) => Patched::Done,
        Err(
            error @ (WriteError::Unknown(_)
            | WriteError::Unreachable(_)
            | WriteError::Throttled(_)
            | WriteError::NotLeader),
        ) => Patched::Later(error),
        Err(error) => Patched::Refused(error),
    }
}

/// Returns the server's own words, if it has answered.
fn words(error: &WriteError) -> String {
    match error {
        WriteError::Rejected(refusal) => refusal.message.clone(),
        WriteError::Unknown(refusal) => refusal.message.clone(),
        other => other.to_string(),
    }
}

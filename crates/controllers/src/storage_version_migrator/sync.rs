//! The shells of the three queues.

use steersman_base::Resource;
use steersman_model::View;
use steersman_model::storagemigration::{StorageVersionMigrationStatus, StorageVersionMigrationView};
use steersman_runtime::mapper::{DiscoveryError, RestMapper};
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Context, Error, Reason, reasons};

mod migrator;
mod resource_versions;
mod runner;

pub(super) use migrator::Migrator;
pub(super) use resource_versions::ResourceVersions;
pub(super) use runner::Runner;

reasons! {
    /// Why the migrator writes.
    pub enum Why {
        /// It is the turn of a migration.
        Started => "no other migration of the resource runs",
        /// A definition is being migrated, or is not any more.
        DefinitionUpdated => "the definition says whether its objects are being migrated",
        /// The version up to which objects are migrated is known.
        VersionKnown => "objects that were written later are stored in the current version",
        /// An object may be stored in an old version.
        Migrated => "the server stores an object in its current version when it is written",
        /// The server could not take a patch now.
        Delayed => "the server could not take a patch, and is asked again",
        /// All objects are migrated.
        Succeeded => "all objects are stored in the current version",
        /// The migration cannot go on.
        Failed => "the migration cannot go on",
        /// The migration has ended.
        Stopped => "the migration has ended",
    }
}

/// Returns a resource in the version that the server prefers; none if it does not serve it.
async fn served(mapper: &RestMapper, migration: &StorageVersionMigrationView) -> Result<Option<Found>, DiscoveryError> {
    let wanted = &migration.spec.resource;
    let known = mapper.resources().await?;
    let found = known.resource(&wanted.group, None, &wanted.resource);
    Ok(found.map(|found| Found { resource: found.resource.clone(), verbs: found.verbs.clone() }))
}

/// A resource that the server serves.
struct Found {
    resource: Resource,
    verbs: Vec<String>,
}

/// Writes a status, if it has changed. A migration that was changed, deleted or replaced meanwhile has an event of its own.
async fn write(
    cx: &Context,
    migration: &StorageVersionMigrationView,
    wanted: &StorageVersionMigrationStatus,
    why: &dyn Reason,
) -> Result<(), Error> {
    let write = cx.writer.on_behalf_of(migration.meta());
    let written = write
        .put_status_if_changed::<StorageVersionMigrationView, _>(migration.meta(), &migration.status, wanted, why)
        .await;
    Ok(written.ok_if_gone().ok_if_replaced()?)
}

/// Asks discovery again, soon, and fails the pass, so that it is retried.
fn not_there_yet(mapper: &RestMapper) -> Error {
    mapper.invalidate();
    Error::message("discovery does not show the resource of the migration yet")
}

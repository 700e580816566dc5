#![doc = include_str!("../docs/storage-version-migrator-controller.md")]
//!
//! ```text
//! migrations ──▶ queue "runner": one migration per resource is Running; its definition says so
//!            ──▶ queue "resource version": the version up to which objects are migrated
//!            ──▶ queue "migrator": every object up to that version is patched with nothing
//! ```
//!
//! Follows `pkg/controller/storageversionmigrator` of Kubernetes 1.37.1.

use steersman_model::Kind;
use steersman_model::storagemigration::StorageVersionMigrationView;
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext};
use steersman_runtime::Descriptor;

use crate::table;

mod definition;
mod map;
mod plan;
mod status;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::Why;

/// The descriptor of the migrator.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "storage-version-migrator-controller",
    needs: const { &[StorageVersionMigrationView::RESOURCE] },
    options: |_| (),
    build,
});

/// The name of the second queue's controller: the version up to which objects are migrated.
pub const RESOURCE_VERSIONS: &str = "resource-version-controller";
/// The name of the third queue's controller: one running migration per resource.
pub const RUNNER: &str = "migration-runner-controller";

fn build(cx: &ControllerContext, (): ()) -> Built {
    let migrations = cx.informer::<StorageVersionMigrationView>();
    let mapper = cx.manager().mapper().clone();
    let versions = sync::ResourceVersions { migrations: migrations.lister(), mapper: mapper.clone() };
    let runner = sync::Runner { by_resource: migrations.index(map::resource_of) };
    let migrator = sync::Migrator { migrations: migrations.lister(), mapper };
    cx.controller(&migrations)
        .watch_main(|change| map::migration(change, plan::is_migratable))
        .reconcile(migrator)
        .and(
            cx.another(RESOURCE_VERSIONS, &migrations)
                .queue(1)
                .workers(1)
                .watch_main(|change| map::migration(change, plan::needs_version))
                .reconcile(versions),
        )
        .and(cx.another(RUNNER, &migrations).queue_name(RUNNER).workers(1).watch_main(map::resources).reconcile(runner))
}

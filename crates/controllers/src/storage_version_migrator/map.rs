//! Pure: which keys a change concerns; index functions.

use steersman_base::{Istr, ObjectKey};
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::storagemigration::StorageVersionMigrationView;

/// Returns the changed migration, if there is something to do with it.
pub(super) fn migration(
    change: &Change<StorageVersionMigrationView>,
    is_due: fn(&StorageVersionMigrationView) -> bool,
) -> Option<ObjectKey> {
    let (Change::Added { new, .. } | Change::Updated { new, .. }) = change else { return None };
    is_due(new).then(|| new.meta().key())
}

/// Returns the resource of a changed migration, as the key of the runner.
pub(super) fn resources(change: &Change<StorageVersionMigrationView>) -> Vec<ObjectKey> {
    let both = change.before().into_iter().chain([change.object()]);
    both.map(|migration| ObjectKey::cluster(&definition_name(migration))).collect()
}

/// Index function: the resource of a migration.
pub(super) fn resource_of(migration: &StorageVersionMigrationView) -> Option<Istr> {
    Some(Istr::interned(&definition_name(migration)))
}

/// Returns the name that the definition of the migrated resource has, if it is a custom one: `cakes.example.com`. For the
/// core group, `pods.`.
pub(super) fn definition_name(migration: &StorageVersionMigrationView) -> String {
    let resource = &migration.spec.resource;
    format!("{}.{}", resource.resource, resource.group)
}

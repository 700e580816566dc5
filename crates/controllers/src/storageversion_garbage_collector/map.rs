//! Pure: which keys a change concerns.

use steersman_base::{Meta, ObjectKey};
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::apiserverinternal::StorageVersionView;

/// Returns the identity Lease of an API server that is gone.
pub(super) fn deleted_lease(change: &Change<Meta>) -> Option<ObjectKey> {
    let Change::Deleted { last, .. } = change else { return None };
    Some(last.key())
}

/// Returns a storage version that names an API server for which there is no Lease.
pub(super) fn version_to_check(
    change: &Change<StorageVersionView>,
    has_lease: impl Fn(&str) -> bool,
) -> Option<ObjectKey> {
    let (Change::Added { new: version, .. } | Change::Updated { new: version, .. }) = change else { return None };
    let mut servers = version.status.storage_versions.iter().map(|reported| &*reported.api_server_id);
    servers.any(|server| !has_lease(server)).then(|| version.meta().key())
}

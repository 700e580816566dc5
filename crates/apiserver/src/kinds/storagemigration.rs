//! The group `storagemigration.k8s.io`: StorageVersionMigrations.

mod storage_version_migration;

use crate::kinds::Kinds;

/// The kinds of the group `storagemigration.k8s.io`.
pub(super) const KINDS: Kinds = &[("StorageVersionMigration", &storage_version_migration::RULES)];

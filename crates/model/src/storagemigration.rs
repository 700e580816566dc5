//! The group `storagemigration.k8s.io`.

use steersman_base::{Condition, Istr, Meta};

use crate::conditions::MetaCondition;
use crate::view;

view! {
    /// A migration, whole: its status is PUT.
    pub struct StorageVersionMigrationView: Serialize
        for cluster("storagemigration.k8s.io", "v1", "storageversionmigrations", "StorageVersionMigration")
    {
        /// The metadata.
        metadata: Meta = 1,
        /// The spec.
        spec: StorageVersionMigrationSpec = 2,
        /// The status.
        status: StorageVersionMigrationStatus = 3,
    }
}

view! {
    /// The spec of a migration.
    pub struct StorageVersionMigrationSpec: Serialize {
        /// The resource whose objects are migrated.
        resource: MigratedResource = 1,
    }
}

view! {
    /// A resource, in any version.
    #[derive(Eq, Hash)]
    pub struct MigratedResource: Serialize {
        /// The API group.
        group: Istr = 1,
        /// The plural name.
        resource: Istr = 2,
    }
}

view! {
    /// The status of a migration.
    pub struct StorageVersionMigrationStatus: Serialize {
        /// The conditions.
        conditions: Box<[Condition]> as Vec<MetaCondition> = 1,
        /// The version of the resource up to which objects are migrated.
        resource_version: Istr = 2,
    }
}

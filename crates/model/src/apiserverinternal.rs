//! The group `internal.apiserver.k8s.io`.

use steersman_base::{Istr, Meta};

use crate::view;

view! {
    /// The part of a storage version that controllers read: which API servers it names.
    pub struct StorageVersionView
        for cluster("internal.apiserver.k8s.io", "v1alpha1", "storageversions", "StorageVersion")
    {
        /// The metadata.
        metadata: Meta = 1,
        /// The status.
        status: StorageVersionStatus = 3,
    }
}

view! {
    /// The status of a storage version.
    pub struct StorageVersionStatus {
        /// The reports of API servers, one each.
        storage_versions: Box<[ServerStorageVersion]> = 1,
    }
}

view! {
    /// The report of one API server.
    pub struct ServerStorageVersion {
        /// The name of its identity Lease.
        api_server_id "apiServerID": Istr = 1,
    }
}

//! Volumes that a pod names without a claim, and that are attached to its node: kept whole.

use steersman_base::{Istr, StringMap};

use super::super::container::LocalReference;
use crate::view;

view! {
    /// A Fibre Channel volume.
    #[derive(Eq, Hash)]
    pub struct Fc {
        /// World wide names of the targets.
        target_wwns "targetWWNs": Box<[Istr]> = 1,
        /// Number of the logical unit.
        lun: Option<i32> = 2,
        /// File system to mount it as.
        fs_type: Istr = 3,
        /// Whether it is mounted for reading only.
        read_only: bool = 4,
        /// World wide identifiers, in place of target and unit.
        wwids: Box<[Istr]> = 5,
    }
}

view! {
    /// An iSCSI volume.
    #[derive(Eq, Hash)]
    pub struct Iscsi {
        /// Address of the target.
        target_portal: Istr = 1,
        /// Name of the target.
        iqn: Istr = 2,
        /// Number of the logical unit.
        lun: i32 = 3,
        /// Interface that is used.
        iscsi_interface: Istr = 4,
        /// File system to mount it as.
        fs_type: Istr = 5,
        /// Whether it is mounted for reading only.
        read_only: bool = 6,
        /// Further addresses of the target.
        portals: Box<[Istr]> = 7,
        /// Whether discovery is authenticated.
        chap_auth_discovery: bool = 8,
        /// The secret with its credentials.
        secret_ref: Istr as LocalReference = 10,
        /// Whether the session is authenticated.
        chap_auth_session: bool = 11,
        /// Name of the initiator.
        initiator_name: Option<Istr> = 12,
    }
}

view! {
    /// A volume of a FlexVolume driver.
    #[derive(Eq, Hash)]
    pub struct FlexVolume {
        /// The driver.
        driver: Istr = 1,
        /// File system to mount it as.
        fs_type: Istr = 2,
        /// The secret with its credentials.
        secret_ref: Istr as LocalReference = 3,
        /// Whether it is mounted for reading only.
        read_only: bool = 4,
        /// The options for the driver.
        options: StringMap = 5,
    }
}

view! {
    /// A disk of Google Compute Engine.
    #[derive(Eq, Hash)]
    pub struct GcePersistentDisk {
        /// The disk.
        pd_name: Istr = 1,
        /// File system to mount it as.
        fs_type: Istr = 2,
        /// Partition of the disk; zero for the whole.
        partition: i32 = 3,
        /// Whether it is mounted for reading only.
        read_only: bool = 4,
    }
}

view! {
    /// A volume of AWS Elastic Block Store.
    #[derive(Eq, Hash)]
    pub struct AwsElasticBlockStore {
        /// The volume.
        volume_id "volumeID": Istr = 1,
        /// File system to mount it as.
        fs_type: Istr = 2,
        /// Partition of the disk; zero for the whole.
        partition: i32 = 3,
        /// Whether it is mounted for reading only.
        read_only: bool = 4,
    }
}

view! {
    /// A disk of Azure.
    #[derive(Eq, Hash)]
    pub struct AzureDisk {
        /// Name of the disk.
        disk_name: Istr = 1,
        /// Address of the disk.
        disk_uri "diskURI": Istr = 2,
        /// The caching mode of the host.
        caching_mode: Option<Istr> = 3,
        /// File system to mount it as.
        fs_type: Option<Istr> = 4,
        /// Whether it is mounted for reading only.
        read_only: Option<bool> = 5,
        /// `Shared`, `Dedicated` or `Managed`.
        kind: Option<Istr> = 6,
    }
}

view! {
    /// A file share of Azure.
    #[derive(Eq, Hash)]
    pub struct AzureFile {
        /// The secret with its credentials.
        secret_name: Istr = 1,
        /// The share.
        share_name: Istr = 2,
        /// Whether it is mounted for reading only.
        read_only: bool = 3,
        /// The namespace of the secret, which only volumes name; absent is that of the claim.
        secret_namespace: Option<Istr> = 4,
    }
}

view! {
    /// A volume of OpenStack.
    #[derive(Eq, Hash)]
    pub struct Cinder {
        /// The volume.
        volume_id "volumeID": Istr = 1,
        /// File system to mount it as.
        fs_type: Istr = 2,
        /// Whether it is mounted for reading only.
        read_only: bool = 3,
        /// The secret with its credentials.
        secret_ref: Istr as LocalReference = 4,
    }
}

view! {
    /// A disk of vSphere.
    #[derive(Eq, Hash)]
    pub struct VsphereVolume {
        /// Path of the volume.
        volume_path: Istr = 1,
        /// File system to mount it as.
        fs_type: Istr = 2,
        /// Name of its storage policy.
        storage_policy_name: Istr = 3,
        /// Identifier of its storage policy.
        storage_policy_id "storagePolicyID": Istr = 4,
    }
}

view! {
    /// A volume of Portworx.
    #[derive(Eq, Hash)]
    pub struct Portworx {
        /// The volume.
        volume_id "volumeID": Istr = 1,
        /// File system to mount it as.
        fs_type: Istr = 2,
        /// Whether it is mounted for reading only.
        read_only: bool = 3,
    }
}

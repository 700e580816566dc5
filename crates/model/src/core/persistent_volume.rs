//! Volumes.

use steersman_base::{Istr, Meta, StringMap, Time, Uid};

use super::pod::{
    AwsElasticBlockStore, AzureDisk, AzureFile, Cinder, Fc, FlexVolume, GcePersistentDisk, Iscsi, Portworx,
    VsphereVolume,
};
use crate::view;
use crate::wire::Quantities;

view! {
    /// The fields of a volume that controllers read.
    pub struct PersistentVolumeView for cluster("", "v1", "persistentvolumes", "PersistentVolume") {
        /// The metadata.
        metadata: Meta = 1,
        /// The spec.
        spec: PersistentVolumeSpec = 2,
        /// The status.
        status: PersistentVolumeStatus = 3,
    }
}

view! {
    /// The spec of a volume.
    pub struct PersistentVolumeSpec {
        /// The capacity.
        capacity: Quantities = 1,
        /// The access modes.
        access_modes: Box<[Istr]> = 3,
        /// The claim that it is for.
        claim_ref: Option<Box<ClaimRef>> = 4,
        /// `Retain`, `Delete` or `Recycle`.
        persistent_volume_reclaim_policy: Istr = 5,
        /// The class; empty is none.
        storage_class_name: Istr = 6,
        /// `Filesystem` or `Block`; absent is the first.
        volume_mode: Option<Istr> = 8,
        /// The class of its attributes.
        volume_attributes_class_name: Option<Istr> = 10,
        ..source: PersistentVolumeSource = 2,
    }
}

view! {
    /// A claim, as a volume refers to it.
    #[derive(Eq)]
    pub struct ClaimRef {
        /// Its namespace.
        namespace: Istr = 2,
        /// Its name.
        name: Istr = 3,
        /// Its uid; empty until it is bound.
        uid: Uid = 4,
    }
}

view! {
    /// The source of a volume: one of these, or one that is not read.
    pub struct PersistentVolumeSource {
        /// A disk of Google Compute Engine.
        gce_persistent_disk: Option<Box<GcePersistentDisk>> = 1,
        /// A volume of AWS Elastic Block Store.
        aws_elastic_block_store: Option<Box<AwsElasticBlockStore>> = 2,
        /// A directory of a node.
        host_path: Option<Box<HostPath>> = 3,
        /// A directory of an NFS server.
        nfs: Option<Box<Nfs>> = 5,
        /// An iSCSI volume.
        iscsi: Option<Box<Iscsi>> = 7,
        /// A volume of OpenStack.
        cinder: Option<Box<Cinder>> = 8,
        /// A Fibre Channel volume.
        fc: Option<Box<Fc>> = 10,
        /// A volume of a FlexVolume driver.
        flex_volume: Option<Box<FlexVolume>> = 12,
        /// A file share of Azure.
        azure_file: Option<Box<AzureFile>> = 13,
        /// A disk of vSphere.
        vsphere_volume: Option<Box<VsphereVolume>> = 14,
        /// A disk of Azure.
        azure_disk: Option<Box<AzureDisk>> = 16,
        /// A volume of Portworx.
        portworx_volume: Option<Box<Portworx>> = 18,
        /// A volume of a CSI driver.
        csi: Option<Box<Csi>> = 22,
    }
}

view! {
    /// A directory of a node.
    #[derive(Eq)]
    pub struct HostPath {
        /// The path.
        path: Istr = 1,
    }
}

view! {
    /// A directory of an NFS server.
    #[derive(Eq)]
    pub struct Nfs {
        /// The server.
        server: Istr = 1,
        /// The path.
        path: Istr = 2,
        /// Whether it is mounted for reading only.
        read_only: bool = 3,
    }
}

view! {
    /// A volume of a CSI driver.
    #[derive(Eq)]
    pub struct Csi {
        /// The driver.
        driver: Istr = 1,
        /// The name of the volume at its driver.
        volume_handle: Istr = 2,
        /// Whether it is mounted for reading only.
        read_only: bool = 3,
        /// File system to mount it as.
        fs_type: Istr = 4,
        /// The attributes for the driver.
        volume_attributes: StringMap = 5,
    }
}

view! {
    /// The status of a volume, whole.
    pub struct PersistentVolumeStatus: Serialize {
        /// `Pending`, `Available`, `Bound`, `Released` or `Failed`.
        phase: Istr = 1,
        /// Details about the phase, for people.
        message: Istr = 2,
        /// A word about the phase.
        reason: Istr = 3,
        /// The time of the last change of the phase.
        last_phase_transition_time: Option<Time> = 4,
    }
}

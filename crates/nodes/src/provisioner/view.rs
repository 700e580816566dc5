//! The parts of volumes and classes that are read.

use steersman_base::{Istr, Meta};
use steersman_model::view;
use steersman_model::wire::Quantities;

view! {
    /// The parts of a volume that the provisioner reads.
    pub struct VolumeView for cluster("", "v1", "persistentvolumes", "PersistentVolume") {
        /// The metadata.
        metadata: Meta = 1,
        /// The spec.
        spec: VolumeSpec = 2,
        /// The status.
        status: VolumeStatus = 3,
    }
}

view! {
    /// The spec of a volume.
    pub struct VolumeSpec {
        /// The capacity.
        capacity: Quantities = 1,
        /// The access modes.
        access_modes: Box<[Istr]> = 3,
        /// The claim that it is for.
        claim_ref: Option<Box<ClaimRef>> = 4,
        /// `Retain`, `Delete` or `Recycle`.
        persistent_volume_reclaim_policy: Istr = 5,
    }
}

view! {
    /// A claim, as a volume refers to it.
    pub struct ClaimRef {
        /// Its namespace.
        namespace: Istr = 2,
        /// Its name.
        name: Istr = 3,
        /// Its uid; empty until it is bound.
        uid: Istr = 4,
    }
}

view! {
    /// The status of a volume.
    pub struct VolumeStatus {
        /// `Pending`, `Available`, `Bound`, `Released` or `Failed`.
        phase: Istr = 1,
    }
}

view! {
    /// The parts of a storage class that the provisioner reads.
    pub struct ClassView for cluster("storage.k8s.io", "v1", "storageclasses", "StorageClass") {
        /// The metadata.
        metadata: Meta = 1,
        /// The provisioner.
        provisioner: Istr = 2,
        /// The reclaim policy of its volumes; empty means `Delete`.
        reclaim_policy: Istr = 4,
        /// The mount options of its volumes.
        mount_options: Box<[Istr]> = 5,
        /// `Immediate` or `WaitForFirstConsumer`; empty means the first.
        volume_binding_mode: Istr = 7,
    }
}

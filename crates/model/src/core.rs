//! The core group.

mod config_map;
mod endpoints;
mod namespace;
mod node;
mod persistent_volume;
mod persistent_volume_claim;
pub mod pod;
mod replication_controller;
mod resource_quota;
mod secret;
mod service;
mod service_account;

pub use config_map::ConfigMapView;
pub use endpoints::{EndpointAddress, EndpointPort, EndpointSubset, EndpointsView};
pub use namespace::{NamespaceSpec, NamespaceStatus, NamespaceView};
pub use node::{AttachedVolume, NodeSpec, NodeStatus, NodeView, Taint};
pub use persistent_volume::{
    ClaimRef, Csi, HostPath, Nfs, PersistentVolumeSource, PersistentVolumeSpec, PersistentVolumeStatus,
    PersistentVolumeView,
};
pub use persistent_volume_claim::{ModifyVolumeStatus, PersistentVolumeClaimStatus, PersistentVolumeClaimView};
pub use pod::PodView;
pub use replication_controller::{ReplicationControllerSpec, ReplicationControllerStatus, ReplicationControllerView};
pub use resource_quota::{ResourceQuotaSpec, ResourceQuotaStatus, ResourceQuotaView, ScopeRequirement, ScopeSelector};
pub use secret::{BootstrapTokenView, TokenData, TokenSecretView};
pub use service::{ServicePort, ServiceSpec, ServiceView};
pub use service_account::ServiceAccountView;
use steersman_base::{Istr, Uid};

use crate::view;
use crate::wire::Unique;

view! {
    /// A reference to an object, whole.
    #[derive(Eq, Hash)]
    pub struct ObjectReference: Serialize {
        /// Its kind.
        kind: Istr = 1,
        /// Its namespace.
        namespace: Istr = 2,
        /// Its name.
        name: Istr as Unique = 3,
        /// Its uid.
        uid: Uid = 4,
        /// Its API group and version.
        api_version: Istr = 5,
        /// The version of it that is meant.
        resource_version: Istr as Unique = 6,
        /// The part of it that is meant.
        field_path: Istr = 7,
    }
}

//! The group `resource.k8s.io`.

use steersman_base::{Istr, Meta};

use crate::view;

view! {
    /// The fields of a claim of devices that quotas read.
    pub struct ResourceClaimView for namespaced("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim") {
        /// The metadata.
        metadata: Meta = 1,
        /// The spec.
        spec: ResourceClaimSpec = 2,
    }
}

view! {
    /// The spec of a claim of devices.
    pub struct ResourceClaimSpec {
        /// The devices.
        devices: DeviceClaim = 1,
    }
}

view! {
    /// The devices of a claim.
    pub struct DeviceClaim {
        /// The requests.
        requests: Box<[DeviceRequest]> = 1,
    }
}

view! {
    /// A request of devices: exactly one kind, or the first that is available.
    pub struct DeviceRequest {
        /// The only kind.
        exactly: Option<ExactDeviceRequest> = 2,
        /// The kinds, the best one first.
        first_available: Box<[DeviceSubRequest]> = 3,
    }
}

view! {
    /// A number of devices of a class.
    pub struct ExactDeviceRequest {
        /// The class.
        device_class_name: Istr = 1,
        /// `ExactCount` or `All`.
        allocation_mode: Istr = 3,
        /// The number.
        count: i64 = 4,
    }
}

view! {
    /// A number of devices of a class, as one of several alternatives.
    pub struct DeviceSubRequest {
        /// The class.
        device_class_name: Istr = 2,
        /// `ExactCount` or `All`.
        allocation_mode: Istr = 4,
        /// The number.
        count: i64 = 5,
    }
}

view! {
    /// The fields of a class of devices that quotas read.
    pub struct DeviceClassView for cluster("resource.k8s.io", "v1", "deviceclasses", "DeviceClass") {
        /// The metadata.
        metadata: Meta = 1,
        /// The spec.
        spec: DeviceClassSpec = 2,
    }
}

view! {
    /// The spec of a class of devices.
    pub struct DeviceClassSpec {
        /// The extended resource by which pods request its devices.
        extended_resource_name: Option<Istr> = 4,
    }
}

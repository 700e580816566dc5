//! The group `resource.k8s.io`.

use steersman_base::{Condition, Istr, Meta, Quantity, Uid};

use crate::conditions::MetaCondition;
use crate::core::Taint;
use crate::core::pod::Toleration;
use crate::template::Template;
use crate::view;
use crate::wire::{ByName, Quantities, Unique};

view! {
    /// The fields of a claim of devices that controllers read.
    pub struct ResourceClaimView for namespaced("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim") {
        /// The metadata.
        metadata: Meta = 1,
        /// The spec.
        spec: ResourceClaimSpec = 2,
        /// The status.
        status: ResourceClaimStatus = 3,
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
        /// Whether it is for administration: the devices may be in use.
        admin_access: Option<bool> = 5,
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

view! {
    /// The status of a claim of devices.
    pub struct ResourceClaimStatus {
        /// The allocated devices; absent if the claim is not allocated.
        allocation: Option<AllocationResult> = 1,
        /// The objects that use the claim, whole: the list is written.
        reserved_for: Box<[ConsumerReference]> = 2,
    }
}

view! {
    /// A user of a claim.
    #[derive(Eq, Hash)]
    pub struct ConsumerReference: Serialize {
        /// The API group; empty for pods.
        api_group: Istr = 1,
        /// The resource: `pods` or `podgroups`.
        resource: Istr = 3,
        /// The name.
        name: Istr as Unique = 4,
        /// The uid.
        uid: Uid = 5,
    }
}

view! {
    /// The allocation of a claim.
    pub struct AllocationResult {
        /// The devices.
        devices: DeviceAllocationResult = 1,
    }
}

view! {
    /// The devices of an allocation.
    pub struct DeviceAllocationResult {
        /// One for each device.
        results: Box<[AllocatedDevice]> = 1,
    }
}

view! {
    /// A device that is allocated.
    pub struct AllocatedDevice {
        /// The driver.
        driver: Istr = 2,
        /// The pool of the driver.
        pool: Istr = 3,
        /// The device of the pool.
        device: Istr = 4,
        /// Whether it is for administration: the device stays available to others.
        admin_access: Option<bool> = 5,
        /// The taints of the device that the claim tolerates.
        tolerations: Box<[Toleration]> = 6,
        /// The capacity that the claim uses of a device that several may share.
        consumed_capacity: Quantities = 10,
    }
}

view! {
    /// A template of claims of devices.
    pub struct ResourceClaimTemplateView
        for namespaced("resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate")
    {
        /// The metadata.
        metadata: Meta = 1,
        /// Labels, annotations and the spec of the claims.
        spec: Template = 2,
    }
}

view! {
    /// The fields of a slice of a pool of devices that controllers read.
    pub struct ResourceSliceView for cluster("resource.k8s.io", "v1", "resourceslices", "ResourceSlice") {
        /// The metadata.
        metadata: Meta = 1,
        /// The spec.
        spec: ResourceSliceSpec = 2,
    }
}

view! {
    /// The spec of a slice.
    pub struct ResourceSliceSpec {
        /// The driver.
        driver: Istr = 1,
        /// The pool that it is a part of.
        pool: ResourcePool = 2,
        /// The devices.
        devices: Box<[Device]> = 6,
    }
}

view! {
    /// The pool of a slice.
    pub struct ResourcePool {
        /// The name, unique for the driver.
        name: Istr = 1,
        /// The generation: slices of older ones are out of date.
        generation: i64 = 2,
    }
}

view! {
    /// A device of a slice.
    pub struct Device {
        /// The name, unique in the pool.
        name: Istr = 1,
        /// The taints.
        taints: Box<[Taint]> = 8,
    }
}

view! {
    /// A rule that adds a taint to devices.
    pub struct DeviceTaintRuleView for cluster("resource.k8s.io", "v1", "devicetaintrules", "DeviceTaintRule") {
        /// The metadata.
        metadata: Meta = 1,
        /// The spec.
        spec: DeviceTaintRuleSpec = 2,
        /// The status.
        status: DeviceTaintRuleStatus = 3,
    }
}

view! {
    /// The spec of a taint rule.
    pub struct DeviceTaintRuleSpec {
        /// The devices; absent for none.
        device_selector: Option<DeviceTaintSelector> = 1,
        /// The taint.
        taint: Taint = 2,
    }
}

view! {
    /// The devices of a taint rule: those that have all that is set.
    pub struct DeviceTaintSelector {
        /// The driver.
        driver: Option<Istr> = 2,
        /// The pool.
        pool: Option<Istr> = 3,
        /// The device.
        device: Option<Istr> = 4,
    }
}

view! {
    /// The status of a taint rule.
    pub struct DeviceTaintRuleStatus {
        /// The conditions.
        conditions: Box<[Condition]> as Vec<MetaCondition> = 1,
    }
}

view! {
    /// The fields of a slice that the status of its pool is computed from.
    pub struct PooledSliceView for cluster("resource.k8s.io", "v1", "resourceslices", "ResourceSlice") {
        /// The metadata.
        metadata: Meta = 1,
        /// The spec.
        spec: PooledSliceSpec = 2,
    }
}

view! {
    /// The spec of a slice.
    pub struct PooledSliceSpec {
        /// The driver.
        driver: Istr = 1,
        /// The pool that it is a part of.
        pool: SlicedPool = 2,
        /// The node that has the devices, if there is only one.
        node_name: Option<Istr> = 3,
        /// The devices.
        devices: Box<[PooledDevice]> = 6,
        /// The counters that the devices of the pool share.
        shared_counters: Box<[CounterSet]> = 8,
        /// The attribute that says of which type a partition is.
        partition_type_attribute: Option<Istr> = 9,
    }
}

view! {
    /// The pool of a slice, and how many slices it has.
    pub struct SlicedPool {
        /// The name, unique for the driver.
        name: Istr = 1,
        /// The generation: slices of older ones are out of date.
        generation: i64 = 2,
        /// The number of slices of this generation.
        resource_slice_count: i64 = 3,
    }
}

view! {
    /// A device, with what others may use of it.
    pub struct PooledDevice {
        /// The name, unique in the pool.
        name: Istr = 1,
        /// The attributes.
        attributes: ByName<DeviceAttribute> = 2,
        /// The capacity that several may share.
        capacity: ByName<DeviceCapacity> = 3,
        /// The shared counters that it uses.
        consumes_counters: Box<[CounterConsumption]> = 4,
        /// The taints.
        taints: Box<[Taint]> = 8,
        /// Whether several claims may share it.
        allow_multiple_allocations: Option<bool> = 12,
    }
}

view! {
    /// An attribute of a device; only texts are read.
    pub struct DeviceAttribute {
        /// The value, if it is a text.
        string: Option<Istr> = 4,
    }
}

view! {
    /// A capacity of a device.
    pub struct DeviceCapacity {
        /// The amount.
        value: Quantity = 1,
    }
}

view! {
    /// Counters that devices of a pool share.
    pub struct CounterSet {
        /// The name, unique in the pool.
        name: Istr = 1,
        /// The counters.
        counters: ByName<Counter> = 2,
    }
}

view! {
    /// The consumption of a device from a set of counters.
    pub struct CounterConsumption {
        /// The set.
        counter_set: Istr = 1,
        /// The counters.
        counters: ByName<Counter> = 2,
    }
}

view! {
    /// A counter.
    pub struct Counter {
        /// The amount.
        value: Quantity = 1,
    }
}

view! {
    /// A request for the status of pools.
    pub struct ResourcePoolStatusRequestView
        for cluster("resource.k8s.io", "v1alpha3", "resourcepoolstatusrequests", "ResourcePoolStatusRequest")
    {
        /// The metadata.
        metadata: Meta = 1,
        /// The spec.
        spec: ResourcePoolStatusRequestSpec = 2,
        /// The answer; absent if there is none yet.
        status: Option<ResourcePoolStatusRequestStatus> = 3,
    }
}

view! {
    /// The spec of a request for the status of pools.
    pub struct ResourcePoolStatusRequestSpec {
        /// The driver.
        driver: Istr = 1,
        /// The only pool; absent for all.
        pool_name: Option<Istr> = 2,
        /// The number of pools in the answer.
        limit: Option<i32> = 3,
        /// The attribute that says of which type a partition is, if the driver does not.
        default_partition_type_attribute: Option<Istr> = 4,
    }
}

view! {
    /// The fields of an answer that are read.
    pub struct ResourcePoolStatusRequestStatus {
        /// The conditions.
        conditions: Box<[Condition]> as Vec<MetaCondition> = 3,
    }
}

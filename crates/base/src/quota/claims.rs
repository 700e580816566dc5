//! The usage of claims: of storage, and of devices.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::pod::{REQUESTS, is_extended_in_quota};
use super::{Amounts, Requirement, one};
use crate::null::as_default;
use crate::quantity::{Format, Scale};
use crate::{Istr, OwnerRef, Quantity, Time};

/// The part of a PersistentVolumeClaim that quotas read.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct VolumeClaim {
    /// The metadata.
    #[serde(deserialize_with = "as_default")]
    pub metadata: ClaimMeta,
    /// The spec.
    #[serde(deserialize_with = "as_default")]
    pub spec: VolumeClaimSpec,
    /// The status.
    #[serde(deserialize_with = "as_default")]
    pub status: VolumeClaimStatus,
}

/// The metadata of a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimMeta {
    /// The name.
    #[serde(deserialize_with = "as_default")]
    pub name: Istr,
    /// The annotations.
    #[serde(deserialize_with = "as_default")]
    pub annotations: BTreeMap<Istr, Istr>,
    /// The owners.
    #[serde(deserialize_with = "as_default")]
    pub owner_references: Vec<OwnerRef>,
    /// The time at which it was created.
    pub creation_timestamp: Option<Time>,
}

/// The spec of a PersistentVolumeClaim.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeClaimSpec {
    /// The requests.
    #[serde(deserialize_with = "as_default")]
    pub resources: Requests,
    /// The class.
    pub storage_class_name: Option<Istr>,
    /// The class of its attributes.
    pub volume_attributes_class_name: Option<Istr>,
}

/// Requests.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Requests {
    /// The requests.
    #[serde(deserialize_with = "as_default")]
    pub requests: Amounts,
}

/// The status of a PersistentVolumeClaim.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeClaimStatus {
    /// The size that a resize has allocated.
    #[serde(deserialize_with = "as_default")]
    pub allocated_resources: Amounts,
    /// The class of attributes that the volume has.
    pub current_volume_attributes_class_name: Option<Istr>,
    /// The change of the class of attributes that is under way.
    #[serde(deserialize_with = "as_default")]
    pub modify_volume_status: ModifyVolumeStatus,
}

/// A change of the class of attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModifyVolumeStatus {
    /// The class that the volume is to have.
    #[serde(deserialize_with = "as_default")]
    pub target_volume_attributes_class_name: Istr,
}

/// The part of a ResourceClaim that quotas read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DeviceClaim {
    /// The metadata.
    #[serde(deserialize_with = "as_default")]
    pub metadata: ClaimMeta,
    /// The spec.
    #[serde(deserialize_with = "as_default")]
    pub spec: DeviceClaimSpec,
}

/// The spec of a ResourceClaim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DeviceClaimSpec {
    /// The devices.
    #[serde(deserialize_with = "as_default")]
    pub devices: Devices,
}

/// The devices of a ResourceClaim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Devices {
    /// The requests.
    #[serde(deserialize_with = "as_default")]
    pub requests: Vec<DeviceRequest>,
}

/// A request of devices: exactly one kind, or the first that is available.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeviceRequest {
    /// The only kind.
    pub exactly: Option<DeviceKind>,
    /// The kinds, the best one first.
    #[serde(deserialize_with = "as_default")]
    pub first_available: Vec<DeviceKind>,
}

/// A number of devices of a class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeviceKind {
    /// The class.
    #[serde(deserialize_with = "as_default")]
    pub device_class_name: Istr,
    /// `ExactCount` or `All`.
    #[serde(deserialize_with = "as_default")]
    pub allocation_mode: Istr,
    /// The number, for `ExactCount`.
    #[serde(deserialize_with = "as_default")]
    pub count: i64,
}

/// The classes of devices that pods may request as extended resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceClasses {
    /// The extended resource of each class; empty if it has none.
    extended_of: BTreeMap<Istr, Istr>,
}

const STORAGE: &str = "storage";
const CLAIMS: &str = "persistentvolumeclaims";
const CLAIMS_COUNT: &str = "count/persistentvolumeclaims";
const REQUESTS_STORAGE: &str = "requests.storage";
const BY_STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";
const DEVICE_CLAIMS_COUNT: &str = "count/resourceclaims.resource.k8s.io";
const BY_DEVICE_CLASS: &str = ".deviceclass.resource.k8s.io/devices";
const OF_DEVICE_CLASS: &str = "deviceclass.resource.kubernetes.io/";
/// The class of a claim, before there was a field for it.
const STORAGE_CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
/// Marks a claim that the scheduler made for extended resources of a pod.
const EXTENDED_CLAIM_ANNOTATION: &str = "resource.kubernetes.io/extended-resource-claim";
/// The most devices that a claim can get: what `All` counts for.
const DEVICES_MAX: i64 = 32;

/// Whether claims of storage count for this name.
pub(super) fn is_storage(name: &str) -> bool {
    let by_class = |resource: &str| name.strip_suffix(resource).is_some_and(|class| class.ends_with(BY_STORAGE_CLASS));
    matches!(name, CLAIMS_COUNT | CLAIMS | REQUESTS_STORAGE) || by_class(CLAIMS) || by_class(REQUESTS_STORAGE)
}

/// Whether claims of devices count for this name.
pub(super) fn is_device(name: &str, classes: &DeviceClasses) -> bool {
    if name == DEVICE_CLAIMS_COUNT || name.ends_with(BY_DEVICE_CLASS) {
        return true;
    }
    let requested = name.strip_prefix(REQUESTS).filter(|_| is_extended_in_quota(name));
    requested.is_some_and(|requested| match requested.strip_prefix(OF_DEVICE_CLASS) {
        Some(class) => classes.extended_of.contains_key(class),
        None => classes.extended_of.values().any(|extended| *extended == *requested),
    })
}

/// Whether claims of devices may count for this name, whatever the classes are.
#[must_use]
pub fn needs_devices(name: &str) -> bool {
    name == DEVICE_CLAIMS_COUNT || name.ends_with(BY_DEVICE_CLASS) || is_extended_in_quota(name)
}

// === impl VolumeClaim ===

impl VolumeClaim {
    /// Returns what the claim uses.
    #[must_use]
    pub fn usage(&self) -> Amounts {
        let mut usage = Amounts::from([(CLAIMS.into(), one()), (CLAIMS_COUNT.into(), one())]);
        let class = self.class();
        let of_class = |resource: &str| Istr::from(format!("{class}{BY_STORAGE_CLASS}{resource}"));
        if !class.is_empty() {
            usage.insert(of_class(CLAIMS), one());
        }
        if let Some(storage) = self.storage() {
            usage.insert(REQUESTS_STORAGE.into(), storage);
            if !class.is_empty() {
                usage.insert(of_class(REQUESTS_STORAGE), storage);
            }
        }
        usage
    }

    fn class(&self) -> &str {
        let noted = self.metadata.annotations.get(STORAGE_CLASS_ANNOTATION);
        noted.or(self.spec.storage_class_name.as_ref()).map_or("", |class| &**class)
    }

    /// Returns the requested storage, or what a resize that failed has allocated, in whole bytes.
    fn storage(&self) -> Option<Quantity> {
        let requested = self.spec.resources.requests.get(STORAGE)?.rounded_up(Scale::One);
        let allocated = self.status.allocated_resources.get(STORAGE).filter(|allocated| **allocated > requested);
        Some(allocated.map_or(requested, |allocated| allocated.rounded_up(Scale::One)))
    }

    /// Returns the classes of attributes that the volume has, or is to have.
    #[must_use]
    pub fn attributes_classes(&self) -> BTreeSet<&Istr> {
        let wanted = self.spec.volume_attributes_class_name.as_ref();
        let current = self.status.current_volume_attributes_class_name.as_ref();
        let target = Some(&self.status.modify_volume_status.target_volume_attributes_class_name);
        [wanted, current, target].into_iter().flatten().filter(|name| !name.is_empty()).collect()
    }

    /// Whether the claim is in a scope.
    #[must_use]
    pub fn is_in(&self, scope: &Requirement) -> bool {
        if scope.scope_name != "VolumeAttributesClass" {
            return false;
        }
        let classes = self.attributes_classes();
        if classes.is_empty() {
            return scope.admits(None);
        }
        classes.into_iter().any(|class| scope.admits(Some(&**class)))
    }
}

// === impl DeviceClaim ===

impl DeviceClaim {
    /// Returns what the claim uses; `charged` is the usage of its pod, if the pod is charged for its extended resources.
    #[must_use]
    pub fn usage(&self, classes: &DeviceClasses, charged: &Amounts) -> Amounts {
        let devices = self.devices();
        let mut usage = Amounts::from([(DEVICE_CLAIMS_COUNT.into(), one())]);
        for (class, count) in &devices {
            let implicit = Istr::from(format!("{REQUESTS}{OF_DEVICE_CLASS}{class}"));
            let extended = classes.extended_of.get(class).filter(|extended| !extended.is_empty());
            let explicit = extended.map(|extended| Istr::from(format!("{REQUESTS}{extended}")));
            for name in [Some(implicit), explicit].into_iter().flatten() {
                let rest = *count - charged.get(&name).copied().unwrap_or_default();
                if rest > Quantity::ZERO {
                    usage.insert(name, rest);
                }
            }
            usage.insert(Istr::from(format!("{class}{BY_DEVICE_CLASS}")), *count);
        }
        usage
    }

    /// Returns the number of devices by class: of alternatives, the most that may be allocated.
    fn devices(&self) -> Amounts {
        let mut sum = Amounts::new();
        for request in &self.spec.devices.requests {
            let kinds =
                if request.first_available.is_empty() { request.exactly.as_slice() } else { &request.first_available };
            let mut most = Amounts::new();
            for kind in kinds {
                let one = Amounts::from([(kind.device_class_name.clone(), kind.devices())]);
                super::amounts::raise(&mut most, &one);
            }
            super::amounts::add(&mut sum, &most);
        }
        sum
    }

    /// Returns the pod for whose extended resources the claim was made, if it was.
    #[must_use]
    pub fn pod(&self) -> Option<&OwnerRef> {
        let is_extended = self.metadata.annotations.get(EXTENDED_CLAIM_ANNOTATION).is_some_and(|text| text == "true");
        let owner = self.metadata.owner_references.iter().find(|owner| owner.controller == Some(true));
        owner.filter(|owner| is_extended && owner.kind == "Pod" && owner.api_version == "v1")
    }

    /// Whether the pod's usage covers the claim: the pod names it (`claim_of_pod`), or it is the first of the claims of the
    /// pod.
    #[must_use]
    pub fn is_covered<'a>(&self, claim_of_pod: Option<&str>, claims: impl IntoIterator<Item = &'a Self>) -> bool {
        if let Some(name) = claim_of_pod {
            return self.metadata.name == *name;
        }
        let Some(pod) = self.pod() else { return false };
        let of_pod = claims.into_iter().filter(|claim| claim.pod().is_some_and(|owner| owner.uid == pod.uid));
        let order = |claim: &Self| (claim.metadata.creation_timestamp, claim.metadata.name.clone());
        let own = order(self);
        of_pod.map(order).all(|other| own <= other)
    }
}

// === impl DeviceKind ===

impl DeviceKind {
    fn devices(&self) -> Quantity {
        let count = match &*self.allocation_mode {
            "ExactCount" => self.count,
            "All" => DEVICES_MAX,
            _ => 0,
        };
        Quantity::new(count, Format::DecimalSi)
    }
}

// === impl DeviceClasses ===

impl FromIterator<(Istr, Option<Istr>)> for DeviceClasses {
    /// The classes, each with its extended resource, if it has one.
    fn from_iter<I: IntoIterator<Item = (Istr, Option<Istr>)>>(classes: I) -> Self {
        Self {
            extended_of: classes.into_iter().map(|(class, extended)| (class, extended.unwrap_or_default())).collect(),
        }
    }
}

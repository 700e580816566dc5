//! The arithmetic of ResourceQuotas and LimitRanges: what objects use, which quotas count them, and what is refused.
//!
//! The API server admits with it and the resourcequota controller counts with it, so that both agree. The structs here
//! hold the fields that quotas and limits read; they are made from views, or from JSON.
//!
//! | module | what it holds |
//! |---|---|
//! | [`amounts`] | sums, differences and maxima of named quantities |
//! | [`pod`] | the usage of pods, and which scopes they are in |
//! | [`claims`] | the usage of claims of storage and of devices |
//! | [`service`] | the usage of Services |
//! | [`scope`] | the scopes of a quota |
//! | [`charge`] | what a write adds to quotas, or why it is refused |
//! | [`limits`] | the bounds of LimitRanges |
//!
//! Follows `pkg/quota/v1` of Kubernetes and of its API server, and `plugin/pkg/admission/limitranger`, of 1.37.1.

pub mod amounts;
pub mod charge;
pub mod claims;
pub mod limits;
pub mod pod;
pub mod scope;
pub mod service;
#[cfg(test)]
mod tests;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Istr, Quantity, Time};

pub use amounts::Amounts;
pub use charge::{Quota, charge};
pub use claims::{DeviceClaim, DeviceClasses, VolumeClaim};
pub use pod::Pod;
pub use scope::Requirement;
pub use service::Service;

/// The names under which quotas count objects of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tracker {
    /// Pods: compute resources, and their number.
    Pods,
    /// Services: node ports, load balancers, and their number.
    Services,
    /// PersistentVolumeClaims: storage, by class too, and their number.
    VolumeClaims,
    /// ResourceClaims: devices by class, and their number.
    DeviceClaims,
    /// Any other resource: the number of objects.
    Objects {
        /// The name `count/RESOURCE.GROUP`.
        count: Istr,
        /// The older name of some core resources.
        alias: Option<&'static str>,
    },
}

/// An object that a quota may count.
#[derive(Clone, Debug, PartialEq)]
pub enum Subject {
    /// A pod.
    Pod(Box<Pod>),
    /// A Service.
    Service(Service),
    /// A PersistentVolumeClaim.
    VolumeClaim(Box<VolumeClaim>),
    /// A ResourceClaim, and the usage of the pod that is charged for it already, if there is one.
    DeviceClaim(Box<DeviceClaim>, Amounts),
    /// Any other object.
    Object(Tracker),
}

/// The facts that usage depends on besides the object.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The time: pods whose grace period is over do not count.
    pub now: Time,
    /// The classes of devices.
    pub classes: &'a DeviceClasses,
}

/// Resources that no quota counts: those that are not stored, and events.
const IGNORED: [(&str, &str); 10] = [
    ("", "bindings"),
    ("", "componentstatuses"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("", "events"),
    ("events.k8s.io", "events"),
];
/// Core resources with an older name in quotas.
const ALIASES: [&str; 4] = ["configmaps", "resourcequotas", "replicationcontrollers", "secrets"];
const COUNT_PREFIX: &str = "count/";

/// Returns the name of the number of objects of a resource.
#[must_use]
pub fn count_name(group: &str, resource: &str) -> Istr {
    if group.is_empty() {
        Istr::from(format!("{COUNT_PREFIX}{resource}"))
    } else {
        Istr::from(format!("{COUNT_PREFIX}{resource}.{group}"))
    }
}

/// Returns the group and the resource whose number of objects this is the name of.
#[must_use]
pub fn counted_resource(name: &str) -> Option<(&str, &str)> {
    if ALIASES.contains(&name) {
        return Some(("", name));
    }
    let resource = name.strip_prefix(COUNT_PREFIX)?;
    let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
    (!plural.is_empty()).then_some((group, plural))
}

fn one() -> Quantity {
    Quantity::new(1, crate::quantity::Format::DecimalSi)
}

fn whole(count: usize) -> Quantity {
    Quantity::new(i64::try_from(count).unwrap_or(i64::MAX), crate::quantity::Format::DecimalSi)
}

/// Returns the part of an object that is read here. A field of another type, which the server would not have stored, makes
/// it empty.
fn read<T: DeserializeOwned + Default>(object: &Value) -> T {
    T::deserialize(object).unwrap_or_default()
}

// === impl Tracker ===

impl Tracker {
    /// Returns what quotas count of a resource; none of what they ignore.
    #[must_use]
    pub fn of(group: &str, resource: &str) -> Option<Self> {
        if IGNORED.contains(&(group, resource)) {
            return None;
        }
        Some(match (group, resource) {
            ("", "pods") => Self::Pods,
            ("", "services") => Self::Services,
            ("", "persistentvolumeclaims") => Self::VolumeClaims,
            ("resource.k8s.io", "resourceclaims") => Self::DeviceClaims,
            _ => Self::Objects {
                count: count_name(group, resource),
                alias: ALIASES.into_iter().find(|alias| group.is_empty() && *alias == resource),
            },
        })
    }

    /// Whether objects of the resource may count for this name.
    #[must_use]
    pub fn tracks(&self, name: &str, classes: &DeviceClasses) -> bool {
        match self {
            Self::Pods => pod::is_tracked(name),
            Self::Services => service::NAMES.contains(&name),
            Self::VolumeClaims => claims::is_storage(name),
            Self::DeviceClaims => claims::is_device(name, classes),
            Self::Objects { count, alias } => *count == *name || *alias == Some(name),
        }
    }

    /// Returns an object of the resource.
    #[must_use]
    pub fn subject(&self, object: &Value) -> Subject {
        match self {
            Self::Pods => Subject::Pod(Box::new(read(object))),
            Self::Services => Subject::Service(read(object)),
            Self::VolumeClaims => Subject::VolumeClaim(Box::new(read(object))),
            Self::DeviceClaims => Subject::DeviceClaim(Box::new(read(object)), Amounts::new()),
            Self::Objects { .. } => Subject::Object(self.clone()),
        }
    }
}

// === impl Subject ===

impl Subject {
    /// Returns what the object uses.
    #[must_use]
    pub fn usage(&self, facts: Facts<'_>) -> Amounts {
        match self {
            Self::Pod(pod) => pod.usage(facts.now),
            Self::Service(service) => service.usage(),
            Self::VolumeClaim(claim) => claim.usage(),
            Self::DeviceClaim(claim, charged) => claim.usage(facts.classes, charged),
            Self::Object(Tracker::Objects { count, alias }) => {
                let names = [Some(count.clone()), alias.map(Istr::from)];
                names.into_iter().flatten().map(|name| (name, one())).collect()
            }
            Self::Object(_) => Amounts::new(),
        }
    }

    /// Whether the object is in a scope.
    #[must_use]
    pub fn is_in(&self, scope: &Requirement) -> bool {
        match self {
            Self::Pod(pod) => pod.is_in(scope),
            Self::VolumeClaim(claim) => claim.is_in(scope),
            Self::Service(_) | Self::DeviceClaim(..) | Self::Object(_) => false,
        }
    }

    /// Returns what the object must say and does not, if quotas count these names.
    ///
    /// # Errors
    /// The message of upstream: `must specify …`.
    pub fn check_specified<'a>(&self, names: impl Iterator<Item = &'a str>) -> Result<(), String> {
        match self {
            Self::Pod(pod) => pod.check_specified(names),
            _ => Ok(()),
        }
    }
}

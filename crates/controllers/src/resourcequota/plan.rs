//! Pure: what is to be counted for a quota, and the status it gets.

use std::collections::{BTreeMap, BTreeSet};

use steersman_base::quota::claims::needs_devices;
use steersman_base::quota::{Amounts, DeviceClasses, Tracker, counted_resource};
use steersman_base::{Istr, Quantity};
use steersman_model::core::{ResourceQuotaSpec, ResourceQuotaStatus};
use steersman_model::wire::Quantities;

/// A resource whose number of objects is counted: group and plural.
pub(super) type Counted = (Istr, Istr);

/// The resources that are counted for a quota.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    pub(super) pods: bool,
    pub(super) services: bool,
    pub(super) claims: bool,
    /// Claims of devices, and their classes, where there are any.
    pub(super) devices: bool,
    /// Whether the usage of some name cannot be found otherwise.
    pub(super) waits_for_devices: bool,
    /// Resources of which nothing but the number of objects is counted.
    pub(super) objects: BTreeSet<Counted>,
}

/// The counted usage, and the resources that could not be counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Observed {
    pub(super) used: Amounts,
    /// The trackers whose objects are not known now.
    pub(super) unknown: Vec<Tracker>,
}

/// Returns what is to be counted for a quota.
pub(super) fn needs(spec: &ResourceQuotaSpec) -> Needs {
    let mut needs = Needs::default();
    let classes = DeviceClasses::default();
    for (name, _) in spec.hard.iter() {
        needs.pods |= Tracker::Pods.tracks(name, &classes);
        needs.services |= Tracker::Services.tracks(name, &classes);
        needs.claims |= Tracker::VolumeClaims.tracks(name, &classes);
        needs.devices |= needs_devices(name);
        needs.waits_for_devices |= Tracker::DeviceClaims.tracks(name, &classes);
        let objects = counted_resource(name)
            .filter(|(group, resource)| matches!(Tracker::of(group, resource), Some(Tracker::Objects { .. })));
        needs.objects.extend(objects.map(|(group, resource)| (Istr::from(group), Istr::from(resource))));
    }
    needs
}

/// Returns the status of a quota: the limits of its spec, and the usage of each that is counted. What cannot be counted now
/// keeps the usage that it had.
pub(super) fn status(
    spec: &ResourceQuotaSpec,
    held: &ResourceQuotaStatus,
    observed: &Observed,
    classes: &DeviceClasses,
) -> ResourceQuotaStatus {
    let is_unknown = |name: &str| observed.unknown.iter().any(|tracker| tracker.tracks(name, classes));
    let mut used: BTreeMap<Istr, Quantity> = BTreeMap::new();
    for (name, _) in spec.hard.iter() {
        let counted = observed.used.get(name).filter(|_| !is_unknown(name));
        if let Some(quantity) = counted.or_else(|| held.used.get(name)) {
            used.insert(name.clone(), *quantity);
        }
    }
    ResourceQuotaStatus { hard: spec.hard.clone(), used: Quantities::new(used.into_iter().collect()) }
}

/// Returns the amounts with a zero for each name of the quota that the tracker counts and no object uses.
pub(super) fn with_zeros(
    mut used: Amounts,
    spec: &ResourceQuotaSpec,
    tracker: &Tracker,
    classes: &DeviceClasses,
) -> Amounts {
    for (name, _) in spec.hard.iter().filter(|(name, _)| tracker.tracks(name, classes)) {
        used.entry(name.clone()).or_insert(Quantity::ZERO);
    }
    used
}

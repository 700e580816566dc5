//! Pure: which pods use a volume in ways that exclude each other.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use steersman_base::{Istr, ObjectKey};

use super::labels::{Use, differ};

/// Every volume with the pods that use it.
#[derive(Debug, Default)]
pub(super) struct Volumes {
    volumes: HashMap<Istr, Volume>,
    /// The volumes of each pod.
    pods: HashMap<ObjectKey, BTreeSet<Istr>>,
}

#[derive(Debug, Default)]
struct Volume {
    driver: Option<Istr>,
    pods: BTreeMap<ObjectKey, Use>,
}

/// A pod whose use of a volume conflicts with another's.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Conflict {
    pub(super) property: Property,
    pub(super) pod: ObjectKey,
    pub(super) value: String,
    pub(super) other: ObjectKey,
    pub(super) other_value: String,
}

/// The property that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Property {
    Label,
    ChangePolicy,
}

/// The conflicts that a change of a pod's volumes causes, and those that it ends.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changed {
    /// Conflicts that are to be reported.
    pub(super) new: Vec<Conflict>,
    /// Conflicts that are over.
    pub(super) over: Vec<Conflict>,
}

/// The volumes of a pod: how it uses each, and the CSI driver.
pub(super) type Used = BTreeMap<Istr, (Use, Option<Istr>)>;

// === impl Volumes ===

impl Volumes {
    /// Sets the volumes of a pod; a pod that is gone has none.
    pub(super) fn set(&mut self, pod: &ObjectKey, used: Used) -> Changed {
        let mut changed = Changed::default();
        let before = self.pods.remove(pod).unwrap_or_default();
        for volume in before.iter().filter(|volume| !used.contains_key(*volume)) {
            changed.over.extend(self.remove(pod, volume));
        }
        if used.is_empty() {
            return changed;
        }
        self.pods.insert(pod.clone(), used.keys().cloned().collect());
        for (name, (now, driver)) in used {
            let volume = self.volumes.entry(name).or_default();
            volume.driver = driver;
            if volume.pods.get(pod) == Some(&now) {
                continue;
            }
            changed.over.extend(volume.conflicts(pod));
            volume.pods.insert(pod.clone(), now);
            changed.new.extend(volume.conflicts(pod));
        }
        changed
    }

    /// Returns the pods that use volumes of a driver.
    pub(super) fn pods_of_driver(&self, driver: &Istr) -> Vec<ObjectKey> {
        let of_driver = self.volumes.values().filter(|volume| volume.driver.as_ref() == Some(driver));
        of_driver.flat_map(|volume| volume.pods.keys().cloned()).collect()
    }

    fn remove(&mut self, pod: &ObjectKey, name: &Istr) -> Vec<Conflict> {
        let Some(volume) = self.volumes.get_mut(name) else { return Vec::new() };
        let over = volume.conflicts(pod);
        volume.pods.remove(pod);
        if volume.pods.is_empty() {
            self.volumes.remove(name);
        }
        over
    }
}

// === impl Volume ===

impl Volume {
    /// Returns the conflicts of a pod with all others, each from both sides.
    fn conflicts(&self, pod: &ObjectKey) -> Vec<Conflict> {
        let Some(ours) = self.pods.get(pod) else { return Vec::new() };
        let mut found = Vec::new();
        for (other, theirs) in self.pods.iter().filter(|(other, _)| *other != pod) {
            let mut add = |property, value: &str, other_value: &str| {
                let conflict = Conflict {
                    property,
                    pod: pod.clone(),
                    value: value.to_owned(),
                    other: other.clone(),
                    other_value: other_value.to_owned(),
                };
                found.push(conflict.clone());
                found.push(conflict.reversed());
            };
            if ours.policy != theirs.policy {
                add(Property::ChangePolicy, &ours.policy, &theirs.policy);
            }
            if differ(&ours.label, &theirs.label) {
                add(Property::Label, &ours.label, &theirs.label);
            }
        }
        found
    }
}

// === impl Conflict ===

impl Conflict {
    fn reversed(self) -> Self {
        let Self { property, pod, value, other, other_value } = self;
        Self { property, pod: other, value: other_value, other: pod, other_value: value }
    }

    /// Returns upstream's message. Pods of other namespaces are not named; there, a space is missing.
    pub(super) fn message(&self) -> String {
        let Self { pod, value, other, other_value, .. } = self;
        let property = self.property.name();
        let end = "If both pods land on the same node, only one of them may access the volume.";
        if pod.namespace == other.namespace {
            let name = &other.name;
            format!(
                "{property} \"{value}\" conflicts with pod {name} that uses the same volume as this pod with {property} \
                 \"{other_value}\". {end}"
            )
        } else {
            format!(
                "{property}\"{value}\" conflicts with another pod that uses the same volume as this pod with a different \
                 {property}. {end}"
            )
        }
    }
}

// === impl Property ===

impl Property {
    /// Returns its name in messages and metrics.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Label => "SELinuxLabel",
            Self::ChangePolicy => "SELinuxChangePolicy",
        }
    }

    /// Returns the reason of its events.
    pub(super) fn event(self) -> &'static str {
        match self {
            Self::Label => "SELinuxLabelConflict",
            Self::ChangePolicy => "SELinuxChangePolicyConflict",
        }
    }
}

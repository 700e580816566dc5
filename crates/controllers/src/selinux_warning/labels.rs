//! Pure: the SELinux labels that a pod's volumes get.

use std::collections::{BTreeMap, BTreeSet};

use steersman_base::Istr;
use steersman_model::core::PodView;
use steersman_model::core::pod::{Container, SeLinuxOptions};

/// The label of a volume in a pod, and how it is applied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Use {
    /// User, role, type and level with colons; empty if the volume is not mounted with a label.
    pub(super) label: String,
    /// `MountOption` or `Recursive`.
    pub(super) policy: String,
}

const RECURSIVE: &str = "Recursive";
const MOUNT_OPTION: &str = "MountOption";

/// Returns the labels of the containers that mount each volume of a pod. A volume that is mounted without any has an empty set.
pub(super) fn of_mounts(pod: &PodView) -> BTreeMap<Istr, BTreeSet<String>> {
    let spec = &pod.spec;
    let mut mounts: BTreeMap<Istr, BTreeSet<String>> = BTreeMap::new();
    let containers = spec.init_containers.iter().chain(&spec.containers).chain(&spec.ephemeral_containers);
    for container in containers {
        let Container { volume_mounts, se_linux_options, .. } = container;
        let options = se_linux_options.as_ref().or(spec.se_linux_options.as_ref());
        for mount in volume_mounts {
            let labels = mounts.entry(mount.clone()).or_default();
            labels.extend(options.map(|options| label(options)));
        }
    }
    mounts
}

/// Returns how a volume is used: `supports` says whether its plug-in mounts with a label. `None` if its labels differ within the
/// pod.
pub(super) fn used(pod: &PodView, labels: &BTreeSet<String>, supports: bool) -> Option<Use> {
    if labels.len() > 1 {
        return None;
    }
    let is_recursive = pod.spec.se_linux_change_policy == RECURSIVE || !supports;
    let label = labels.first().filter(|_| !is_recursive).cloned().unwrap_or_default();
    let policy = match pod.spec.se_linux_change_policy.as_str() {
        // Without a label there is nothing to mount with.
        _ if is_recursive || label.is_empty() => RECURSIVE,
        "" => MOUNT_OPTION,
        policy => policy,
    };
    Some(Use { label, policy: policy.to_owned() })
}

/// Whether two labels differ, as far as that can be said here: nodes fill in users, roles and types, but not levels.
pub(super) fn differ(left: &str, right: &str) -> bool {
    let parts = |label: &str| {
        let mut parts = [const { String::new() }; 4];
        for (part, text) in parts.iter_mut().zip(label.splitn(4, ':')) {
            text.clone_into(part);
        }
        parts
    };
    let pairs = parts(left).into_iter().zip(parts(right));
    pairs.enumerate().any(|(at, (left, right))| left != right && (at == 3 || !left.is_empty() && !right.is_empty()))
}

fn label(options: &SeLinuxOptions) -> String {
    let SeLinuxOptions { user, role, type_, level } = options;
    let label = format!("{user}:{role}:{type_}:{level}");
    if label == ":::" { String::new() } else { label }
}

//! The shell: how a pod uses its volumes → conflicts with other pods → events.

use std::sync::Arc;

use steersman_base::{Istr, ObjectKey, Resource};
use steersman_informer::Lister;
use steersman_model::core::{PersistentVolumeClaimView, PersistentVolumeView, PodView};
use steersman_model::storage::CsiDriverView;
use steersman_model::{Kind, View};
use steersman_runtime::events::About;
use steersman_runtime::{Action, Context, Error, Reconciler};

use super::conflicts::{Conflict, Used};
use super::labels;
use super::memory::Memory;
use crate::pod;
use crate::volume_spec::{Plugin, VolumeSpec};

const PODS: &Resource = &PodView::RESOURCE;
/// Upstream's reason of the warning.
const MULTIPLE: &str = "MultipleSELinuxLabels";

/// The controller's shell: the caches that it reads from, and its memory.
pub(super) struct SeLinuxWarnings {
    pub(super) pods: Lister<PodView>,
    pub(super) claims: Lister<PersistentVolumeClaimView>,
    pub(super) volumes: Lister<PersistentVolumeView>,
    pub(super) drivers: Lister<CsiDriverView>,
    pub(super) memory: Arc<Memory>,
}

// === impl SeLinuxWarnings ===

impl Reconciler for SeLinuxWarnings {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let pod = self.pods.get(key).filter(|pod| !pod::has_ended(pod));
        let used = pod.map_or_else(Used::new, |pod| self.used(cx, &pod));
        for conflict in self.memory.set(key, used) {
            if !self.warn(cx, &conflict) {
                break;
            }
        }
        Ok(Action::Done)
    }
}

impl SeLinuxWarnings {
    /// Returns how a pod uses its volumes. Those whose claim or volume is missing are looked at when these come.
    fn used(&self, cx: &Context, pod: &PodView) -> Used {
        let mut used = Used::new();
        let mounts = labels::of_mounts(pod);
        for volume in &pod.spec.volumes {
            let Some(labels) = mounts.get(&volume.name) else { continue };
            let spec = VolumeSpec::of_pod(
                volume,
                pod.meta(),
                |claim| self.claims.get(claim),
                |volume| self.volumes.get(&ObjectKey::cluster(volume)),
            );
            let Some(spec) = spec else { continue };
            let driver = driver(&spec);
            let Some(found) = labels::used(pod, labels, self.mounts_with_label(driver.as_ref())) else {
                let name = &volume.name;
                let note = format!("Volume {name:?} is mounted twice with different SELinux labels inside this pod");
                cx.events.warning(&About::new(PODS, pod.meta()), MULTIPLE, note);
                continue;
            };
            used.insert(spec.unique, (found, driver));
        }
        used
    }

    /// Whether volumes of a driver are mounted with a label; those without a driver always are.
    fn mounts_with_label(&self, driver: Option<&Istr>) -> bool {
        let Some(driver) = driver else { return true };
        let driver = self.drivers.get(&ObjectKey::cluster(driver));
        driver.is_some_and(|driver| driver.spec.se_linux_mount == Some(true))
    }

    /// Records an event about a conflict at a pod. Returns whether the pod is there: a conflict with one that is gone is over.
    fn warn(&self, cx: &Context, conflict: &Conflict) -> bool {
        let Some(pod) = self.pods.get(&conflict.pod) else { return false };
        cx.events.normal(&About::new(PODS, pod.meta()), conflict.property.event(), conflict.message());
        true
    }
}

fn driver(spec: &VolumeSpec) -> Option<Istr> {
    match &spec.plugin {
        Plugin::Csi(csi) => Some(csi.driver.clone()),
        Plugin::Iscsi | Plugin::Fc => None,
    }
}

//! The volumes of pods on simulated nodes, as kubelets handle them in a cluster that attaches volumes.
//!
//! 1. `status.volumesInUse` of a node lists the volumes of its pods that have to be attached, from when a pod is bound until it has
//!    ended or is gone. A silent node reports nothing new.
//! 2. A pod is not accepted before all of these are in `status.volumesAttached`, and in `volumesInUse`.
//! 3. A volume has to be attached if it is of a CSI driver whose CSIDriver object exists and does not say `attachRequired: false`.
//!    Pods with any other volumes do not wait.

use std::sync::Arc;

use steersman_base::{Istr, Meta, ObjectKey};
use steersman_informer::{Change, Lister, SharedInformer};
use steersman_model::View;
use steersman_model::core::{NodeView, PersistentVolumeClaimView, PersistentVolumeView};
use steersman_model::storage::CsiDriverView;
use steersman_runtime::{BuildContext, Controller};

use crate::fleet::Fleet;
use crate::kubelet::node_of;
use crate::view::{PodClaim, SimPodView};

mod sync;

pub use sync::Why;

/// The number of nodes processed concurrently.
const WORKERS: usize = 8;

/// The volumes of pods, from the caches. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Volumes {
    claims: Lister<PersistentVolumeClaimView>,
    volumes: Lister<PersistentVolumeView>,
    drivers: Lister<CsiDriverView>,
}

// === impl Volumes ===

impl Volumes {
    pub(crate) fn new(cx: &BuildContext) -> Self {
        Self {
            claims: cx.informers.informer::<PersistentVolumeClaimView>().lister(),
            volumes: cx.informers.informer::<PersistentVolumeView>().lister(),
            drivers: cx.informers.informer::<CsiDriverView>().lister(),
        }
    }

    /// Whether a pod has to wait for volumes before its node accepts it.
    pub(crate) fn are_awaited(&self, pod: &SimPodView, node: Option<&NodeView>) -> bool {
        let is_accepted = pod.status.start_time.is_some() || pod.metadata.is_terminating() || pod.is_over();
        if is_accepted || pod.spec.claims.is_empty() {
            return false;
        }
        let Some(node) = node else { return false };
        let status = &node.status;
        let is_there = |name: &Istr| {
            status.volumes_attached.iter().any(|volume| volume.name == *name) && status.volumes_in_use.contains(name)
        };
        !self.to_attach(pod).iter().all(is_there)
    }

    /// Returns the names of the volumes of a pod that have to be attached.
    fn to_attach(&self, pod: &SimPodView) -> Vec<Istr> {
        pod.spec.claims.iter().filter_map(|claim| self.name_of(&key_of(claim, &pod.metadata))).collect()
    }

    fn name_of(&self, claim: &ObjectKey) -> Option<Istr> {
        let claim = self.claims.get(claim)?;
        let volume = self.volumes.get(&ObjectKey::cluster(&claim.spec.volume_name))?;
        let csi = volume.spec.source.csi.as_ref()?;
        let driver = self.drivers.get(&ObjectKey::cluster(&csi.driver))?;
        (driver.spec.attach_required != Some(false)).then(|| csi.unique_name())
    }
}

/// Returns the key of a claim of a pod.
fn key_of(claim: &PodClaim, pod: &Meta) -> ObjectKey {
    let ephemeral = || Istr::new(&format!("{}-{}", pod.name, claim.name));
    let name = if claim.is_ephemeral { ephemeral() } else { claim.name.clone() };
    ObjectKey { namespace: pod.namespace.clone(), name }
}

/// Builds the controller that reports the volumes in use.
pub(crate) fn build(
    cx: &BuildContext,
    pods: &SharedInformer<SimPodView>,
    volumes: &Volumes,
    fleet: &Fleet,
) -> Controller {
    let nodes = cx.informers.informer::<NodeView>();
    let by_node = pods.shared_index(node_of);
    let ours = fleet.clone();
    let is_ours = fleet.clone();
    cx.controller_on("simulated-volumes", &nodes)
        .queue_name("volumes_in_use")
        .workers(WORKERS)
        .needs_cache(&cx.informers.informer::<PersistentVolumeClaimView>())
        .needs_cache(&cx.informers.informer::<PersistentVolumeView>())
        .needs_cache(&cx.informers.informer::<CsiDriverView>())
        .when(move |change: &Change<NodeView>| ours.get(&change.object().meta().name).is_some())
        .watch(pods, move |change: &Change<SimPodView>| {
            let pod = change.object();
            let node = node_of(pod).filter(|node| is_ours.get(node).is_some() && !pod.spec.claims.is_empty());
            node.map(|node| ObjectKey::cluster(&node))
        })
        .reconcile_with(sync::InUse { nodes: nodes.lister(), by_node, volumes: volumes.clone(), fleet: fleet.clone() })
}

/// Returns a handler that enqueues the pods of a node whose lists of volumes have changed.
pub(crate) fn awaiting_pods(
    pods: &SharedInformer<SimPodView>,
) -> impl Fn(&Change<NodeView>) -> Vec<ObjectKey> + Send + Sync + use<> {
    let by_node = pods.shared_index(node_of);
    move |change| {
        let Change::Updated { old, new } = change else { return Vec::new() };
        let lists = |node: &Arc<NodeView>| (node.status.volumes_attached.clone(), node.status.volumes_in_use.clone());
        if lists(old) == lists(new) {
            return Vec::new();
        }
        let waits = |pod: &&Arc<SimPodView>| pod.status.start_time.is_none() && !pod.spec.claims.is_empty();
        by_node.get(&new.metadata.name).iter().filter(waits).map(|pod| pod.metadata.key()).collect()
    }
}

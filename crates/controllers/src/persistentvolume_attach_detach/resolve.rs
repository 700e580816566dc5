//! The volumes behind the claims of pods, from the caches.

use std::collections::BTreeMap;
use std::sync::Arc;

use steersman_base::{Istr, ObjectKey};
use steersman_informer::{Index, Lister};
use steersman_model::View;
use steersman_model::core::{NodeView, PersistentVolumeClaimView, PersistentVolumeView, PodView};
use steersman_model::storage::{CsiDriverView, VolumeAttachmentView};

use super::state::is_managed;
use super::{map, memory::Memory};
use crate::pod_claims::{claims_of, is_made_for, is_terminated, uses};
use crate::volume_spec::{Plugin, VolumeSpec};

/// The caches that volumes are found in.
#[derive(Clone)]
pub(super) struct Resolver {
    pub(super) pods: Lister<PodView>,
    pub(super) nodes: Lister<NodeView>,
    pub(super) claims: Lister<PersistentVolumeClaimView>,
    pub(super) volumes: Lister<PersistentVolumeView>,
    pub(super) drivers: Lister<CsiDriverView>,
    pub(super) pods_by_claim: Index<ObjectKey, PodView>,
    pub(super) pods_by_inline: Index<Istr, PodView>,
    pub(super) volumes_by_name: Index<Istr, PersistentVolumeView>,
    pub(super) memory: Arc<Memory>,
}

/// The pods that need a volume, by node.
pub(super) type Wanted = BTreeMap<Istr, Vec<Arc<PodView>>>;

// === impl Resolver ===

impl Resolver {
    /// Returns the keys of all volumes of a pod, as far as they are known.
    pub(super) fn volumes_of(&self, pod: &PodView) -> Vec<ObjectKey> {
        let claimed = claims_of(pod).into_iter().filter_map(|claim| {
            let claim = self.claims.get(&claim)?;
            self.volume_of_claim(&claim)
        });
        let inline = map::inline_names(pod).into_iter().map(|name| ObjectKey::cluster(&name));
        claimed.chain(inline).collect()
    }

    /// Returns the key of the volume that a claim names.
    pub(super) fn volume_of_claim(&self, claim: &PersistentVolumeClaimView) -> Option<ObjectKey> {
        let volume = self.volumes.get(&ObjectKey::cluster(&claim.spec.volume_name))?;
        map::unique_name(&volume).map(|name| ObjectKey::cluster(&name))
    }

    /// Returns the key of the volume that an attachment is of.
    pub(super) fn volume_of_attachment(&self, attachment: &VolumeAttachmentView) -> Option<ObjectKey> {
        let named = || {
            let volume = self.volumes.get(&ObjectKey::cluster(&map::attached_volume(attachment)?))?;
            map::unique_name(&volume)
        };
        let name = map::attached_inline(attachment)
            .or_else(named)
            .or_else(|| self.memory.volume_of(&attachment.meta().name))?;
        Some(ObjectKey::cluster(&name))
    }

    /// Returns what is known of a volume, and its objects.
    pub(super) fn spec(&self, unique: &Istr) -> Option<(VolumeSpec, Vec<Arc<PersistentVolumeView>>)> {
        let volumes = self.volumes_by_name.get(unique);
        let of_volume = volumes.first().and_then(|volume| VolumeSpec::of_volume(volume));
        let inline = || {
            let pods = self.pods_by_inline.get(unique);
            let pod = pods.first()?;
            let specs = pod.spec.volumes.iter().filter_map(|it| VolumeSpec::of_inline(it, &pod.meta().namespace));
            specs.into_iter().find(|spec| spec.unique == *unique)
        };
        let spec = of_volume.or_else(inline).or_else(|| VolumeSpec::of_name(unique))?;
        Some((spec, volumes))
    }

    /// Whether a volume has to be attached at all.
    pub(super) fn is_attachable(&self, spec: &VolumeSpec) -> bool {
        let Plugin::Csi(csi) = &spec.plugin else { return true };
        let driver = self.drivers.get(&ObjectKey::cluster(&csi.driver));
        driver.is_none_or(|driver| driver.spec.attach_required != Some(false))
    }

    /// Returns the pods that need a volume: by its claims and by its name, and those that needed it before.
    pub(super) fn wanted(&self, spec: &VolumeSpec, volumes: &[Arc<PersistentVolumeView>]) -> Wanted {
        let mut wanted = Wanted::new();
        if !self.is_attachable(spec) {
            return wanted;
        }
        let mut add = |pod: Arc<PodView>| {
            let pods = wanted.entry(pod.spec.node_name.clone()).or_default();
            if !pods.iter().any(|other| other.meta().uid == pod.meta().uid) {
                pods.push(pod);
            }
        };
        let is_on_managed = |pod: &Arc<PodView>| {
            let node = &pod.spec.node_name;
            let node = || self.nodes.get(&ObjectKey::cluster(node));
            needs_volumes(pod) && node().is_some_and(|node| is_managed(&node))
        };
        let claims = volumes.iter().filter_map(|volume| self.bound_claim(volume));
        for claim in claims {
            let key = claim.meta().key();
            let pods = self.pods_by_claim.get(&key).into_iter();
            let is_its_own = |pod: &Arc<PodView>| uses(pod, claim.meta(), is_made_for(claim.meta(), pod.meta()));
            pods.filter(|pod| is_on_managed(pod) && is_its_own(pod)).for_each(&mut add);
        }
        self.pods_by_inline.get(&spec.unique).into_iter().filter(is_on_managed).for_each(&mut add);
        for known in self.memory.volume(&spec.unique).into_values() {
            for (key, uid) in known.pods {
                let pod = self.pods.get(&key).filter(|pod| pod.meta().uid == uid && needs_volumes(pod));
                pod.into_iter().for_each(&mut add);
            }
        }
        wanted
    }

    /// Returns the claim of a volume, if both agree.
    fn bound_claim(&self, volume: &PersistentVolumeView) -> Option<Arc<PersistentVolumeClaimView>> {
        let reference = volume.spec.claim_ref.as_ref()?;
        let claim = self.claims.namespace(&reference.namespace).get(&reference.name)?;
        let agrees = claim.meta().uid == reference.uid
            && claim.status.phase == "Bound"
            && claim.spec.volume_name == volume.meta().name;
        agrees.then_some(claim)
    }
}

/// Whether a pod has a node, and has not ended.
fn needs_volumes(pod: &PodView) -> bool {
    !pod.spec.node_name.is_empty() && !is_terminated(pod)
}

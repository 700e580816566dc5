//! Pure: which volumes a change concerns.

use steersman_base::{Istr, ObjectKey};
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::{NodeView, PersistentVolumeClaimView, PersistentVolumeView, PodView};
use steersman_model::storage::VolumeAttachmentView;

use super::state::{is_managed, is_out_of_service, is_ready};
use crate::pod_claims::is_terminated;
use crate::volume_spec::VolumeSpec;

/// Index function: the name of a volume on nodes.
pub(super) fn unique_name(volume: &PersistentVolumeView) -> Option<Istr> {
    VolumeSpec::of_volume(volume).map(|spec| spec.unique)
}

/// Index function: the names of the volumes that a pod names without a claim.
pub(super) fn inline_names(pod: &PodView) -> Vec<Istr> {
    let namespace = &pod.meta().namespace;
    let specs = pod.spec.volumes.iter().filter_map(|volume| VolumeSpec::of_inline(volume, namespace));
    specs.map(|spec| spec.unique).collect()
}

/// Index function: the CSI driver of a volume.
pub(super) fn driver(volume: &PersistentVolumeView) -> Option<Istr> {
    use crate::volume_spec::Plugin;
    match VolumeSpec::of_volume(volume)?.plugin {
        Plugin::Csi(csi) => Some(csi.driver),
        Plugin::Iscsi | Plugin::Fc => None,
    }
}

/// Index function: the object of an attached volume.
pub(super) fn attached_volume(attachment: &VolumeAttachmentView) -> Option<Istr> {
    attachment.spec.source.persistent_volume_name.clone()
}

/// Index function: the name of an attached volume that has no object.
pub(super) fn attached_inline(attachment: &VolumeAttachmentView) -> Option<Istr> {
    let inline = attachment.spec.source.inline_volume_spec.as_ref()?;
    inline.source.csi.as_ref().map(|csi| csi.unique_name())
}

/// Index function: the volumes that a node lists.
pub(super) fn listed(node: &NodeView) -> Vec<Istr> {
    node.status.volumes_attached.iter().map(|volume| volume.name.clone()).collect()
}

/// Whether a pod needs its volumes since this change, or does not any more.
pub(super) fn changes_need(change: &Change<PodView>) -> bool {
    let pod = change.object();
    if pod.spec.volumes.is_empty() || pod.spec.node_name.is_empty() {
        return false;
    }
    let before = change.before();
    let is_same =
        before.is_some_and(|old| old.spec.node_name == pod.spec.node_name && is_terminated(old) == is_terminated(pod));
    !is_same || change.is_resync()
}

/// Whether the volumes of a claim have to be looked at: it is bound to another volume, or not any more.
pub(super) fn changes_binding(change: &Change<PersistentVolumeClaimView>) -> bool {
    let claim = change.object();
    let before = change.before();
    let is_same = before.is_some_and(|old| {
        old.meta().uid == claim.meta().uid
            && old.status.phase == claim.status.phase
            && old.spec.volume_name == claim.spec.volume_name
    });
    !claim.spec.volume_name.is_empty() && (!is_same || change.is_resync())
}

/// Whether the volumes of a node have to be looked at.
pub(super) fn changes_node(change: &Change<NodeView>) -> bool {
    let node = change.object();
    let is_same = change.before().is_some_and(|old| {
        is_ready(old) == is_ready(node)
            && is_out_of_service(old) == is_out_of_service(node)
            && is_managed(old) == is_managed(node)
            && old.status.volumes_in_use == node.status.volumes_in_use
            && old.status.volumes_attached == node.status.volumes_attached
    });
    !is_same || change.is_resync()
}

/// Whether pods of a node have to be looked at, too: it is managed since this change.
pub(super) fn becomes_managed(change: &Change<NodeView>) -> bool {
    let node = change.object();
    let was_managed = change.before().is_some_and(|old| is_managed(old));
    !matches!(change, Change::Deleted { .. }) && is_managed(node) && !was_managed
}

/// Returns the volumes that a node lists or uses, or did before this change.
pub(super) fn volumes_of_node(change: &Change<NodeView>) -> Vec<ObjectKey> {
    let nodes = change.before().into_iter().chain([change.object()]);
    let names = nodes.flat_map(|node| {
        let attached = node.status.volumes_attached.iter().map(|volume| &volume.name);
        attached.chain(&node.status.volumes_in_use)
    });
    names.map(|name| ObjectKey::cluster(name)).collect()
}

/// Returns the keys of a volume, as it is and as it was.
pub(super) fn volume(change: &Change<PersistentVolumeView>) -> Vec<ObjectKey> {
    let name = |volume: &PersistentVolumeView| unique_name(volume).map(|name| ObjectKey::cluster(&name));
    let new = name(change.object());
    let old = change.before().and_then(|old| name(old));
    let is_bound_to = |volume: &PersistentVolumeView| volume.spec.claim_ref.clone();
    let is_same = change.before().is_some_and(|old| {
        is_bound_to(old) == is_bound_to(change.object()) && old.spec.access_modes == change.object().spec.access_modes
    });
    if is_same && old == new && !change.is_resync() {
        return Vec::new();
    }
    new.into_iter().chain(old).collect()
}

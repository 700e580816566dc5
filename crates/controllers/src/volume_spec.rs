//! Pure: the volumes that pods name, as the attachable plug-ins of kube-controller-manager see them.
//!
//! Follows `pkg/controller/volume/attachdetach/util`, the plug-ins `csi`, `iscsi` and `fc` and `csi-translation-lib` of
//! Kubernetes 1.37.1. Volumes of the seven plug-ins that were migrated to CSI are translated, on all nodes: their migration is
//! complete.

use std::sync::Arc;

use serde_json::Value;
use steersman_base::{Istr, Meta, ObjectKey};
use steersman_model::View;
use steersman_model::core::pod::{Fc, Iscsi, Volume, VolumeSource};
use steersman_model::core::{Csi, PersistentVolumeClaimView, PersistentVolumeView};

use crate::pod_claims::{claim_name, is_made_for};

mod migrated;
#[cfg(test)]
mod tests;

/// A volume that may be attached to nodes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct VolumeSpec {
    /// Its name in `volumesAttached` and `volumesInUse` of nodes.
    pub(crate) unique: Istr,
    /// Its name in messages.
    pub(crate) shown: Istr,
    /// The plug-in.
    pub(crate) plugin: Plugin,
    /// Whether it may be attached to one node only.
    pub(crate) is_exclusive: bool,
    /// Whether it was translated from a plug-in that is gone.
    pub(crate) is_migrated: bool,
}

/// The plug-in of a volume.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Plugin {
    /// A CSI driver: somebody else attaches, on request by a VolumeAttachment.
    Csi(Box<CsiSpec>),
    /// iSCSI: nodes connect by themselves, and an attachment is only recorded.
    Iscsi,
    /// Fibre Channel: the same.
    Fc,
}

/// A volume of a CSI driver.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CsiSpec {
    pub(crate) driver: Istr,
    pub(crate) handle: Istr,
    pub(crate) source: CsiSource,
}

/// The way in which a VolumeAttachment names its volume.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CsiSource {
    /// By the name of its object.
    Named(Istr),
    /// By its spec: it has no object.
    Inline(Value),
    /// Not at all: nothing is left of the volume but its name on a node.
    Unknown,
}

const CSI: &str = "kubernetes.io/csi";
const ISCSI: &str = "kubernetes.io/iscsi";
const FC: &str = "kubernetes.io/fc";
/// Stands between driver and handle in the names of CSI volumes.
const SEPARATOR: char = '^';
const READ_WRITE_ONCE: &str = "ReadWriteOnce";
const READ_WRITE_MANY: &str = "ReadWriteMany";
const READ_ONLY_MANY: &str = "ReadOnlyMany";

// === impl VolumeSpec ===

impl VolumeSpec {
    /// Returns the volume of an object, unless its source is no attachable one, or one that cannot be translated.
    pub(crate) fn of_volume(volume: &PersistentVolumeView) -> Option<Self> {
        let name = &volume.meta().name;
        let source = &volume.spec.source;
        let is_exclusive = is_exclusive(&volume.spec.access_modes);
        if let Some(csi) = &source.csi {
            let named = CsiSource::Named(name.clone());
            return Some(Self::csi(csi.driver.clone(), csi.volume_handle.clone(), name.clone(), named, is_exclusive));
        }
        let (plugin, unique) = if let Some(iscsi) = &source.iscsi {
            (Plugin::Iscsi, iscsi_name(iscsi))
        } else if let Some(fc) = &source.fc {
            (Plugin::Fc, fc_name(fc)?)
        } else {
            let (driver, handle) = migrated::handle_of(volume)?;
            let is_exclusive = match &source.gce_persistent_disk {
                // It was never writable from many nodes, whatever it said.
                Some(_) => {
                    volume.spec.access_modes.iter().any(|mode| mode == READ_WRITE_ONCE || mode == READ_WRITE_MANY)
                }
                None => is_exclusive,
            };
            let named = CsiSource::Named(name.clone());
            let spec = Self::csi(driver.into(), handle, name.clone(), named, is_exclusive);
            return Some(Self { is_migrated: true, ..spec });
        };
        Some(Self { unique, shown: name.clone(), plugin, is_exclusive, is_migrated: false })
    }

    /// Returns the volume that a pod names without a claim, unless its source is no attachable one.
    pub(crate) fn of_inline(volume: &Volume, namespace: &str) -> Option<Self> {
        // Whether it may be attached to many nodes is not known.
        let local = |plugin, unique| Self {
            unique,
            shown: volume.name.clone(),
            plugin,
            is_exclusive: false,
            is_migrated: false,
        };
        match &volume.source {
            VolumeSource::Iscsi(iscsi) => Some(local(Plugin::Iscsi, iscsi_name(iscsi))),
            VolumeSource::Fc(fc) => Some(local(Plugin::Fc, fc_name(fc)?)),
            _ => {
                let migrated::Translated { name, driver, handle, mode, spec } = migrated::inline(volume, namespace)?;
                let is_exclusive = is_exclusive(&[mode.into()]);
                let spec = Self::csi(driver.into(), handle, name, CsiSource::Inline(spec), is_exclusive);
                Some(Self { is_migrated: true, ..spec })
            }
        }
    }

    /// Returns a volume of a pod, with or without a claim. Claim and volume must be bound to each other, and a claim that is made for
    /// the pod must be its own.
    pub(crate) fn of_pod(
        volume: &Volume,
        pod: &Meta,
        claim: impl Fn(&ObjectKey) -> Option<Arc<PersistentVolumeClaimView>>,
        object: impl Fn(&str) -> Option<Arc<PersistentVolumeView>>,
    ) -> Option<Self> {
        let is_ephemeral = matches!(volume.source, VolumeSource::Ephemeral(_));
        let Some(name) = claim_name(pod, volume) else { return Self::of_inline(volume, &pod.namespace) };
        let claim = claim(&ObjectKey { namespace: pod.namespace.clone(), name })?;
        if claim.status.phase != "Bound" || is_ephemeral && !is_made_for(claim.meta(), pod) {
            return None;
        }
        let object = object(&claim.spec.volume_name)?;
        let is_bound = object.spec.claim_ref.as_ref().is_some_and(|bound| bound.uid == claim.meta().uid);
        if is_bound { Self::of_volume(&object) } else { None }
    }

    /// Returns the plug-in of a volume, from its name on a node. `None` if it is not one of ours.
    pub(crate) fn of_name(unique: &Istr) -> Option<Self> {
        let of = |plugin| Self {
            unique: unique.clone(),
            shown: Istr::new("nil"),
            plugin,
            is_exclusive: false,
            is_migrated: false,
        };
        let in_plugin = |plugin: &str| unique.strip_prefix(plugin)?.strip_prefix('/');
        if let Some(name) = in_plugin(CSI) {
            let (driver, handle) = name.split_once(SEPARATOR)?;
            let spec = CsiSpec { driver: driver.into(), handle: handle.into(), source: CsiSource::Unknown };
            return Some(of(Plugin::Csi(Box::new(spec))));
        }
        if in_plugin(ISCSI).is_some() {
            return Some(of(Plugin::Iscsi));
        }
        in_plugin(FC).map(|_| of(Plugin::Fc))
    }

    /// Returns the name of the plug-in in metrics.
    pub(crate) fn plugin_label(&self) -> String {
        match &self.plugin {
            Plugin::Csi(csi) => format!("{CSI}:{}", csi.driver),
            Plugin::Iscsi => ISCSI.to_owned(),
            Plugin::Fc => FC.to_owned(),
        }
    }

    fn csi(driver: Istr, handle: Istr, shown: Istr, source: CsiSource, is_exclusive: bool) -> Self {
        let unique = Csi { driver: driver.clone(), volume_handle: handle.clone(), ..Csi::default() }.unique_name();
        let plugin = Plugin::Csi(Box::new(CsiSpec { driver, handle, source }));
        Self { unique, shown, plugin, is_exclusive, is_migrated: false }
    }
}

/// Whether the access modes allow one node only. Without any, nothing is known, and the driver has to refuse.
fn is_exclusive(modes: &[Istr]) -> bool {
    !modes.is_empty() && !modes.iter().any(|mode| mode == READ_WRITE_MANY || mode == READ_ONLY_MANY)
}

fn iscsi_name(source: &Iscsi) -> Istr {
    Istr::new(&format!("{ISCSI}/{}:{}:{}", source.target_portal, source.iqn, source.lun))
}

/// The lists are written as Go writes them.
fn fc_name(source: &Fc) -> Option<Istr> {
    let list = |names: &[Istr]| format!("[{}]", names.iter().map(Istr::as_str).collect::<Vec<_>>().join(" "));
    match source.lun {
        Some(lun) if !source.target_wwns.is_empty() => {
            Some(Istr::new(&format!("{FC}/{}:{lun}", list(&source.target_wwns))))
        }
        _ if !source.wwids.is_empty() => Some(Istr::new(&format!("{FC}/{}", list(&source.wwids)))),
        _ => None,
    }
}

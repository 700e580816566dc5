//! Pure: who provisions, deletes and recycles volumes: a plug-in of this manager, or somebody outside.
//!
//! Of upstream's volume plug-ins, kube-controller-manager 1.37 registers two with the binder: host path (provisions,
//! deletes, recycles) and NFS (recycles).

use steersman_base::names::annotations;
use steersman_model::View;
use steersman_model::core::{PersistentVolumeSource, PersistentVolumeView};
use steersman_model::storage::StorageClassView;

use crate::csi_migration;

/// The name of the host path plug-in.
pub(super) const HOST_PATH: &str = "kubernetes.io/host-path";
/// The name of the NFS plug-in.
pub(super) const NFS: &str = "kubernetes.io/nfs";
/// The prefix of the names of in-tree plug-ins.
const IN_TREE: &str = "kubernetes.io/";

/// The provisioner of a class's volumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Provisioner {
    /// A program outside of the manager, under this name.
    External(String),
    /// The host path plug-in.
    HostPath,
}

/// The component that deletes a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deleter {
    /// A program outside of the manager.
    External,
    /// The host path plug-in.
    HostPath,
}

/// Returns who provisions the volumes of a class.
///
/// # Errors
/// The class names an in-tree plug-in that does not exist, or does not provision.
pub(super) fn provisioner(class: &StorageClassView) -> Result<Provisioner, String> {
    let name = class.provisioner.as_str();
    if let Some(driver) = csi_migration::driver_of(name) {
        return Ok(Provisioner::External(driver.to_owned()));
    }
    match name {
        HOST_PATH => Ok(Provisioner::HostPath),
        NFS => Err("no provisionable volume plugin matched".to_owned()),
        name if name.starts_with(IN_TREE) => Err(format!("no volume plugin matched name: {name}")),
        name => Ok(Provisioner::External(name.to_owned())),
    }
}

/// Returns who deletes a volume.
///
/// # Errors
/// It is one of an in-tree plug-in that does not exist, or does not delete.
pub(super) fn deleter(volume: &PersistentVolumeView) -> Result<Deleter, String> {
    let meta = volume.meta();
    let by = meta.annotations.get(annotations::PV_PROVISIONED_BY).filter(|by| !by.is_empty());
    if let Some(by) = by {
        return match by.as_str() {
            HOST_PATH => Ok(Deleter::HostPath),
            NFS => Err("no deletable volume plugin matched".to_owned()),
            name if name.starts_with(IN_TREE) => Err(format!("no volume plugin matched name: {name}")),
            _ => Ok(Deleter::External),
        };
    }
    if meta.annotations.contains_key(annotations::PV_MIGRATED_TO) || volume.spec.source.csi.is_some() {
        return Ok(Deleter::External);
    }
    let refused = |why: &str| format!("error getting deleter volume plugin for volume {:?}: {why}", meta.name.as_str());
    match of_source(&volume.spec.source) {
        Some(HOST_PATH) => Ok(Deleter::HostPath),
        Some(_) => Err(refused("no deletable volume plugin matched")),
        None => Err(refused("no volume plugin matched")),
    }
}

/// Returns the plug-in of the binder that a volume is of.
pub(super) fn of_source(source: &PersistentVolumeSource) -> Option<&'static str> {
    match (&source.host_path, &source.nfs) {
        (Some(_), _) => Some(HOST_PATH),
        (None, Some(_)) => Some(NFS),
        (None, None) => None,
    }
}

/// Returns the name under which the provisioning or deletion of a volume is measured.
pub(super) fn measured_name(volume: &PersistentVolumeView, class: Option<&StorageClassView>) -> String {
    match (deleter(volume), class) {
        (Ok(Deleter::HostPath), _) => HOST_PATH.to_owned(),
        (Ok(Deleter::External), Some(class)) => {
            let name = class.provisioner.as_str();
            csi_migration::driver_of(name).unwrap_or(name).to_owned()
        }
        _ => "N/A".to_owned(),
    }
}

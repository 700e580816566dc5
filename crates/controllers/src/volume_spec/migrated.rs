//! Pure: volumes of plug-ins that are gone, as volumes of the CSI drivers in their place.

use serde_json::{Map, Value, json};
use steersman_base::{Istr, StringMap};
use steersman_model::View;
use steersman_model::core::PersistentVolumeView;
use steersman_model::core::pod::{AzureDisk, Volume, VolumeSource};

use crate::csi_migration::drivers::{AZURE_DISK, AZURE_FILE, CINDER, EBS, GCE, PORTWORX, VSPHERE};

use super::{READ_ONLY_MANY, READ_WRITE_MANY, READ_WRITE_ONCE};

/// A volume that a pod names without a claim, translated.
pub(super) struct Translated {
    /// The name of the volume, if it were an object.
    pub(super) name: Istr,
    pub(super) driver: &'static str,
    pub(super) handle: Istr,
    pub(super) mode: &'static str,
    /// The spec of the volume, if it were an object.
    pub(super) spec: Value,
}

const ZONE: &str = "topology.kubernetes.io/zone";
const ZONE_BETA: &str = "failure-domain.beta.kubernetes.io/zone";
/// Stands between the zones of a regional disk.
const ZONES_SEPARATOR: &str = "__";
const UNSPECIFIED: &str = "UNSPECIFIED";
const RESOURCE_GROUP: &str = "kubernetes.io/azure-file-resource-group";

/// Returns driver and handle of a volume whose plug-in is gone; `None` if it has none, or cannot be translated.
pub(super) fn handle_of(volume: &PersistentVolumeView) -> Option<(&'static str, Istr)> {
    let source = &volume.spec.source;
    if let Some(disk) = &source.aws_elastic_block_store {
        return Some((EBS, ebs_handle(&disk.volume_id)?));
    }
    if let Some(disk) = &source.gce_persistent_disk {
        return Some((GCE, gce_handle(&volume.meta().labels, &disk.pd_name)?));
    }
    if let Some(disk) = &source.azure_disk {
        return is_managed(disk).then(|| (AZURE_DISK, disk.disk_uri.clone()));
    }
    if let Some(share) = &source.azure_file {
        let of_claim = || volume.spec.claim_ref.as_ref().map(|claim| claim.namespace.clone());
        let namespace = share.secret_namespace.clone().or_else(of_claim).filter(|name| !name.is_empty())?;
        let meta = volume.meta();
        let group = meta.annotations.get(RESOURCE_GROUP).map_or("", Istr::as_str);
        let account = account(&share.secret_name);
        let handle = format!("{group}#{account}#{}#{}#{namespace}", share.share_name, meta.name);
        return Some((AZURE_FILE, Istr::new(&handle)));
    }
    if let Some(disk) = &source.cinder {
        return Some((CINDER, disk.volume_id.clone()));
    }
    if let Some(disk) = &source.vsphere_volume {
        return Some((VSPHERE, disk.volume_path.clone()));
    }
    source.portworx_volume.as_ref().map(|volume| (PORTWORX, volume.volume_id.clone()))
}

/// Returns a volume that a pod names without a claim; `None` if its plug-in is not gone, or it cannot be translated.
pub(super) fn inline(volume: &Volume, namespace: &str) -> Option<Translated> {
    let translated = match &volume.source {
        VolumeSource::AwsElasticBlockStore(disk) => {
            let attributes = json!({ "partition": disk.partition.to_string() });
            let handle = ebs_handle(&disk.volume_id)?;
            of(EBS, handle, READ_WRITE_ONCE, disk.read_only, &disk.fs_type, attributes)
        }
        VolumeSource::GcePersistentDisk(disk) => {
            let handle = Istr::new(&format!("projects/{UNSPECIFIED}/zones/{UNSPECIFIED}/disks/{}", disk.pd_name));
            let mode = if disk.read_only { READ_ONLY_MANY } else { READ_WRITE_ONCE };
            let partition = if disk.partition == 0 { String::new() } else { disk.partition.to_string() };
            let attributes = json!({ "partition": partition });
            let made = of(GCE, handle, mode, disk.read_only, &disk.fs_type, attributes);
            Translated { name: Istr::new(&format!("{GCE}-{}", disk.pd_name)), ..made }
        }
        VolumeSource::AzureDisk(disk) if is_managed(disk) => {
            let mut attributes = json!({ "kind": "Managed" });
            if let Some(mode) = disk.caching_mode.as_ref().filter(|mode| !mode.is_empty()) {
                attributes["cachingmode"] = json!(mode);
            }
            if let Some(fs_type) = &disk.fs_type {
                attributes["fstype"] = json!(fs_type);
            }
            let fs_type = disk.fs_type.as_deref().unwrap_or_default();
            let is_read_only = disk.read_only.unwrap_or_default();
            let made = of(AZURE_DISK, disk.disk_uri.clone(), READ_WRITE_ONCE, is_read_only, fs_type, attributes);
            Translated { name: disk.disk_uri.clone(), ..made }
        }
        VolumeSource::AzureFile(share) => {
            let account = account(&share.secret_name);
            let namespace = if namespace.is_empty() { "default" } else { namespace };
            let handle = Istr::new(&format!("#{account}#{}#{}#{namespace}", share.share_name, volume.name));
            let attributes = json!({ "sharename": share.share_name });
            let mut made = of(AZURE_FILE, handle.clone(), READ_WRITE_MANY, share.read_only, "", attributes);
            made.spec["csi"]["nodeStageSecretRef"] = json!({ "name": share.secret_name, "namespace": namespace });
            Translated { name: handle, ..made }
        }
        VolumeSource::Cinder(disk) => {
            of(CINDER, disk.volume_id.clone(), READ_WRITE_ONCE, disk.read_only, &disk.fs_type, json!({}))
        }
        VolumeSource::VsphereVolume(disk) => {
            let attributes = match disk.storage_policy_name.as_str() {
                "" => json!({}),
                policy => json!({ "storagepolicyname": policy }),
            };
            of(VSPHERE, disk.volume_path.clone(), READ_WRITE_ONCE, false, &disk.fs_type, attributes)
        }
        VolumeSource::Portworx(disk) => {
            let mode = if disk.read_only { READ_ONLY_MANY } else { READ_WRITE_ONCE };
            of(PORTWORX, disk.volume_id.clone(), mode, false, &disk.fs_type, json!({}))
        }
        _ => return None,
    };
    Some(translated)
}

/// Returns a volume that has the name which most of them get.
fn of(
    driver: &'static str,
    handle: Istr,
    mode: &'static str,
    is_read_only: bool,
    fs_type: &str,
    attributes: Value,
) -> Translated {
    let mut csi = Map::new();
    csi.insert("driver".into(), json!(driver));
    csi.insert("volumeHandle".into(), json!(handle));
    if is_read_only {
        csi.insert("readOnly".into(), json!(true));
    }
    if !fs_type.is_empty() {
        csi.insert("fsType".into(), json!(fs_type));
    }
    if attributes.as_object().is_some_and(|attributes| !attributes.is_empty()) {
        csi.insert("volumeAttributes".into(), attributes);
    }
    let spec = json!({ "csi": csi, "accessModes": [mode], "volumeMode": "Filesystem" });
    Translated { name: Istr::new(&format!("{driver}-{handle}")), driver, handle, mode, spec }
}

/// Returns the volume of `aws://zone/vol-1`, `aws:///vol-1` or `vol-1`; `None` of anything else that begins like the first.
fn ebs_handle(id: &Istr) -> Option<Istr> {
    let Some(rest) = id.strip_prefix("aws://") else { return Some(id.clone()) };
    let (_zone, path) = rest.split_once('/')?;
    let volume = path.trim_matches('/');
    (volume.starts_with("vol-") && !volume.contains('/')).then(|| Istr::new(volume))
}

/// Returns the handle of a disk: by its zone, by its region if it has several, or without either.
fn gce_handle(labels: &StringMap, disk: &Istr) -> Option<Istr> {
    let label = |key: &str| labels.get(key).filter(|zone| !zone.is_empty());
    let zones: Vec<&str> =
        label(ZONE_BETA).or_else(|| label(ZONE)).map_or_else(Vec::new, |zones| zones.split(ZONES_SEPARATOR).collect());
    let place = match zones[..] {
        [] => format!("zones/{UNSPECIFIED}"),
        [zone] => format!("zones/{zone}"),
        _ => format!("regions/{}", region(&zones)?),
    };
    Some(Istr::new(&format!("projects/{UNSPECIFIED}/{place}/disks/{disk}")))
}

/// Returns the region of zones such as `us-central1-a`, if they are in one.
fn region<'a>(zones: &[&'a str]) -> Option<&'a str> {
    let of = |zone: &&'a str| zone.rsplit_once('-').map(|(region, _)| region).filter(|_| zone.split('-').count() == 3);
    let first = of(zones.first()?)?;
    zones.iter().all(|zone| of(zone) == Some(first)).then_some(first)
}

fn is_managed(disk: &AzureDisk) -> bool {
    disk.kind.as_ref().is_none_or(|kind| kind.eq_ignore_ascii_case("Managed"))
}

/// Returns the storage account that the name of a secret contains, or else the name.
fn account(secret: &str) -> &str {
    let account = secret.split_once("azure-storage-account-").and_then(|(_, rest)| rest.rsplit_once("-secret"));
    account.map(|(account, _)| account).filter(|account| !account.is_empty()).unwrap_or(secret)
}

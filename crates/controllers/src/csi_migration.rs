//! Pure: volumes of in-tree plug-ins that CSI drivers have taken over, by the names of both.
//!
//! Follows `k8s.io/csi-translation-lib` and `pkg/volume/csimigration` of Kubernetes 1.37.1: the migration of these plug-ins
//! is complete, and no feature gate turns it off.

use steersman_base::StringMap;
use steersman_base::names::annotations;
use steersman_model::core::PersistentVolumeSource;

/// The CSI drivers.
pub(crate) mod drivers {
    pub(crate) const EBS: &str = "ebs.csi.aws.com";
    pub(crate) const AZURE_DISK: &str = "disk.csi.azure.com";
    pub(crate) const AZURE_FILE: &str = "file.csi.azure.com";
    pub(crate) const CINDER: &str = "cinder.csi.openstack.org";
    pub(crate) const GCE: &str = "pd.csi.storage.gke.io";
    pub(crate) const PORTWORX: &str = "pxd.portworx.com";
    pub(crate) const VSPHERE: &str = "csi.vsphere.vmware.com";
}

/// In-tree plug-ins, each with the CSI driver that has taken over its volumes.
const MIGRATED: [(&str, &str); 7] = [
    ("kubernetes.io/aws-ebs", drivers::EBS),
    ("kubernetes.io/azure-disk", drivers::AZURE_DISK),
    ("kubernetes.io/azure-file", drivers::AZURE_FILE),
    ("kubernetes.io/cinder", drivers::CINDER),
    ("kubernetes.io/gce-pd", drivers::GCE),
    ("kubernetes.io/portworx-volume", drivers::PORTWORX),
    ("kubernetes.io/vsphere-volume", drivers::VSPHERE),
];

/// A change of the annotation that names the CSI driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MigratedTo {
    /// It names this driver.
    Set(&'static str),
    /// It is removed: the plug-in is not one that was taken over.
    Removed,
}

/// Returns the CSI driver that has taken over an in-tree plug-in, if there is one.
pub(crate) fn driver_of(plugin: &str) -> Option<&'static str> {
    MIGRATED.iter().find(|(name, _)| *name == plugin).map(|(_, driver)| *driver)
}

/// Returns the in-tree plug-in of a volume, if a CSI driver has taken it over.
pub(crate) fn plugin_of(source: &PersistentVolumeSource) -> Option<&'static str> {
    let named = [
        (source.aws_elastic_block_store.is_some(), "kubernetes.io/aws-ebs"),
        (source.azure_disk.is_some(), "kubernetes.io/azure-disk"),
        (source.azure_file.is_some(), "kubernetes.io/azure-file"),
        (source.cinder.is_some(), "kubernetes.io/cinder"),
        (source.gce_persistent_disk.is_some(), "kubernetes.io/gce-pd"),
        (source.portworx_volume.is_some(), "kubernetes.io/portworx-volume"),
        (source.vsphere_volume.is_some(), "kubernetes.io/vsphere-volume"),
    ];
    named.iter().find(|(is_it, _)| *is_it).map(|(_, plugin)| *plugin)
}

/// Returns how the annotation `pv.kubernetes.io/migrated-to` of a claim has to change.
pub(crate) fn of_claim(held: &StringMap) -> Option<MigratedTo> {
    let provisioner = held.get(annotations::STORAGE_PROVISIONER);
    let provisioner = provisioner.or_else(|| held.get(annotations::STORAGE_PROVISIONER_BETA))?;
    change(held, provisioner)
}

/// Returns how the annotation of a volume has to change. One that was not provisioned dynamically is left alone.
pub(crate) fn of_volume(held: &StringMap) -> Option<MigratedTo> {
    change(held, held.get(annotations::PV_PROVISIONED_BY)?)
}

fn change(held: &StringMap, provisioner: &str) -> Option<MigratedTo> {
    let migrated_to = held.get(annotations::PV_MIGRATED_TO).map_or("", |driver| driver.as_str());
    match driver_of(provisioner) {
        Some(driver) if migrated_to != driver => Some(MigratedTo::Set(driver)),
        None if !migrated_to.is_empty() => Some(MigratedTo::Removed),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use steersman_model::core::PersistentVolumeView;

    use super::*;
    use crate::test_objects::decode;

    fn map(pairs: &[(&str, &str)]) -> StringMap {
        StringMap::from_texts(&mut pairs.to_vec())
    }

    #[test]
    fn the_annotation_follows_the_provisioner() {
        let key = annotations::STORAGE_PROVISIONER;
        let beta = annotations::STORAGE_PROVISIONER_BETA;
        let to = annotations::PV_MIGRATED_TO;
        let check = |held: &[(&str, &str)], want: Option<MigratedTo>| {
            assert_eq!(of_claim(&map(held)), want, "{held:?}");
        };
        check(&[], None);
        check(&[(to, "pd.csi.storage.gke.io")], None);
        check(&[(key, "kubernetes.io/gce-pd")], Some(MigratedTo::Set("pd.csi.storage.gke.io")));
        check(&[(beta, "kubernetes.io/gce-pd")], Some(MigratedTo::Set("pd.csi.storage.gke.io")));
        check(&[(key, "kubernetes.io/gce-pd"), (to, "pd.csi.storage.gke.io")], None);
        check(&[(key, "kubernetes.io/gce-pd"), (to, "other")], Some(MigratedTo::Set("pd.csi.storage.gke.io")));
        check(&[(key, "example.com/disk"), (to, "other")], Some(MigratedTo::Removed));
        check(&[(key, "example.com/disk")], None);
        assert_eq!(
            of_volume(&map(&[(annotations::PV_PROVISIONED_BY, "kubernetes.io/cinder")])),
            Some(MigratedTo::Set("cinder.csi.openstack.org"))
        );
        assert_eq!(of_volume(&map(&[(key, "kubernetes.io/cinder")])), None);
    }

    #[test]
    fn every_migrated_source_has_a_plugin_and_a_driver() {
        for (field, plugin) in [
            ("awsElasticBlockStore", "kubernetes.io/aws-ebs"),
            ("azureDisk", "kubernetes.io/azure-disk"),
            ("azureFile", "kubernetes.io/azure-file"),
            ("cinder", "kubernetes.io/cinder"),
            ("gcePersistentDisk", "kubernetes.io/gce-pd"),
            ("portworxVolume", "kubernetes.io/portworx-volume"),
            ("vsphereVolume", "kubernetes.io/vsphere-volume"),
        ] {
            let volume: PersistentVolumeView = decode(json!({ "metadata": { "name": "a" }, "spec": { field: {} } }));
            assert_eq!(plugin_of(&volume.spec.source), Some(plugin));
            assert!(driver_of(plugin).is_some());
        }
        let volume: PersistentVolumeView =
            decode(json!({ "metadata": { "name": "a" }, "spec": { "csi": { "driver": "ebs.csi.aws.com" } } }));
        assert_eq!(plugin_of(&volume.spec.source), None);
    }
}

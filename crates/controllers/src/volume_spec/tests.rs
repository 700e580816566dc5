//! Tables of names and translations.

use serde_json::{Value, json};
use steersman_model::core::{PersistentVolumeView, PodView};

use super::{CsiSource, Plugin, VolumeSpec};
use crate::test_objects::decode;

#[allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]
fn volume(spec: Value, labels: Value) -> PersistentVolumeView {
    decode(json!({ "metadata": { "name": "v", "labels": labels }, "spec": spec }))
}

#[allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]
fn inline(source: Value) -> Option<VolumeSpec> {
    let mut volume = json!({ "name": "data" });
    volume.as_object_mut()?.extend(source.as_object()?.clone());
    let pod: PodView =
        decode(json!({ "metadata": { "name": "p", "namespace": "shop" }, "spec": { "volumes": [volume] } }));
    let volume = pod.spec.volumes.first()?.clone();
    VolumeSpec::of_inline(&volume, "shop")
}

#[test]
fn volumes_have_upstreams_names() {
    let check = |spec: Value, labels: Value, want: Option<&str>| {
        let found = VolumeSpec::of_volume(&volume(spec.clone(), labels));
        assert_eq!(found.as_ref().map(|spec| spec.unique.as_str()), want, "{spec}");
        let is_local = |spec: &VolumeSpec| !matches!(spec.plugin, Plugin::Csi(_));
        if let Some(found) = found {
            let by_name = VolumeSpec::of_name(&found.unique).expect("its own name");
            assert_eq!(is_local(&by_name), is_local(&found), "{spec}");
            assert_eq!(by_name.plugin_label(), found.plugin_label(), "{spec}");
        }
    };
    let none = json!({});
    let csi = |name: &str| Some(format!("kubernetes.io/csi/{name}"));
    let translated = |spec: Value, labels: Value, want: &str| check(spec, labels, csi(want).as_deref());
    check(json!({ "csi": { "driver": "d.io", "volumeHandle": "h" } }), none.clone(), Some("kubernetes.io/csi/d.io^h"));
    check(
        json!({ "iscsi": { "targetPortal": "10.0.0.1:3260", "iqn": "iqn.2001", "lun": 2 } }),
        none.clone(),
        Some("kubernetes.io/iscsi/10.0.0.1:3260:iqn.2001:2"),
    );
    check(json!({ "fc": { "targetWWNs": ["a", "b"], "lun": 0 } }), none.clone(), Some("kubernetes.io/fc/[a b]:0"));
    check(json!({ "fc": { "wwids": ["w"] } }), none.clone(), Some("kubernetes.io/fc/[w]"));
    check(json!({ "fc": { "targetWWNs": ["a"] } }), none.clone(), None);
    check(json!({ "nfs": { "server": "s", "path": "/" } }), none.clone(), None);
    let ebs = |id: &str| json!({ "awsElasticBlockStore": { "volumeID": id } });
    translated(ebs("vol-1"), none.clone(), "ebs.csi.aws.com^vol-1");
    translated(ebs("aws://us-east-1a/vol-1"), none.clone(), "ebs.csi.aws.com^vol-1");
    translated(ebs("aws:///vol-1"), none.clone(), "ebs.csi.aws.com^vol-1");
    check(ebs("aws://us-east-1a/x/vol-1"), none.clone(), None);
    let gce = json!({ "gcePersistentDisk": { "pdName": "disk" } });
    let zone = |zone: &str| json!({ "topology.kubernetes.io/zone": zone });
    translated(gce.clone(), none.clone(), "pd.csi.storage.gke.io^projects/UNSPECIFIED/zones/UNSPECIFIED/disks/disk");
    translated(
        gce.clone(),
        zone("us-central1-a"),
        "pd.csi.storage.gke.io^projects/UNSPECIFIED/zones/us-central1-a/disks/disk",
    );
    translated(
        gce.clone(),
        zone("us-central1-a__us-central1-b"),
        "pd.csi.storage.gke.io^projects/UNSPECIFIED/regions/us-central1/disks/disk",
    );
    check(gce, zone("us-central1-a__europe-west1-b"), None);
    translated(json!({ "azureDisk": { "diskURI": "/d", "diskName": "d" } }), none.clone(), "disk.csi.azure.com^/d");
    check(json!({ "azureDisk": { "diskURI": "/d", "diskName": "d", "kind": "Dedicated" } }), none.clone(), None);
    let share = json!({ "secretName": "azure-storage-account-acc-secret", "shareName": "s", "secretNamespace": "ns" });
    translated(json!({ "azureFile": share }), none.clone(), "file.csi.azure.com^#acc#s#v#ns");
    check(json!({ "azureFile": { "secretName": "x", "shareName": "s" } }), none.clone(), None);
    translated(json!({ "cinder": { "volumeID": "c" } }), none.clone(), "cinder.csi.openstack.org^c");
    translated(json!({ "vsphereVolume": { "volumePath": "[ds] v" } }), none.clone(), "csi.vsphere.vmware.com^[ds] v");
    translated(json!({ "portworxVolume": { "volumeID": "p" } }), none, "pxd.portworx.com^p");
}

#[test]
fn access_modes_decide_whether_a_volume_is_for_one_node() {
    let check = |modes: Value, want: bool, want_gce: bool| {
        let spec = json!({ "accessModes": modes, "csi": { "driver": "d", "volumeHandle": "h" } });
        let found = VolumeSpec::of_volume(&volume(spec, json!({}))).expect("a CSI volume");
        assert_eq!(found.is_exclusive, want, "{modes}");
        let spec = json!({ "accessModes": modes, "gcePersistentDisk": { "pdName": "d" } });
        let found = VolumeSpec::of_volume(&volume(spec, json!({}))).expect("a disk");
        assert_eq!(found.is_exclusive, want_gce, "{modes}");
    };
    check(json!([]), false, false);
    check(json!(["ReadWriteOnce"]), true, true);
    check(json!(["ReadWriteOncePod"]), true, false);
    check(json!(["ReadOnlyMany"]), false, false);
    check(json!(["ReadWriteOnce", "ReadOnlyMany"]), false, true);
    check(json!(["ReadWriteMany"]), false, true);
}

#[test]
fn inline_volumes_of_migrated_plug_ins_become_the_specs_of_volumes() {
    let found =
        inline(json!({ "awsElasticBlockStore": { "volumeID": "aws://z/vol-1", "partition": 2, "fsType": "ext4" } }))
            .expect("it is migrated");
    assert_eq!(found.shown, "ebs.csi.aws.com-vol-1");
    assert!(found.is_exclusive && found.is_migrated);
    let Plugin::Csi(csi) = &found.plugin else { panic!("it is of CSI") };
    let want = json!({
        "csi": {
            "driver": "ebs.csi.aws.com", "volumeHandle": "vol-1", "fsType": "ext4",
            "volumeAttributes": { "partition": "2" },
        },
        "accessModes": ["ReadWriteOnce"],
        "volumeMode": "Filesystem",
    });
    assert_eq!(csi.source, CsiSource::Inline(want));
    let found =
        inline(json!({ "azureFile": { "secretName": "x", "shareName": "s", "readOnly": true } })).expect("it is");
    assert_eq!(found.unique, "kubernetes.io/csi/file.csi.azure.com^#x#s#data#shop");
    assert!(!found.is_exclusive);
    let found = inline(json!({ "gcePersistentDisk": { "pdName": "d", "readOnly": true } })).expect("it is");
    assert!(!found.is_exclusive && found.shown == "pd.csi.storage.gke.io-d");
    let vsphere = json!({ "vsphereVolume": { "volumePath": "[ds] v", "storagePolicyName": "gold" } });
    assert_eq!(inline(vsphere).expect("it is").unique, "kubernetes.io/csi/csi.vsphere.vmware.com^[ds] v");
    assert_eq!(inline(json!({ "fc": { "wwids": ["w"] } })).map(|spec| spec.shown), Some("data".into()));
    assert!(inline(json!({ "csi": { "driver": "d", "nodePublishSecretRef": { "name": "s" } } })).is_none());
    assert!(VolumeSpec::of_name(&"example.com/other/x".into()).is_none());
}

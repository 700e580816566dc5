//! Every field of attachments, drivers and volumes that the attach/detach controller reads.

use serde_json::json;
use steersman_model::core::{PersistentVolumeSource, PersistentVolumeView};
use steersman_model::corpus::every_field;
use steersman_model::storage::{CsiDriverView, VolumeAttachmentView};

use crate::support::{META, Row, both, check, text};

#[test]
fn attachments_and_drivers_have_what_controllers_read() {
    let object = every_field("storage.v1.VolumeAttachment");
    let attachment: VolumeAttachmentView = both("storage.v1.VolumeAttachment", &object);
    check(&object, &attachment.metadata, META);
    check(
        &object,
        &attachment,
        &[
            ("/spec/attacher", |it| text(&it.spec.attacher)),
            ("/spec/nodeName", |it| text(&it.spec.node_name)),
            ("/spec/source/persistentVolumeName", |it| json!(it.spec.source.persistent_volume_name)),
            ("/spec/source/inlineVolumeSpec/csi/driver", |it| {
                let inline = it.spec.source.inline_volume_spec.as_ref();
                json!(inline.and_then(|inline| inline.source.csi.as_ref()).map(|csi| &csi.driver))
            }),
            ("/spec/source/inlineVolumeSpec/csi/volumeHandle", |it| {
                let inline = it.spec.source.inline_volume_spec.as_ref();
                json!(inline.and_then(|inline| inline.source.csi.as_ref()).map(|csi| &csi.volume_handle))
            }),
            ("/status/attached", |it| json!(it.status.attached)),
            ("/status/attachError/message", |it| json!(it.status.attach_error.as_ref().map(|error| &error.message))),
            ("/status/detachError/message", |it| json!(it.status.detach_error.as_ref().map(|error| &error.message))),
        ],
    );
    let object = every_field("storage.v1.CSIDriver");
    let driver: CsiDriverView = both("storage.v1.CSIDriver", &object);
    check(&object, &driver.metadata, META);
    check(
        &object,
        &driver,
        &[
            ("/spec/attachRequired", |driver| json!(driver.spec.attach_required)),
            ("/spec/seLinuxMount", |driver| json!(driver.spec.se_linux_mount)),
        ],
    );
}

#[test]
fn the_sources_of_volumes_have_what_their_names_are_made_of() {
    let object = every_field("core.v1.PersistentVolume");
    let volume: PersistentVolumeView = both("core.v1.PersistentVolume", &object);
    let rows: &[Row<PersistentVolumeSource>] = &[
        ("/spec/gcePersistentDisk/pdName", |it| json!(it.gce_persistent_disk.as_ref().map(|disk| &disk.pd_name))),
        ("/spec/awsElasticBlockStore/volumeID", |it| {
            json!(it.aws_elastic_block_store.as_ref().map(|disk| &disk.volume_id))
        }),
        ("/spec/iscsi/targetPortal", |it| json!(it.iscsi.as_ref().map(|disk| &disk.target_portal))),
        ("/spec/iscsi/iqn", |it| json!(it.iscsi.as_ref().map(|disk| &disk.iqn))),
        ("/spec/iscsi/lun", |it| json!(it.iscsi.as_ref().map(|disk| disk.lun))),
        ("/spec/cinder/volumeID", |it| json!(it.cinder.as_ref().map(|disk| &disk.volume_id))),
        ("/spec/fc/targetWWNs", |it| json!(it.fc.as_ref().map(|disk| &disk.target_wwns))),
        ("/spec/fc/lun", |it| json!(it.fc.as_ref().map(|disk| disk.lun))),
        ("/spec/fc/wwids", |it| json!(it.fc.as_ref().map(|disk| &disk.wwids))),
        ("/spec/azureFile/secretName", |it| json!(it.azure_file.as_ref().map(|share| &share.secret_name))),
        ("/spec/azureFile/shareName", |it| json!(it.azure_file.as_ref().map(|share| &share.share_name))),
        ("/spec/azureFile/secretNamespace", |it| json!(it.azure_file.as_ref().map(|share| &share.secret_namespace))),
        ("/spec/vsphereVolume/volumePath", |it| json!(it.vsphere_volume.as_ref().map(|disk| &disk.volume_path))),
        ("/spec/azureDisk/diskURI", |it| json!(it.azure_disk.as_ref().map(|disk| &disk.disk_uri))),
        ("/spec/portworxVolume/volumeID", |it| json!(it.portworx_volume.as_ref().map(|disk| &disk.volume_id))),
    ];
    check(&object, &volume.spec.source, rows);
    let csi = volume.spec.source.csi.as_ref().map(|csi| csi.unique_name());
    let driver = object["spec"]["csi"]["driver"].as_str().unwrap_or_default();
    let handle = object["spec"]["csi"]["volumeHandle"].as_str().unwrap_or_default();
    assert_eq!(csi, Some(format!("kubernetes.io/csi/{driver}^{handle}").into()));
}

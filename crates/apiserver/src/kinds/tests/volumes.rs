//! Rules of volumes, claims and their classes that no recorded answer has.

use serde_json::{Value, json};

use super::fields::refused;
use super::{validate, validate_status};

fn volume(spec: &Value) -> Value {
    let mut volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": spec});
    volume["spec"]["accessModes"] = json!(["ReadWriteOnce"]);
    volume["spec"]["capacity"] = json!({"storage": "1Gi"});
    volume
}

#[test]
fn a_volume_is_somewhere_and_says_where() {
    let iqn = "iqn.2001-04.com.example:disk";
    let iscsi = |change: Value| {
        let mut source = json!({"targetPortal": "10.0.0.1:3260", "iqn": iqn, "lun": 0});
        for (field, value) in change.as_object().expect("fields") {
            source[field] = value.clone();
        }
        json!({ "iscsi": source })
    };
    let csi = |field: &str, value: Value| {
        let mut source = json!({"driver": "a.example", "volumeHandle": "h"});
        source[field] = value;
        json!({ "csi": source })
    };
    let secret = json!({"name": "s", "namespace": "n"});
    for good in [
        iscsi(json!({})),
        iscsi(json!({"iqn": "eui.0123456789abcdef", "initiatorName": format!("naa.{}", "0".repeat(32))})),
        iscsi(json!({"chapAuthSession": true, "secretRef": {"name": "s"}})),
        csi("nodeExpandSecretRef", secret.clone()),
        json!({"fc": {"wwids": ["w"]}}),
        json!({"fc": {"targetWWNs": ["w"], "lun": 255}}),
        json!({"rbd": {"monitors": ["m"], "image": "i"}}),
        json!({"cephfs": {"monitors": ["m"]}}),
        json!({"azureFile": {"secretName": "s", "shareName": "t"}}),
        json!({"hostPath": {"path": "/a"}, "persistentVolumeReclaimPolicy": "Recycle"}),
        json!({"quobyte": {"registry": "h:1,[::1]:2", "volume": "v"}}),
        json!({"nfs": {"server": "s", "path": "/p"}}),
    ] {
        refused(&volume(&good), &[]);
    }
    let one = "must be a host:port pair or multiple pairs separated by commas";
    for (spec, want) in [
        (iscsi(json!({"iqn": "wwn.1"})), "spec.iscsi.iqn: Invalid value: \"wwn.1\": must be valid format"),
        (iscsi(json!({"iqn": "iqn.1"})), "spec.iscsi.iqn: Invalid value: \"iqn.1\": must be valid format"),
        (iscsi(json!({"lun": 256})), "spec.iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive"),
        (iscsi(json!({"chapAuthDiscovery": true})), "spec.iscsi.secretRef: Required value"),
        (iscsi(json!({"secretRef": {}})), "spec.iscsi.secretRef.name: Required value"),
        (
            iscsi(json!({"initiatorName": "eui.1"})),
            "spec.iscsi.initiatorname: Invalid value: \"eui.1\": must be valid format",
        ),
        (
            csi("controllerExpandSecretRef", json!({"name": "s"})),
            "spec.csi.controllerExpandSecretRef.namespace: Required value",
        ),
        (
            json!({"fc": {}}),
            "spec.fc.targetWWNs: Required value: must specify either targetWWNs or wwids, but not both",
        ),
        (
            json!({"fc": {"targetWWNs": ["w"]}}),
            "spec.fc.lun: Required value: lun is required if targetWWNs is specified",
        ),
        (
            json!({"fc": {"targetWWNs": ["w"], "wwids": ["x"], "lun": 1}}),
            "spec.fc.targetWWNs: Invalid value: [\"w\"]: targetWWNs and wwids can not be specified simultaneously",
        ),
        (json!({"rbd": {"monitors": ["m"]}}), "spec.rbd.image: Required value"),
        (json!({"cephfs": {"monitors": []}}), "spec.cephfs.monitors: Required value"),
        (
            json!({"azureFile": {"secretName": "s", "shareName": "t", "secretNamespace": ""}}),
            "spec.azureFile.secretNamespace: Required value",
        ),
        (json!({"gcePersistentDisk": {"partition": 1}}), "spec.persistentDisk.pdName: Required value"),
        (
            json!({"quobyte": {"registry": "h", "volume": "v"}}),
            &format!("spec.quobyte.registry: Invalid value: \"h\": {one}"),
        ),
        (
            json!({"flexVolume": {"driver": "d", "options": {"a.k8s.io/b": "c"}}}),
            "spec.flexVolume.options[a.k8s.io/b]: Invalid value: \"a.k8s.io/b\": kubernetes.io and k8s.io namespaces are reserved",
        ),
        (
            json!({"hostPath": {"path": "/./"}, "persistentVolumeReclaimPolicy": "Recycle"}),
            "spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'",
        ),
        (json!({"nfs": {"server": "s", "path": "p"}}), "spec.nfs.path: Invalid value: \"p\": must be an absolute path"),
        (
            json!({"nfs": {"server": "s", "path": "/p"}, "cephfs": {}}),
            "spec.cephFS: Forbidden: may not specify more than 1 volume type",
        ),
        (
            json!({"hostPath": {"path": "/a"}, "volumeAttributesClassName": "c"}),
            "spec.csi: Required value: has to be specified when using volumeAttributesClassName",
        ),
        (
            {
                let mut spec = csi("fsType", json!("ext4"));
                spec["volumeAttributesClassName"] = "".into();
                spec
            },
            "spec.volumeAttributesClassName: Required value: an empty string is disallowed",
        ),
    ] {
        refused(&volume(&spec), &[want]);
    }
    // A volume may get a secret for its growth, and keeps a class of attributes.
    let mut old = volume(&csi("fsType", json!("ext4")));
    old["spec"]["volumeAttributesClassName"] = "c".into();
    let mut new = old.clone();
    new["spec"]["csi"]["controllerExpandSecretRef"] = secret;
    assert_eq!(*validate("", "PersistentVolume", &new, Some(&old)), []);
    new["spec"]["volumeAttributesClassName"] = Value::Null;
    let errors = validate("", "PersistentVolume", &new, Some(&old));
    let want = "spec.volumeAttributesClassName: Forbidden: update from non-nil value to nil is forbidden";
    assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), [want]);
}

#[test]
fn a_class_names_topologies_once() {
    let class = |terms: Value| {
        json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "c"},
            "provisioner": "example.com/p", "allowedTopologies": terms,
        })
    };
    let term = |key: &str, values: &[&str]| json!({"matchLabelExpressions": [{"key": key, "values": values}]});
    let at = "allowedTopologies[0].matchLabelExpressions";
    refused(&class(json!([term("zone", &["a", "b"]), term("zone", &["a"])])), &[]);
    refused(&class(json!([term("zone", &[])])), &[&format!("{at}[0].values: Required value")]);
    refused(&class(json!([term("zone", &["a", "a"])])), &[&format!("{at}[0].values[1]: Duplicate value: \"a\"")]);
    refused(&class(json!([{}])), &[&format!("{at}: Duplicate value: \"\"")]);
    let twice = json!([term("zone", &["a", "b"]), term("zone", &["b", "a"])]);
    refused(&class(twice), &["allowedTopologies[1].matchLabelExpressions: Duplicate value: \"\""]);
    let expression = |value: &str| json!({"key": "zone", "values": [value]});
    let keys = json!({"matchLabelExpressions": [expression("a"), expression("b")]});
    refused(&class(json!([keys])), &[&format!("{at}[1].key: Duplicate value: \"zone\"")]);
}

#[test]
fn the_status_of_a_claim_says_how_far_its_growth_is() {
    let claim =
        |status: Value| json!({"metadata": {"name": "c", "resourceVersion": "1"}, "spec": {}, "status": status});
    let errors = |status: Value| {
        let errors = validate_status("", "PersistentVolumeClaim", &claim(status), &claim(json!({})));
        errors.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let good = json!({
        "capacity": {"storage": "1Gi"}, "allocatedResources": {"storage": "2Gi", "example.com/a": "1"},
        "allocatedResourceStatuses": {"storage": "NodeResizePending"},
    });
    assert_eq!(errors(good), Vec::<String>::new());
    let states = "supported values: \"ControllerResizeInProgress\", \"ControllerResizeInfeasible\", \"NodeResizeInProgress\", \
                  \"NodeResizeInfeasible\", \"NodeResizePending\"";
    for (status, want) in [
        (
            json!({"allocatedResourceStatuses": {"storage": "Done"}}),
            format!("status.allocatedResourceStatuses: Unsupported value: \"storage\": {states}"),
        ),
        (
            json!({"allocatedResourceStatuses": {"cpu": "NodeResizePending"}}),
            "status.allocatedResourceStatuses: Unsupported value: \"cpu\": supported values: \"storage\"".to_owned(),
        ),
        (
            json!({"allocatedResources": {"cpu": "1"}}),
            "status.allocatedResources: Unsupported value: \"cpu\": supported values: \"storage\"".to_owned(),
        ),
        (
            json!({"allocatedResources": {"storage": "-1Gi"}}),
            "status.allocatedResources[storage]: Invalid value: -1073741824: must be a valid resource quantity"
                .to_owned(),
        ),
        (
            json!({"capacity": {"storage": "-1"}}),
            "status.capacity[storage]: Invalid value: -1: must be a valid resource quantity".to_owned(),
        ),
    ] {
        assert_eq!(errors(status), [want]);
    }
}

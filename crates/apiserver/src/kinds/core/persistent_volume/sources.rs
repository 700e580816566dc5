//! Sources of PersistentVolumes: the middle of `ValidatePersistentVolumeSpec` of `pkg/apis/core/validation/validation.go`.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;
use steersman_base::validation::{dns1123_label, dns1123_subdomain};

use crate::field::{Errors, FieldError, Path};
use crate::kinds::core::pod::volumes::host_path;
use crate::kinds::shared::check::{self, in_range, one_of_if_set, problems, required};
use crate::kinds::shared::json::{entries, flag, is_set, items, number, text};
use crate::kinds::storage::driver_name;

/// The sources of volumes: each volume has one of these, in the order in which upstream looks at them.
pub(super) const ALL: &[&str] = &[
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

/// Checks that a volume has one source, and that source.
pub(super) fn validate(spec: &Value, name: &str, path: &Path, errors: &mut Errors) {
    let mut count = 0;
    for kind in ALL.iter().copied().filter(|kind| is_set(&spec[*kind])) {
        // Names of errors are upstream's.
        let shown = match kind {
            "cephfs" if count > 0 => "cephFS",
            "gcePersistentDisk" if count == 0 => "persistentDisk",
            other => other,
        };
        let at = path.child(shown);
        count += 1;
        if count > 1 && kind != "flexVolume" {
            errors.push(FieldError::forbidden(&at, "may not specify more than 1 volume type"));
            continue;
        }
        source(kind, &spec[kind], name, &at, errors);
        if kind == "local" && !is_set(&spec["nodeAffinity"]) {
            let detail = "Local volume requires node affinity";
            errors.push(FieldError::required(&path.child("nodeAffinity"), detail));
        }
    }
    if count == 0 {
        errors.push(FieldError::required(path, "must specify a volume type"));
    }
}

fn source(kind: &str, source: &Value, name: &str, at: &Path, errors: &mut Errors) {
    let mut need = |fields: &[&str]| {
        for field in fields {
            required(&source[*field], &at.child(field), errors);
        }
    };
    match kind {
        "hostPath" => host_path(source, at, errors),
        "gcePersistentDisk" => {
            need(&["pdName"]);
            partition(source, at, errors);
        }
        "awsElasticBlockStore" => {
            need(&["volumeID"]);
            partition(source, at, errors);
        }
        "glusterfs" => {
            need(&["endpoints", "path"]);
            endpoints_namespace(source, &at.child("endpointsNamespace"), errors);
        }
        "flocker" => flocker(source, at, errors),
        "nfs" => {
            need(&["server", "path"]);
            if !text(&source["path"]).starts_with('/') {
                let detail = "must be an absolute path";
                errors.push(FieldError::invalid(&at.child("path"), text(&source["path"]), detail));
            }
        }
        "rbd" => {
            monitors(source, at, errors);
            required(&source["image"], &at.child("image"), errors);
        }
        "quobyte" => quobyte(source, at, errors),
        "cephfs" => monitors(source, at, errors),
        "iscsi" => iscsi(source, name, at, errors),
        "cinder" => {
            need(&["volumeID"]);
            present_reference(source, at, errors);
        }
        "fc" => fibre_channel(source, at, errors),
        "flexVolume" => {
            need(&["driver"]);
            flex_options(&source["options"], &at.child("options"), errors);
        }
        "azureFile" => {
            need(&["secretName", "shareName"]);
            if is_set(&source["secretNamespace"]) {
                required(&source["secretNamespace"], &at.child("secretNamespace"), errors);
            }
        }
        "vsphereVolume" => need(&["volumePath"]),
        "photonPersistentDisk" => need(&["pdID"]),
        "portworxVolume" => need(&["volumeID"]),
        "azureDisk" => {
            need(&["diskName", "diskURI"]);
            azure_disk(source, at, errors);
        }
        "scaleIO" => need(&["gateway", "system", "volumeName"]),
        "local" => {
            need(&["path"]);
            check::no_backsteps(text(&source["path"]), &at.child("path"), errors);
        }
        "storageos" => storage_os(source, at, errors),
        "csi" => csi(source, at, errors),
        _ => {}
    }
}

fn partition(source: &Value, at: &Path, errors: &mut Errors) {
    let partition = number(&source["partition"]);
    if !(0..=255).contains(&partition) {
        errors.push(FieldError::invalid(&at.child("partition"), partition, check::range(1, 255)));
    }
}

fn endpoints_namespace(source: &Value, at: &Path, errors: &mut Errors) {
    match source["endpointsNamespace"].as_str() {
        None => {}
        Some("") => {
            let detail = "if the endpointnamespace is set, it must be a valid namespace name";
            errors.push(FieldError::invalid(at, "", detail));
        }
        Some(namespace) => problems(namespace, dns1123_label(namespace), at, errors),
    }
}

fn flocker(source: &Value, at: &Path, errors: &mut Errors) {
    let name = text(&source["datasetName"]);
    match (name.is_empty(), text(&source["datasetUUID"]).is_empty()) {
        (true, true) => errors.push(FieldError::required(at, "one of datasetName and datasetUUID is required")),
        (false, false) => {
            let detail = "datasetName and datasetUUID can not be specified simultaneously";
            errors.push(FieldError::invalid(at, "resource", detail));
        }
        _ => {}
    }
    if name.contains('/') {
        errors.push(FieldError::invalid(&at.child("datasetName"), name, "must not contain '/'"));
    }
}

fn monitors(source: &Value, at: &Path, errors: &mut Errors) {
    if items(&source["monitors"]).is_empty() {
        errors.push(FieldError::required(&at.child("monitors"), ""));
    }
}

fn quobyte(source: &Value, at: &Path, errors: &mut Errors) {
    const PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";
    const TENANT_BYTES_MAX: usize = 64;
    let registry = text(&source["registry"]);
    // As many colons as there are outside of brackets.
    let is_pair = |pair: &str| {
        let host = pair.rsplit_once(':').map(|(host, _)| host);
        host.is_some_and(|host| !host.contains(':') || (host.starts_with('[') && host.ends_with(']')))
    };
    if registry.is_empty() {
        errors.push(FieldError::required(&at.child("registry"), PAIRS));
    } else if text(&source["tenant"]).len() > TENANT_BYTES_MAX {
        let detail = "must be a UUID and may not exceed a length of 64 characters";
        errors.push(FieldError::required(&at.child("tenant"), detail));
    } else {
        for _ in registry.split(',').filter(|pair| !is_pair(pair)) {
            errors.push(FieldError::invalid(&at.child("registry"), registry, PAIRS));
        }
    }
    required(&source["volume"], &at.child("volume"), errors);
}

/// Checks the name of an initiator or a target of iSCSI.
fn is_initiator(name: &str) -> bool {
    static KNOWN: LazyLock<Option<Regex>> = LazyLock::new(|| {
        // The dot after `eui` and `naa` is any letter, and what is between `iqn` and `iqn.` does not matter, as upstream.
        let iqn = r"(?:iqn.*)?iqn\.[0-9]{4}-[0-9]{2}\.[[:alnum:].-]+:[^,;*&$|\s]+";
        Regex::new(&format!("^(?:{iqn}|eui.[[:alnum:]]{{16}}|naa.[[:alnum:]]{{32}})$")).ok()
    });
    KNOWN.as_ref().is_none_or(|known| known.is_match(name))
}

fn iscsi(source: &Value, name: &str, at: &Path, errors: &mut Errors) {
    const NAME_BYTES_MAX: usize = 64;
    const FORMAT: &str = "must be valid format";
    let portal = text(&source["targetPortal"]);
    required(&source["targetPortal"], &at.child("targetPortal"), errors);
    let initiator = source["initiatorName"].as_str();
    if initiator.is_some() && name.len() + 1 + portal.len() > NAME_BYTES_MAX {
        let detail = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if \
                      iscsi.initiatorName is specified.";
        errors.push(FieldError::invalid(&at.child("targetportal"), portal, detail));
    }
    let target = text(&source["iqn"]);
    if required(&source["iqn"], &at.child("iqn"), errors) && !is_initiator(target) {
        errors.push(FieldError::invalid(&at.child("iqn"), target, FORMAT));
    }
    in_range(number(&source["lun"]), 0, 255, &at.child("lun"), errors);
    let secret = &source["secretRef"];
    let authenticates = flag(&source["chapAuthDiscovery"]) || flag(&source["chapAuthSession"]);
    if authenticates && !is_set(secret) {
        errors.push(FieldError::required(&at.child("secretRef"), ""));
    }
    if is_set(secret) {
        required(&secret["name"], &at.child("secretRef").child("name"), errors);
    }
    if let Some(initiator) = initiator.filter(|initiator| !is_initiator(initiator)) {
        errors.push(FieldError::invalid(&at.child("initiatorname"), initiator, FORMAT));
    }
}

/// Checks that a reference to a secret, if there is one, has name and namespace.
fn present_reference(source: &Value, at: &Path, errors: &mut Errors) {
    let secret = &source["secretRef"];
    if is_set(secret) {
        let at = at.child("secretRef");
        required(&secret["name"], &at.child("name"), errors);
        required(&secret["namespace"], &at.child("namespace"), errors);
    }
}

fn fibre_channel(source: &Value, at: &Path, errors: &mut Errors) {
    let targets = &source["targetWWNs"];
    let has_targets = !items(targets).is_empty();
    match (has_targets, items(&source["wwids"]).is_empty()) {
        (false, true) => {
            let detail = "must specify either targetWWNs or wwids, but not both";
            errors.push(FieldError::required(&at.child("targetWWNs"), detail));
        }
        (true, false) => {
            let detail = "targetWWNs and wwids can not be specified simultaneously";
            errors.push(FieldError::invalid(&at.child("targetWWNs"), targets.clone(), detail));
        }
        _ => {}
    }
    if !has_targets {
        return;
    }
    match source["lun"].as_i64() {
        None => errors.push(FieldError::required(&at.child("lun"), "lun is required if targetWWNs is specified")),
        Some(lun) => in_range(lun, 0, 255, &at.child("lun"), errors),
    }
}

fn flex_options(options: &Value, at: &Path, errors: &mut Errors) {
    for (key, _) in entries(options) {
        let domain = key.split('/').next().unwrap_or_default().to_lowercase();
        if [".kubernetes.io", ".k8s.io"].iter().any(|reserved| format!(".{domain}").ends_with(reserved)) {
            let detail = "kubernetes.io and k8s.io namespaces are reserved";
            errors.push(FieldError::invalid(&at.key(key), key, detail));
        }
    }
}

fn azure_disk(source: &Value, at: &Path, errors: &mut Errors) {
    const MANAGED: &str =
        "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
    const BLOB: &str = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
    let kinds = &["Dedicated", "Managed", "Shared"];
    one_of_if_set(&source["cachingMode"], &["None", "ReadOnly", "ReadWrite"], &at.child("cachingMode"), errors);
    one_of_if_set(&source["kind"], kinds, &at.child("kind"), errors);
    let address = text(&source["diskURI"]);
    let Some(kind) = source["kind"].as_str() else { return };
    let wanted = if kind == "Managed" { ("/subscriptions/", MANAGED) } else { ("https://", BLOB) };
    if !address.starts_with(wanted.0) {
        errors.push(FieldError::not_supported(&at.child("diskURI"), address, &[wanted.1]));
    }
}

fn storage_os(source: &Value, at: &Path, errors: &mut Errors) {
    let volume = &source["volumeName"];
    if required(volume, &at.child("volumeName"), errors) {
        problems(text(volume), dns1123_label(text(volume)), &at.child("volumeName"), errors);
    }
    let namespace = text(&source["volumeNamespace"]);
    if !namespace.is_empty() {
        problems(namespace, dns1123_label(namespace), &at.child("volumeNamespace"), errors);
    }
    present_reference(source, at, errors);
}

fn csi(source: &Value, at: &Path, errors: &mut Errors) {
    const SECRETS: [&str; 4] =
        ["controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef"];
    driver_name(text(&source["driver"]), &at.child("driver"), errors);
    required(&source["volumeHandle"], &at.child("volumeHandle"), errors);
    for field in SECRETS.into_iter().filter(|field| is_set(&source[*field])) {
        let secret = &source[field];
        let at = at.child(field);
        if required(&secret["name"], &at.child("name"), errors) {
            problems(text(&secret["name"]), dns1123_subdomain(text(&secret["name"])), &at.child("name"), errors);
        }
        if required(&secret["namespace"], &at.child("namespace"), errors) {
            let namespace = text(&secret["namespace"]);
            problems(namespace, dns1123_label(namespace), &at.child("namespace"), errors);
        }
    }
}

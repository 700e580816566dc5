//! Volumes of a pod: `ValidateVolumes` of `pkg/apis/core/validation/validation.go`.

mod projected;

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;
use steersman_base::validation::{dns1123_label, dns1123_subdomain};

use super::env;
use super::validation::Holder;
use crate::field::{FieldError, Path};
use crate::kinds::core::persistent_volume_claim;
use crate::kinds::shared::check::{self, Errors, one_of, problems, required};
use crate::kinds::shared::json::{each, is_empty, is_set, items, text};
use crate::kinds::shared::meta;
use crate::kinds::storage::driver_name;

/// The volumes that are good, by name.
pub(crate) type Volumes<'a> = BTreeMap<&'a str, &'a Value>;

const MODE_MAX: i64 = 0o777;
const BAD_MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";

/// Sources in the order in which upstream looks at them.
const SOURCES: &[&str] = &[
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
];

/// Volumes of a pod or template; those without a fault can be mounted.
pub(crate) fn volumes<'a>(volumes: &'a Value, holder: Holder<'_>, path: &Path, errors: &mut Errors) -> Volumes<'a> {
    let mut good = Volumes::new();
    let created: HashSet<String> = match holder {
        Holder::Pod(pod) if !pod.is_empty() => {
            let ephemeral = items(volumes).iter().filter(|volume| is_set(&volume["ephemeral"]));
            ephemeral.map(|volume| format!("{pod}-{}", text(&volume["name"]))).collect()
        }
        _ => HashSet::new(),
    };
    for (index, volume) in items(volumes).iter().enumerate() {
        let path = path.index(index);
        let count = errors.len();
        source(volume, holder, &path, errors);
        let name = text(&volume["name"]);
        if required(&volume["name"], &path.child("name"), errors) {
            problems(name, dns1123_label(name), &path.child("name"), errors);
        }
        if good.contains_key(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        if errors.len() == count {
            good.insert(name, volume);
        }
        let claim = text(&volume["persistentVolumeClaim"]["claimName"]);
        if created.contains(claim) {
            let at = path.child("persistentVolumeClaim").child("claimName");
            let detail = "must not reference a PVC that gets created for an ephemeral volume";
            errors.push(FieldError::invalid(&at, claim, detail));
        }
    }
    good
}

fn source(volume: &Value, holder: Holder<'_>, path: &Path, errors: &mut Errors) {
    let mut count = 0;
    for name in SOURCES {
        if !is_set(&volume[*name]) {
            continue;
        }
        count += 1;
        if count == 1 {
            source_of(name, volume, holder, path, errors);
        } else {
            errors.push(FieldError::forbidden(&path.child(name), "may not specify more than 1 volume type"));
        }
    }
    if count == 0 {
        errors.push(FieldError::required(path, "must specify a volume type"));
    }
}

fn source_of(name: &str, volume: &Value, holder: Holder<'_>, path: &Path, errors: &mut Errors) {
    let source = &volume[name];
    let at = path.child(name);
    let mut need = |fields: &[&str]| {
        for field in fields {
            required(&source[*field], &at.child(field), errors);
        }
    };
    match name {
        "emptyDir" => empty_dir(source, &at, errors),
        "hostPath" => host_path(source, &at, errors),
        "secret" => key_files(source, "secretName", &at, errors),
        "configMap" => key_files(source, "name", &at, errors),
        "persistentVolumeClaim" => need(&["claimName"]),
        "downwardAPI" => {
            mode(&source["defaultMode"], &at.child("defaultMode"), errors);
            for file in items(&source["items"]) {
                downward_file(file, &at, errors);
            }
        }
        "projected" => projected(source, &at, errors),
        "ephemeral" => ephemeral(volume, holder, path, errors),
        "image" => {
            need(&["reference"]);
            let policies = &["Always", "IfNotPresent", "Never"];
            one_of(&source["pullPolicy"], policies, &at.child("pullPolicy"), errors);
        }
        "csi" => {
            driver_name(text(&source["driver"]), &at.child("driver"), errors);
            if is_set(&source["nodePublishSecretRef"]) {
                required(
                    &source["nodePublishSecretRef"]["name"],
                    &at.child("nodePublishSecretRef").child("name"),
                    errors,
                );
            }
        }
        "nfs" => {
            need(&["server", "path"]);
            if !text(&source["path"]).starts_with('/') {
                errors.push(FieldError::invalid(&at.child("path"), text(&source["path"]), "must be an absolute path"));
            }
        }
        "iscsi" => need(&["targetPortal", "iqn"]),
        "glusterfs" => need(&["endpoints", "path"]),
        "gitRepo" => need(&["repository"]),
        "awsElasticBlockStore" | "cinder" => need(&["volumeID"]),
        "gcePersistentDisk" => need(&["pdName"]),
        "azureFile" => need(&["secretName", "shareName"]),
        "azureDisk" => need(&["diskName", "diskURI"]),
        "vsphereVolume" => need(&["volumePath"]),
        "photonPersistentDisk" => need(&["pdID"]),
        "portworxVolume" => need(&["volumeID"]),
        "flexVolume" => need(&["driver"]),
        "rbd" => need(&["image"]),
        "scaleIO" => need(&["gateway", "system", "volumeName"]),
        _ => {}
    }
}

fn empty_dir(source: &Value, path: &Path, errors: &mut Errors) {
    if check::quantity(&source["sizeLimit"]).is_some_and(|limit| limit.milli_value() < 0) {
        let detail = "SizeLimit field must be a valid resource quantity";
        errors.push(FieldError::forbidden(&path.child("sizeLimit"), detail));
    }
}

/// Checks the source of a volume that is a path of its node.
pub(crate) fn host_path(source: &Value, path: &Path, errors: &mut Errors) {
    const TYPES: &[&str] =
        &["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    if required(&source["path"], &path.child("path"), errors) {
        check::no_backsteps(text(&source["path"]), &path.child("path"), errors);
        check::one_of_if_set(&source["type"], TYPES, &path.child("type"), errors);
    }
}

fn key_files(source: &Value, name: &str, path: &Path, errors: &mut Errors) {
    required(&source[name], &path.child(name), errors);
    mode(&source["defaultMode"], &path.child("defaultMode"), errors);
    each(&source["items"], &path.child("items"), |item, path| key_to_path(item, path, errors));
}

fn key_to_path(item: &Value, path: &Path, errors: &mut Errors) {
    required(&item["key"], &path.child("key"), errors);
    required(&item["path"], &path.child("path"), errors);
    free_path(text(&item["path"]), &path.child("path"), errors);
    mode(&item["mode"], &path.child("mode"), errors);
}

fn free_path(value: &str, path: &Path, errors: &mut Errors) {
    check::descending_path(value, path, errors);
    if value.starts_with("..") && !value.starts_with("../") {
        errors.push(FieldError::invalid(path, value, "must not start with '..'"));
    }
}

fn mode(value: &Value, path: &Path, errors: &mut Errors) {
    if let Some(mode) = value.as_i64().filter(|mode| !(0..=MODE_MAX).contains(mode)) {
        errors.push(FieldError::invalid(path, mode, BAD_MODE));
    }
}

fn downward_file(file: &Value, path: &Path, errors: &mut Errors) {
    required(&file["path"], &path.child("path"), errors);
    free_path(text(&file["path"]), &path.child("path"), errors);
    let field = &file["fieldRef"];
    let resource = &file["resourceFieldRef"];
    if is_set(field) {
        env::field_ref(field, env::VOLUME_FIELDS, &path.child("fieldRef"), errors);
        if is_set(resource) {
            let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
            errors.push(FieldError::invalid(path, "resource", detail));
        }
    } else if is_set(resource) {
        env::resource_field_ref(resource, true, &path.child("resourceFieldRef"), errors);
    } else {
        errors.push(FieldError::required(path, "one of fieldRef and resourceFieldRef is required"));
    }
    mode(&file["mode"], &path.child("mode"), errors);
}

fn projected(source: &Value, path: &Path, errors: &mut Errors) {
    mode(&source["defaultMode"], &path.child("defaultMode"), errors);
    let mut paths: Vec<&str> = Vec::new();
    for (index, source) in items(&source["sources"]).iter().enumerate() {
        let at = path.child("sources").index(index);
        let mut count = 0;
        for kind in ["secret", "configMap"] {
            if !is_set(&source[kind]) {
                continue;
            }
            count += 1;
            let at = at.child(kind);
            required(&source[kind]["name"], &at.child("name"), errors);
            for (index, item) in items(&source[kind]["items"]).iter().enumerate() {
                key_to_path(item, &at.child("items").index(index), errors);
                unique_path(text(&item["path"]), text(&source[kind]["name"]), &mut paths, path, errors);
            }
        }
        if is_set(&source["downwardAPI"]) {
            count += 1;
            for file in items(&source["downwardAPI"]["items"]) {
                downward_file(file, &at.child("downwardAPI"), errors);
                unique_path(text(&file["path"]), text(&file["path"]), &mut paths, path, errors);
            }
        }
        if is_set(&source["serviceAccountToken"]) {
            count += 1;
            token(&source["serviceAccountToken"], path, &at.child("serviceAccountToken"), errors);
        }
        if is_set(&source["clusterTrustBundle"]) {
            count += 1;
            let at = at.child("clusterTrustBundle");
            projected::trust_bundle(&source["clusterTrustBundle"], &mut paths, path, &at, errors);
        }
        if is_set(&source["podCertificate"]) {
            count += 1;
            projected::certificate(&source["podCertificate"], &mut paths, path, &at.child("podCertificate"), errors);
        }
        if count > 1 {
            errors.push(FieldError::forbidden(&at, "may not specify more than 1 volume type per source"));
        }
    }
}

fn unique_path<'a>(value: &'a str, name: &str, seen: &mut Vec<&'a str>, path: &Path, errors: &mut Errors) {
    if value.is_empty() {
        return;
    }
    if seen.contains(&value) {
        errors.push(FieldError::invalid(path, name, "conflicting duplicate paths"));
    }
    seen.push(value);
}

fn token(token: &Value, volume_path: &Path, path: &Path, errors: &mut Errors) {
    const SECONDS_MIN: i64 = 600;
    const SECONDS_MAX: i64 = 1 << 32;
    let at = path.child("expirationSeconds");
    match token["expirationSeconds"].as_i64() {
        None => errors.push(FieldError::required(&at, "")),
        Some(seconds) if seconds < SECONDS_MIN => {
            errors.push(FieldError::invalid(&at, seconds, "may not specify a duration less than 10 minutes"));
        }
        Some(seconds) if seconds > SECONDS_MAX => {
            let detail = "may not specify a duration larger than 2^32 seconds";
            errors.push(FieldError::invalid(&at, seconds, detail));
        }
        Some(_) => {}
    }
    if required(&token["path"], &volume_path.child("path"), errors) {
        free_path(text(&token["path"]), &volume_path.child("path"), errors);
    }
}

fn ephemeral(volume: &Value, holder: Holder<'_>, path: &Path, errors: &mut Errors) {
    let template = &volume["ephemeral"]["volumeClaimTemplate"];
    let at = path.child("ephemeral").child("volumeClaimTemplate");
    if template.is_null() {
        errors.push(FieldError::required(&at, ""));
    } else {
        meta::validate_template(&template["metadata"], &at.child("metadata"), errors);
        persistent_volume_claim::spec(&template["spec"], &at.child("spec"), errors);
    }
    let (Holder::Pod(pod), name) = (holder, text(&volume["name"])) else { return };
    if !pod.is_empty() && !is_empty(&volume["name"]) {
        let claim = format!("{pod}-{name}");
        for problem in dns1123_subdomain(&claim) {
            let detail = format!("PVC name {claim:?}: {problem}");
            errors.push(FieldError::invalid(&path.child("name"), name, detail));
        }
    }
}

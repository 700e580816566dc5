//! PersistentVolumeClaims. Follows `pkg/apis/core/v1/defaults.go`, `pkg/registry/core/persistentvolumeclaim/strategy.go` and
//! `ValidatePersistentVolumeClaim` of `pkg/apis/core/validation/validation.go`.

use serde_json::{Value, json};
use steersman_base::validation::dns1123_subdomain;

use super::volume::access_modes;
use crate::field::{FieldError, Path};
use crate::kinds::check::{self, Errors, one_of_if_set, problems, required};
use crate::kinds::json::{
    copy, default_to, default_zero_to, is_empty, is_set, items, object_mut, same, set, text, unset, with,
};
use crate::kinds::pod::{defaults::milli, resources::amount_of};
use crate::kinds::{NameRule, Rules, go};

pub(in crate::kinds) static PERSISTENT_VOLUME_CLAIM: Rules = Rules::named(NameRule::Subdomain)
    .rechecked()
    .defaulted(defaults)
    .prepared(|new, old| {
        match old {
            Some(old) => copy(new, old, "status"),
            None => set(new, "status", json!({"phase": "Pending"})),
        }
        drop_foreign_source(new, old);
        normalise_sources(new);
    })
    .validated(|new, old, errors| {
        spec(&new["spec"], &Path::new("spec"), errors);
        if let Some(old) = old {
            update(new, old, errors);
        }
    });

/// A claim, alone or in the template of a StatefulSet.
pub(in crate::kinds) fn defaults(claim: &mut Value) {
    with(claim, "status", |status| default_zero_to(status, "phase", "Pending"));
    with(claim, "spec", spec_defaults);
}

/// What a claim's spec leaves open.
pub(in crate::kinds) fn spec_defaults(spec: &mut Value) {
    default_to(spec, "volumeMode", "Filesystem");
    if let Some(resources) = object_mut(spec, "resources") {
        milli(resources, "limits");
        milli(resources, "requests");
    }
}

/// A source that is neither a claim nor a snapshot was always dropped in `dataSource`, and still is.
fn drop_foreign_source(claim: &mut Value, old: Option<&Value>) {
    let in_use = |spec: &Value| is_set(&spec["dataSource"]) || is_set(&spec["dataSourceRef"]);
    if old.is_some_and(|old| in_use(&old["spec"])) {
        return;
    }
    let Some(spec) = object_mut(claim, "spec") else { return };
    let source = &spec["dataSource"];
    let known = match text(&source["kind"]) {
        "PersistentVolumeClaim" => text(&source["apiGroup"]).is_empty(),
        "VolumeSnapshot" => text(&source["apiGroup"]) == "snapshot.storage.k8s.io",
        _ => false,
    };
    if !known {
        unset(spec, "dataSource");
    }
}

/// `dataSource` and `dataSourceRef` say the same unless the reference names a namespace.
fn normalise_sources(claim: &mut Value) {
    let Some(spec) = object_mut(claim, "spec") else { return };
    let (source, reference) = (spec["dataSource"].clone(), spec["dataSourceRef"].clone());
    if is_set(&source) && !is_set(&reference) {
        set(spec, "dataSourceRef", source);
    } else if is_set(&reference) && !is_set(&source) && is_empty(&reference["namespace"]) {
        set(spec, "dataSource", reference);
    }
}

/// Whether a claim's spec can be.
pub(in crate::kinds) fn spec(spec: &Value, path: &Path, errors: &mut Errors) {
    if items(&spec["accessModes"]).is_empty() {
        let detail = "at least 1 access mode is required";
        errors.push(FieldError::required(&path.child("accessModes"), detail));
    }
    check::label_selector(&spec["selector"], &path.child("selector"), errors);
    access_modes(spec, path, errors);
    let (size, at) = (&spec["resources"]["requests"]["storage"], path.child("resources").key("storage"));
    match check::quantity(size) {
        None => errors.push(FieldError::required(&at, "")),
        Some(quantity) if quantity.milli_value() <= 0 => {
            errors.push(FieldError::invalid(&at, quantity.to_string(), "must be greater than zero"));
        }
        Some(_) => amount_of("storage", size, &at, errors),
    }
    for field in ["storageClassName", "volumeAttributesClassName"] {
        let class = text(&spec[field]);
        if field == "volumeAttributesClassName" {
            one_of_if_set(&spec["volumeMode"], &["Block", "Filesystem"], &path.child("volumeMode"), errors);
            sources(spec, path, errors);
        }
        if !class.is_empty() {
            problems(class, dns1123_subdomain(class), &path.child(field), errors);
        }
    }
}

fn sources(spec: &Value, path: &Path, errors: &mut Errors) {
    for field in ["dataSource", "dataSourceRef"] {
        let (source, at) = (&spec[field], path.child(field));
        if !is_set(source) {
            continue;
        }
        required(&source["name"], &at.child("name"), errors);
        required(&source["kind"], &at.child("kind"), errors);
        let group = text(&source["apiGroup"]);
        if group.is_empty() && text(&source["kind"]) != "PersistentVolumeClaim" {
            let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            errors.push(FieldError::invalid(&at, text(&source["kind"]), detail));
        }
    }
}

fn update(new: &Value, old: &Value, errors: &mut Errors) {
    const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
    let path = Path::new("spec");
    let (mut spec, mut before) = (new["spec"].clone(), old["spec"].clone());
    if is_empty(&before["volumeName"]) {
        copy(&mut before, &spec, "volumeName");
    }
    let annotation = |claim: &Value| text(&claim["metadata"]["annotations"][BETA_CLASS]).to_owned();
    if annotation(new) != annotation(old) {
        let path = Path::new("metadata").child("annotations").key(BETA_CLASS);
        errors.push(FieldError::invalid(&path, annotation(new), check::IMMUTABLE));
    }
    // A class can be given to a claim that had none.
    if !is_set(&before["storageClassName"]) && annotation(old).is_empty() && !is_empty(&spec["storageClassName"]) {
        copy(&mut spec, &before.clone(), "storageClassName");
    }
    let is_bound = text(&new["status"]["phase"]) == "Bound";
    if is_bound {
        copy(&mut spec, &before, "volumeAttributesClassName");
        if let Some(resources) = object_mut(&mut spec, "resources")
            && let Some(requests) = object_mut(resources, "requests")
        {
            copy(requests, &before["resources"]["requests"], "storage");
        }
    }
    if !same(&spec, &before) {
        let difference = go::difference("PersistentVolumeClaimSpec", &before, &spec);
        let detail = format!(
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound \
             claims\n{difference}"
        );
        errors.push(FieldError::forbidden(&path, detail));
    }
    let amount = |value: &Value| check::quantity(value).unwrap_or_default();
    let size = |claim: &Value| amount(&claim["spec"]["resources"]["requests"]["storage"]);
    if size(new) < size(old) && size(new) <= amount(&old["status"]["capacity"]["storage"]) {
        let at = path.child("resources").child("requests").child("storage");
        errors.push(FieldError::forbidden(&at, "field can not be less than status.capacity"));
    }
    check::immutable(&new["spec"]["volumeMode"], &old["spec"]["volumeMode"], &Path::new("volumeMode"), errors);
}

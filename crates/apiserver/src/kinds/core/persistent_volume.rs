//! PersistentVolumes: the common part of `ValidatePersistentVolume` of `pkg/apis/core/validation/validation.go`.

mod sources;

use serde_json::{Value, json};
use steersman_base::validation::dns1123_subdomain;

use crate::field::{Errors, FieldError, Path};
use crate::kinds::core::pod::affinity;
use crate::kinds::shared::check::{self, one_of_if_set, problems};
use crate::kinds::shared::go;
use crate::kinds::shared::json::{
    copy, default_to, default_zero_to, each_mut, entries, is_empty, is_set, items, object_mut, same, set, text, unset,
    with,
};
use crate::kinds::shared::volume::{self, PHASE, STORAGE_CLASS, VOLUME_ATTRIBUTES_CLASS, VOLUME_MODE};
use crate::kinds::{NameRule, Rules};
use crate::registry::admission::Admission;
use crate::registry::strategy::Strategy;
use crate::table::{Cell, TableRow};

const PROTECTION: &str = "kubernetes.io/pv-protection";

/// The rules of PersistentVolumes.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .rechecked()
    .defaulted(default)
    .prepared(|new, old| match old {
        Some(old) => copy(new, old, "status"),
        None => {
            let now = new["metadata"]["creationTimestamp"].clone();
            set(new, "status", json!({"phase": "Pending", "lastPhaseTransitionTime": now}));
        }
    })
    .validated(|new, old, errors| {
        spec(&new["spec"], text(&new["metadata"]["name"]), &Path::new("spec"), errors);
        if let Some(old) = old {
            update(&new["spec"], &old["spec"], errors);
        }
    })
    .status_prepared(set_transition_time)
    .admitted(Admission {
        mutate: |lookup, new, old| {
            if old.is_none() {
                volume::protect(lookup, new, PROTECTION);
            }
            Ok(())
        },
        ..Admission::NONE
    })
    .with_strategy(Strategy::RETURNS_DELETED)
    .printed(&[
        Cell::Name,
        Cell::Made(|row| volume::quantity(row, "/spec/capacity/storage")),
        Cell::Made(|row| volume::access_modes(row, "/spec/accessModes")),
        Cell::Text("/spec/persistentVolumeReclaimPolicy"),
        PHASE,
        Cell::Made(claim),
        STORAGE_CLASS,
        VOLUME_ATTRIBUTES_CLASS,
        Cell::Text("/status/reason"),
        Cell::Age,
        VOLUME_MODE,
    ]);

/// Sets the time at which the phase changed, unless the writer has set it.
fn set_transition_time(new: &mut Value, old: &Value, now: &str) {
    const TIME: &str = "lastPhaseTransitionTime";
    let before = &old["status"];
    let Some(status) = object_mut(new, "status") else { return };
    let kept = is_empty(&status[TIME]) || status[TIME] == before[TIME];
    if status["phase"] == before["phase"] && is_empty(&status[TIME]) {
        copy(status, before, TIME);
    } else if status["phase"] != before["phase"] && kept {
        set(status, TIME, now);
    }
}

fn default(volume: &mut Value) {
    with(volume, "status", |status| default_zero_to(status, "phase", "Pending"));
    with(volume, "spec", |spec| {
        default_zero_to(spec, "persistentVolumeReclaimPolicy", "Retain");
        default_to(spec, "volumeMode", "Filesystem");
        if let Some(path) = object_mut(spec, "hostPath") {
            default_to(path, "type", "");
        }
    });
}

/// Checks the access modes of a volume or a claim.
pub(crate) fn access_modes(spec: &Value, path: &Path, errors: &mut Errors) {
    const MODES: &[&str] = &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
    let path = path.child("accessModes");
    let modes: Vec<_> = items(&spec["accessModes"]).iter().map(text).collect();
    for mode in modes.iter().filter(|mode| !MODES.contains(mode)) {
        errors.push(FieldError::not_supported(&path, *mode, MODES));
    }
    let others = modes.iter().any(|mode| *mode != "ReadWriteOncePod" && MODES.contains(mode));
    if modes.contains(&"ReadWriteOncePod") && others {
        errors.push(FieldError::forbidden(&path, "may not use ReadWriteOncePod with other access modes"));
    }
}

fn spec(spec: &Value, name: &str, path: &Path, errors: &mut Errors) {
    if items(&spec["accessModes"]).is_empty() {
        errors.push(FieldError::required(&path.child("accessModes"), ""));
    }
    access_modes(spec, path, errors);
    let capacity = &spec["capacity"];
    let at = path.child("capacity");
    if is_empty(capacity) {
        errors.push(FieldError::required(&at, ""));
    }
    if capacity["storage"].is_null() || entries(capacity).len() > 1 {
        errors.push(FieldError::not_supported(&at, capacity.clone(), &["storage"]));
    }
    for (name, amount) in entries(capacity) {
        let Some(quantity) = check::quantity(amount) else { continue };
        if quantity.value() < 0 {
            errors.push(FieldError::invalid(&at.key(name), quantity.value(), "must be a valid resource quantity"));
        }
        if quantity.milli_value() <= 0 {
            errors.push(FieldError::invalid(&at.key(name), quantity.to_string(), "must be greater than zero"));
        }
    }
    one_of_if_set(
        &spec["persistentVolumeReclaimPolicy"],
        &["Delete", "Recycle", "Retain"],
        &path.child("persistentVolumeReclaimPolicy"),
        errors,
    );
    let affinity_path = path.child("nodeAffinity").child("required");
    if is_set(&spec["nodeAffinity"]) {
        if is_set(&spec["nodeAffinity"]["required"]) {
            affinity::node_selector(&spec["nodeAffinity"]["required"], &affinity_path, errors);
        } else {
            errors.push(FieldError::required(&affinity_path, "must specify required node constraints"));
        }
    }
    sources::validate(spec, name, path, errors);
    let is_root = |path: &str| path.starts_with('/') && path.split('/').all(|part| matches!(part, "" | "."));
    if text(&spec["persistentVolumeReclaimPolicy"]) == "Recycle" && is_root(text(&spec["hostPath"]["path"])) {
        let detail = "may not be 'recycle' for a hostPath mount of '/'";
        errors.push(FieldError::forbidden(&path.child("persistentVolumeReclaimPolicy"), detail));
    }
    let class = text(&spec["storageClassName"]);
    if !class.is_empty() {
        problems(class, dns1123_subdomain(class), &path.child("storageClassName"), errors);
    }
    one_of_if_set(&spec["volumeMode"], &["Block", "Filesystem"], &path.child("volumeMode"), errors);
    if let Some(class) = spec["volumeAttributesClassName"].as_str() {
        let at = path.child("volumeAttributesClassName");
        if class.is_empty() {
            errors.push(FieldError::required(&at, "an empty string is disallowed"));
        } else {
            problems(class, dns1123_subdomain(class), &at, errors);
        }
        if !is_set(&spec["csi"]) {
            let detail = "has to be specified when using volumeAttributesClassName";
            errors.push(FieldError::required(&path.child("csi"), detail));
        }
    }
}

fn update(new: &Value, old: &Value, errors: &mut Errors) {
    const EXPAND_SECRET: &str = "controllerExpandSecretRef";
    let sources = |spec: &Value| {
        let mut sources = json!({});
        for name in sources::ALL.iter().copied().filter(|name| is_set(&spec[*name])) {
            set(&mut sources, name, spec[name].clone());
        }
        sources
    };
    let mut now = sources(new);
    let was = sources(old);
    // A volume may get a secret for its growth later.
    if is_set(&was["csi"])
        && is_empty(&was["csi"][EXPAND_SECRET])
        && let Some(csi) = object_mut(&mut now, "csi")
    {
        unset(csi, EXPAND_SECRET);
    }
    if !same(&now, &was) {
        let difference = go::difference("PersistentVolumeSource", &was, &now);
        let detail = format!("spec.persistentvolumesource is immutable after creation\n{difference}");
        errors.push(FieldError::forbidden(&Path::new("spec").child("persistentvolumesource"), detail));
    }
    check::immutable(&new["volumeMode"], &old["volumeMode"], &Path::new("volumeMode"), errors);
    if is_set(&old["nodeAffinity"])
        && !same(&new["nodeAffinity"], &with_new_labels(&old["nodeAffinity"], &new["nodeAffinity"]))
    {
        let shown = go::show("*VolumeNodeAffinity", &new["nodeAffinity"]);
        let detail = "field is immutable, except for updating from beta label to GA";
        errors.push(FieldError::invalid(&Path::new("nodeAffinity"), shown, detail));
    }
    let class = "volumeAttributesClassName";
    if is_set(&old[class]) && !is_set(&new[class]) {
        let detail = "update from non-nil value to nil is forbidden";
        errors.push(FieldError::forbidden(&Path::new("spec").child(class), detail));
    }
}

/// The labels of nodes that have lost their prefix, and their names since.
const RENAMED_LABELS: [(&str, &str); 3] = [
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
];

/// Returns an affinity with the labels that are renamed in the new one.
fn with_new_labels(old: &Value, new: &Value) -> Value {
    let mut old = old.clone();
    let Some(required) = object_mut(&mut old, "required") else { return old };
    let mut term_at = 0;
    each_mut(required, "nodeSelectorTerms", |term| {
        let mut at = 0;
        each_mut(term, "matchExpressions", |expression| {
            let key = text(&new["required"]["nodeSelectorTerms"][term_at]["matchExpressions"][at]["key"]);
            if RENAMED_LABELS.contains(&(text(&expression["key"]), key)) {
                set(expression, "key", key);
            }
            at += 1;
        });
        term_at += 1;
    });
    old
}

fn claim(row: &TableRow<'_>) -> String {
    row.at("/spec/claimRef").map_or_else(String::new, |_| {
        format!("{}/{}", row.text("/spec/claimRef/namespace"), row.text("/spec/claimRef/name"))
    })
}

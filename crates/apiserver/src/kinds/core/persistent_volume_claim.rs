//! PersistentVolumeClaims. Follows `pkg/apis/core/v1/defaults.go`, `pkg/registry/core/persistentvolumeclaim/strategy.go` and
//! `ValidatePersistentVolumeClaim` of `pkg/apis/core/validation/validation.go`.

use serde_json::{Value, json};
use steersman_base::Quantity;
use steersman_base::validation::{dns1123_subdomain, qualified_name};

use super::persistent_volume::access_modes;
use crate::field::{Errors, FieldError, Path};
use crate::kinds::core::pod::defaults::milli;
use crate::kinds::core::pod::resources::{amount_of, is_native};
use crate::kinds::shared::check::{self, one_of_if_set, problems, required};
use crate::kinds::shared::classes::default_class;
use crate::kinds::shared::go;
use crate::kinds::shared::json::{
    copy, default_to, default_zero_to, entries, flag, is_empty, is_set, items, object_mut, same, set, text, unset, with,
};
use crate::kinds::shared::limits;
use crate::kinds::shared::meta::validate_meta_update;
use crate::kinds::shared::volume::{self, PHASE, STORAGE_CLASS, VOLUME_ATTRIBUTES_CLASS, VOLUME_MODE};
use crate::kinds::{NameRule, Rules};
use crate::registry::admission::{Admission, Lookup, Refused};
use crate::registry::strategy::Strategy;
use crate::table::{Cell, TableRow};

const PROTECTION: &str = "kubernetes.io/pvc-protection";
const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// The rules of PersistentVolumeClaims.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
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
    })
    .status_validated(|new, old, errors| {
        validate_meta_update(new, old, errors);
        status(&new["status"], &Path::new("status"), errors);
    })
    .admitted(Admission {
        mutate: |lookup, new, old| {
            if old.is_none() {
                storage_class(lookup, new);
                volume::protect(lookup, new, PROTECTION);
            }
            Ok(())
        },
        validate: |registry, call, new, old| {
            limits::check_claim(registry, call, new, old)?;
            match old {
                Some(old) if call.subresource.is_empty() => may_grow(registry, new, old),
                _ => Ok(()),
            }
        },
        is_counted: |subresource, _, old| subresource.is_empty() || (subresource == "status" && old.is_some()),
        ..Admission::NONE
    })
    .with_strategy(Strategy::RETURNS_DELETED)
    .printed(&[
        Cell::Name,
        PHASE,
        Cell::Text("/spec/volumeName"),
        Cell::Made(|row| if is_bound(row) { volume::quantity(row, "/status/capacity/storage") } else { String::new() }),
        Cell::Made(|row| if is_bound(row) { volume::access_modes(row, "/status/accessModes") } else { String::new() }),
        STORAGE_CLASS,
        VOLUME_ATTRIBUTES_CLASS,
        Cell::Age,
        VOLUME_MODE,
    ]);

/// Sets the defaults of a claim, alone or in the template of a StatefulSet.
pub(crate) fn defaults(claim: &mut Value) {
    with(claim, "status", |status| default_zero_to(status, "phase", "Pending"));
    with(claim, "spec", spec_defaults);
}

/// Sets the defaults of a claim's spec.
pub(crate) fn spec_defaults(spec: &mut Value) {
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
    let source = spec["dataSource"].clone();
    let reference = spec["dataSourceRef"].clone();
    if is_set(&source) && !is_set(&reference) {
        set(spec, "dataSourceRef", source);
    } else if is_set(&reference) && !is_set(&source) && is_empty(&reference["namespace"]) {
        set(spec, "dataSource", reference);
    }
}

/// Whether a claim's spec can be.
pub(crate) fn spec(spec: &Value, path: &Path, errors: &mut Errors) {
    if items(&spec["accessModes"]).is_empty() {
        let detail = "at least 1 access mode is required";
        errors.push(FieldError::required(&path.child("accessModes"), detail));
    }
    check::label_selector(&spec["selector"], &path.child("selector"), errors);
    access_modes(spec, path, errors);
    let size = &spec["resources"]["requests"]["storage"];
    let at = path.child("resources").key("storage");
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
        let source = &spec[field];
        let at = path.child(field);
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
    let path = Path::new("spec");
    let mut spec = new["spec"].clone();
    let mut before = old["spec"].clone();
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
    if size(new) < size(old) && size(new) <= amount(&old["status"]["capacity"]["storage"]) {
        let at = path.child("resources").child("requests").child("storage");
        errors.push(FieldError::forbidden(&at, "field can not be less than status.capacity"));
    }
    check::immutable(&new["spec"]["volumeMode"], &old["spec"]["volumeMode"], &Path::new("volumeMode"), errors);
}

fn amount(value: &Value) -> Quantity {
    check::quantity(value).unwrap_or_default()
}

/// Returns how much a claim asks for.
fn size(claim: &Value) -> Quantity {
    amount(&claim["spec"]["resources"]["requests"]["storage"])
}

/// Refuses to let a claim grow that is not bound, or whose class does not allow it: the plug-in PersistentVolumeClaimResize.
pub(in crate::kinds) fn may_grow(lookup: &dyn Lookup, new: &Value, old: &Value) -> Result<(), Refused> {
    const CLASS_REFUSES: &str = "only dynamically provisioned pvc can be resized and the storageclass that provisions \
                                 the pvc must support resize";
    if size(new) <= size(old) {
        return Ok(());
    }
    if text(&old["status"]["phase"]) != "Bound" {
        return Err(Refused::because("Only bound persistent volume claims can be expanded".to_owned()));
    }
    let name = class_of(new);
    let class = lookup.get("storage.k8s.io", "storageclasses", "", name).filter(|_| !name.is_empty());
    let is_allowed = class_of(old) == name && class.is_some_and(|class| flag(&class["allowVolumeExpansion"]));
    if is_allowed { Ok(()) } else { Err(Refused::because(CLASS_REFUSES.to_owned())) }
}

/// Returns the storage class of a claim. The annotation is older than the field, and still wins.
fn class_of(claim: &Value) -> &str {
    claim["metadata"]["annotations"][BETA_CLASS].as_str().unwrap_or_else(|| text(&claim["spec"]["storageClassName"]))
}

fn status(status: &Value, path: &Path, errors: &mut Errors) {
    const RESIZES: &[&str] = &[
        "ControllerResizeInProgress",
        "ControllerResizeInfeasible",
        "NodeResizeInProgress",
        "NodeResizeInfeasible",
        "NodeResizePending",
    ];
    for (name, amount) in entries(&status["capacity"]) {
        basic_amount(amount, &path.child("capacity").key(name), errors);
    }
    let at = path.child("allocatedResourceStatuses");
    for (name, state) in entries(&status["allocatedResourceStatuses"]) {
        resource_name(name, &at, errors);
        if !RESIZES.contains(&text(state)) {
            // It is the key that upstream shows.
            errors.push(FieldError::not_supported(&at, name, RESIZES));
        }
    }
    let at = path.child("allocatedResources");
    for (name, amount) in entries(&status["allocatedResources"]) {
        if resource_name(name, &at, errors) && basic_amount(amount, &at.key(name), errors) {
            amount_of("storage", amount, &at.key(name), errors);
        }
    }
}

fn basic_amount(amount: &Value, path: &Path, errors: &mut Errors) -> bool {
    let negative = check::quantity(amount).filter(|quantity| quantity.value() < 0);
    if let Some(quantity) = negative {
        errors.push(FieldError::invalid(path, quantity.value(), "must be a valid resource quantity"));
    }
    negative.is_none()
}

/// Checks the name of a resource of a claim: `storage`, or one with a domain.
fn resource_name(name: &str, path: &Path, errors: &mut Errors) -> bool {
    let wrong = qualified_name(name);
    if wrong.is_empty() && is_native(name) && name != "storage" {
        errors.push(FieldError::not_supported(path, name, &["storage"]));
        return false;
    }
    let is_good = wrong.is_empty();
    problems(name, wrong, path, errors);
    is_good
}

/// Sets the default storage class: the plug-in DefaultStorageClass.
fn storage_class(lookup: &dyn Lookup, claim: &mut Value) {
    let marks = ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
    if is_set(&claim["spec"]["storageClassName"]) || is_set(&claim["metadata"]["annotations"][BETA_CLASS]) {
        return;
    }
    if let Some(class) = default_class(lookup, "storage.k8s.io", "storageclasses", &marks) {
        with(claim, "spec", |spec| set(spec, "storageClassName", class));
    }
}

fn is_bound(row: &TableRow<'_>) -> bool {
    !row.text("/spec/volumeName").is_empty()
}

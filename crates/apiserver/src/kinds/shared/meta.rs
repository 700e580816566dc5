//! Metadata of all kinds.
//!
//! Follows `apimachinery/pkg/api/validation/objectmeta.go` and `pkg/apis/core/validation/validation.go`.

use std::collections::HashSet;

use serde_json::Value;
use steersman_base::validation::{self, Problems};

use super::check::{self, Errors, immutable, problems};
use super::json::{flag, items, number, text};
use crate::field::{FieldError, Path};
use crate::registry::query::manager_problems;

/// The fields of metadata, without `managedFields` and `selfLink`, in the order of upstream's struct.
pub(crate) const META_FIELDS: [&str; 13] = [
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
];

/// The rule for names of a kind's objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// A DNS-1123 subdomain, like most.
    #[default]
    Subdomain,
    /// A DNS-1123 label.
    Label,
    /// Any segment of a path.
    PathSegment,
}

/// Checks the metadata of an object that is created, or its change if there is an old one.
pub(crate) fn validate_meta(new: &Value, old: Option<&Value>, name_rule: NameRule, errors: &mut Errors) {
    let path = Path::new("metadata");
    let meta = &new["metadata"];
    if let Some(old) = old {
        update(meta, &old["metadata"], &path, errors);
    } else {
        create(meta, name_rule, &path, errors);
    }
    kube_finalizers(meta, &path, errors);
}

/// Checks the change of the metadata of an object.
pub(crate) fn validate_meta_update(new: &Value, old: &Value, errors: &mut Errors) {
    validate_meta(new, Some(old), NameRule::Subdomain, errors);
}

/// [`validate_meta`] of an object whose kind is not built in: finalizers without a domain are taken.
pub(crate) fn validate_custom(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let path = Path::new("metadata");
    let meta = &new["metadata"];
    match old {
        Some(old) => update(meta, &old["metadata"], &path, errors),
        None => create(meta, NameRule::Subdomain, &path, errors),
    }
}

/// Checks the labels and annotations of a template.
pub(crate) fn validate_template(meta: &Value, path: &Path, errors: &mut Errors) {
    check::labels(&meta["labels"], &path.child("labels"), errors);
    check::annotations(&meta["annotations"], &path.child("annotations"), errors);
}

fn create(meta: &Value, rule: NameRule, path: &Path, errors: &mut Errors) {
    let generate_name = text(&meta["generateName"]);
    if !generate_name.is_empty() {
        problems(generate_name, rule.problems(&masked(generate_name)), &path.child("generateName"), errors);
    }
    let name = text(&meta["name"]);
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), "name or generateName is required"));
    } else {
        named(name, rule.problems(name), "name", path, errors);
    }
    let namespace = text(&meta["namespace"]);
    if !namespace.is_empty() {
        named(namespace, validation::dns1123_label(namespace), "namespace", path, errors);
    }
    common(meta, path, errors);
    finalizers(meta, path, errors);
}

fn update(new: &Value, old: &Value, path: &Path, errors: &mut Errors) {
    if !old["deletionTimestamp"].is_null() {
        no_new_finalizers(new, old, path, errors);
    }
    if number(&new["generation"]) < number(&old["generation"]) {
        errors.push(FieldError::invalid(
            &path.child("generation"),
            number(&new["generation"]),
            "must not be decremented",
        ));
    }
    for field in ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        immutable(&new[field], &old[field], &path.child(field), errors);
    }
    common(new, path, errors);
}

/// Adds the problems of a name that a field of metadata holds. Almost no name has any, so that no path is made for it before.
fn named(name: &str, found: Problems, field: &str, path: &Path, errors: &mut Errors) {
    if !found.is_empty() {
        problems(name, found, &path.child(field), errors);
    }
}

fn common(meta: &Value, path: &Path, errors: &mut Errors) {
    type Check = fn(&Value, &Path, &mut Errors);
    const CHECKS: [(&str, Check); 5] = [
        ("generation", check::non_negative),
        ("labels", check::labels),
        ("annotations", check::annotations),
        ("ownerReferences", owner_references),
        ("managedFields", managed_fields),
    ];
    // Every object comes here, with few of the fields.
    for (field, check) in CHECKS {
        if !meta[field].is_null() {
            check(&meta[field], &path.child(field), errors);
        }
    }
}

/// Checks what a client has said of the owners of fields; what cannot be read has been dropped.
fn managed_fields(list: &Value, path: &Path, errors: &mut Errors) {
    const SUBRESOURCE_BYTES_MAX: usize = 256;
    for (index, entry) in items(list).iter().enumerate() {
        errors.extend(manager_problems(text(&entry["manager"]), || path.index(index).child("manager")));
        if text(&entry["subresource"]).len() > SUBRESOURCE_BYTES_MAX {
            errors.push(FieldError::too_long(&path.index(index).child("subresource"), SUBRESOURCE_BYTES_MAX));
        }
    }
}

fn owner_references(references: &Value, path: &Path, errors: &mut Errors) {
    const KEYS: &[&str] = &["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    let mut first: Option<String> = None;
    super::json::each(references, path, |reference, at| {
        if errors.is_full() {
            return; // The last error shows the whole list, once for each owner.
        }
        let api_version = text(&reference["apiVersion"]);
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        if api_version.is_empty() {
            errors.push(FieldError::required(&at.child("apiVersion"), "must not be empty"));
        } else if version.is_empty() || group.contains('/') {
            errors.push(FieldError::invalid(
                &at.child("apiVersion"),
                api_version,
                "must be <group>/<version> or <version>",
            ));
        }
        for field in ["kind", "name", "uid"] {
            if text(&reference[field]).is_empty() {
                errors.push(FieldError::required(&at.child(field), "must not be empty"));
            }
        }
        if api_version == "v1" && text(&reference["kind"]) == "Event" {
            let shown = check::ordered(reference, KEYS);
            errors.push(FieldError::invalid(at, shown, "/v1, Kind=Event is disallowed from being an owner"));
        }
        if flag(&reference["controller"]) {
            let name = format!("{}/{}", text(&reference["kind"]), text(&reference["name"]));
            if let Some(first) = &first {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and \
                     {name}"
                );
                errors.push(FieldError::invalid(path, check::ordered_list(references, KEYS), detail));
            } else {
                first = Some(name);
            }
        }
    });
}

fn finalizers(meta: &Value, path: &Path, errors: &mut Errors) {
    if meta["finalizers"].is_null() {
        return;
    }
    let path = path.child("finalizers");
    let names: Vec<_> = items(&meta["finalizers"]).iter().map(text).collect();
    for name in &names {
        problems(name, validation::qualified_name(name), &path, errors);
    }
    if names.contains(&"orphan") && names.contains(&"foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid(&path, names.clone(), detail));
    }
}

/// Finalizers of built-in kinds are standard ones or have a domain.
fn kube_finalizers(meta: &Value, path: &Path, errors: &mut Errors) {
    if meta["finalizers"].is_null() {
        return;
    }
    super::json::each(&meta["finalizers"], &path.child("finalizers"), |finalizer, path| {
        let name = text(finalizer);
        if !name.contains('/') && !matches!(name, "kubernetes" | "orphan" | "foregroundDeletion") {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(path, name, detail));
        }
    });
}

fn no_new_finalizers(new: &Value, old: &Value, path: &Path, errors: &mut Errors) {
    let had: HashSet<&Value> = items(&old["finalizers"]).iter().collect();
    let mut extra: Vec<_> = items(&new["finalizers"]).iter().filter(|name| !had.contains(name)).map(text).collect();
    extra.sort_unstable();
    extra.dedup();
    if !extra.is_empty() {
        let list: Vec<_> = extra.iter().map(|name| format!("{name:?}")).collect();
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            list.join(", ")
        );
        errors.push(FieldError::forbidden(&path.child("finalizers"), detail));
    }
}

/// A prefix may end in a dash, because something follows it (`maskTrailingDash`).
fn masked(name: &str) -> String {
    match name.strip_suffix('-') {
        Some(start) if !start.is_empty() => {
            let mut start = start.to_owned();
            start.pop();
            start + "a"
        }
        _ => name.to_owned(),
    }
}

// === impl NameRule ===

impl NameRule {
    /// Returns what is wrong with a name.
    #[must_use]
    pub(crate) fn problems(self, name: &str) -> Problems {
        match self {
            Self::Subdomain => validation::dns1123_subdomain(name),
            Self::Label => validation::dns1123_label(name),
            Self::PathSegment => validation::path_segment(name),
        }
    }
}

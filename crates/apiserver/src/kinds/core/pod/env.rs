//! Environment variables of a container: `ValidateEnv` and `ValidateEnvFrom` of
//! `pkg/apis/core/validation/validation.go`.

use serde_json::Value;
use steersman_base::validation::{dns1123_subdomain, qualified_name};

use crate::field::{FieldError, Path};
use crate::kinds::shared::check::{self, Errors, problems, required};
use crate::kinds::shared::json::{each, is_empty, is_set, text};

/// The fields of its pod that a variable can show.
const ENV_FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// The fields of its pod that a file can show.
pub(crate) const VOLUME_FIELDS: &[&str] =
    &["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

const RESOURCE_FIELDS: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// Variables.
pub(crate) fn vars(vars: &Value, path: &Path, errors: &mut Errors) {
    each(vars, path, |var, path| {
        let at = path.child("name");
        if required(&var["name"], &at, errors) {
            let name = text(&var["name"]);
            problems(name, check::env_name(name), &at, errors);
        }
        if is_set(&var["valueFrom"]) {
            value_from(var, &path.child("valueFrom"), errors);
        }
    });
}

fn value_from(var: &Value, path: &Path, errors: &mut Errors) {
    let source = &var["valueFrom"];
    let mut count = 0;
    let mut there = |field: &str| {
        let set = is_set(&source[field]);
        count += i32::from(set);
        set
    };
    if there("fieldRef") {
        field_ref(&source["fieldRef"], ENV_FIELDS, &path.child("fieldRef"), errors);
    }
    if there("resourceFieldRef") {
        resource_field_ref(&source["resourceFieldRef"], false, &path.child("resourceFieldRef"), errors);
    }
    for field in ["configMapKeyRef", "secretKeyRef"] {
        if there(field) {
            key_selector(&source[field], &path.child(field), errors);
        }
    }
    if there("fileKeyRef") {
        let file = &source["fileKeyRef"];
        let path = path.child("fileKeyRef");
        for field in ["key", "volumeName", "path"] {
            required(&file[field], &path.child(field), errors);
        }
    }
    let mut invalid = |detail: &str| errors.push(FieldError::invalid(path, "", detail));
    if count == 0 {
        invalid(
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        );
    } else if !is_empty(&var["value"]) {
        invalid("may not be specified when `value` is not empty");
    } else if count > 1 {
        invalid("may not have more than one field specified at a time");
    }
}

/// Sources of many variables.
pub(crate) fn sources(sources: &Value, path: &Path, errors: &mut Errors) {
    each(sources, path, |source, at| {
        let prefix = text(&source["prefix"]);
        if !prefix.is_empty() {
            problems(prefix, check::env_name(prefix), &at.child("prefix"), errors);
        }
        let mut count = 0;
        for field in ["configMapRef", "secretRef"] {
            if !is_set(&source[field]) {
                continue;
            }
            count += 1;
            let name = &source[field]["name"];
            let at = at.child(field).child("name");
            if required(name, &at, errors) {
                problems(text(name), dns1123_subdomain(text(name)), &at, errors);
            }
        }
        match count {
            0 => errors.push(FieldError::invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")),
            1 => {}
            _ => {
                let detail = "may not have more than one field specified at a time";
                errors.push(FieldError::invalid(path, "", detail));
            }
        }
    });
}

fn key_selector(selector: &Value, path: &Path, errors: &mut Errors) {
    let name = text(&selector["name"]);
    let key = text(&selector["key"]);
    problems(name, dns1123_subdomain(name), &path.child("name"), errors);
    if required(&selector["key"], &path.child("key"), errors) {
        problems(key, check::config_key(key), &path.child("key"), errors);
    }
}

/// A field of the pod: `validateObjectFieldSelector`.
pub(crate) fn field_ref(selector: &Value, fields: &[&str], path: &Path, errors: &mut Errors) {
    if !required(&selector["apiVersion"], &path.child("apiVersion"), errors)
        || !required(&selector["fieldPath"], &path.child("fieldPath"), errors)
    {
        return;
    }
    let field = text(&selector["fieldPath"]);
    let at = path.child("fieldPath");
    match subscript(field) {
        Some(("metadata.annotations", key)) => problems(key, qualified_name(&key.to_lowercase()), path, errors),
        Some(("metadata.labels", key)) => problems(key, qualified_name(key), path, errors),
        Some(_) => {
            let detail = "error converting fieldPath: field label does not support subscript";
            errors.push(FieldError::invalid(&at, field, detail));
        }
        None if fields.contains(&field) => {}
        None if ENV_FIELDS.contains(&field) || VOLUME_FIELDS.contains(&field) => {
            errors.push(FieldError::not_supported(&at, field, fields));
        }
        None => {
            let detail = format!("error converting fieldPath: field label not supported: {field}");
            errors.push(FieldError::invalid(&at, field, detail));
        }
    }
}

/// `metadata.labels['app']`
fn subscript(field: &str) -> Option<(&str, &str)> {
    let (name, key) = field.strip_suffix("']")?.split_once("['")?;
    (!name.is_empty()).then_some((name, key))
}

/// An amount of the container: `validateContainerResourceFieldSelector`.
pub(crate) fn resource_field_ref(selector: &Value, in_volume: bool, path: &Path, errors: &mut Errors) {
    let resource = text(&selector["resource"]);
    if in_volume && is_empty(&selector["containerName"]) {
        errors.push(FieldError::required(&path.child("containerName"), ""));
    } else if resource.is_empty() {
        errors.push(FieldError::required(&path.child("resource"), ""));
    } else if !RESOURCE_FIELDS.contains(&resource)
        && !["requests.hugepages-", "limits.hugepages-"].iter().any(|prefix| resource.starts_with(prefix))
    {
        errors.push(FieldError::not_supported(&path.child("resource"), resource, RESOURCE_FIELDS));
    }
    divisor(selector, resource, path, errors);
}

fn divisor(selector: &Value, resource: &str, path: &Path, errors: &mut Errors) {
    const SIZES: &[&str] = &["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];
    let Some(divisor) = check::quantity(&selector["divisor"]).map(|quantity| quantity.to_string()) else { return };
    if divisor == "0" {
        return;
    }
    let sizes = SIZES.join(", ");
    let (known, detail) = match resource.split_once('.').map(|(_, name)| name) {
        Some("cpu") => {
            (&["1m", "1"][..], "only divisor's values 1m and 1 are supported with the cpu resource".to_owned())
        }
        Some("memory") => (SIZES, format!("only divisor's values {sizes} are supported with the memory resource")),
        Some("ephemeral-storage") => {
            (SIZES, format!("only divisor's values {sizes} are supported with the local ephemeral storage resource"))
        }
        Some(name) if name.starts_with("hugepages-") => {
            (SIZES, format!("only divisor's values {sizes} are supported with the hugepages resource"))
        }
        _ => return,
    };
    if !known.contains(&divisor.as_str()) {
        errors.push(FieldError::invalid(&path.child("divisor"), resource, detail));
    }
}

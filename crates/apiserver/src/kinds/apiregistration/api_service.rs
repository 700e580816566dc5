//! APIServices. They are stored, and not proxied to. Follows `kube-aggregator/pkg/apis/apiregistration/validation/validation.go`.

use serde_json::Value;
use steersman_base::validation::{dns1035_label, dns1123_subdomain};

use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::check::{problems, range, required};
use crate::kinds::shared::json::{default_to, each, flag, is_set, number, object_mut, text};
use crate::kinds::shared::meta::validate_meta_update;
use crate::kinds::{NameRule, Rules};
use crate::registry::object_meta::meta_text;
use crate::registry::strategy::Strategy;
use crate::table::{Cell, TableRow, cell};

/// The rules of APIServices.
pub(crate) static RULES: Rules = Rules::named(NameRule::PathSegment)
    .rechecked()
    .defaulted(|object| {
        if let Some(service) = object_mut(object, "spec").and_then(|spec| object_mut(spec, "service")) {
            default_to(service, "port", 443);
        }
    })
    .validated(validate)
    .status_validated(validate_status)
    .status_resets(&["metadata", "spec"])
    .with_strategy(Strategy { unconditional_update: false, ..Strategy::DEFAULT })
    .etcd_prefix("apiregistration.k8s.io/apiservices")
    .printed(&[Cell::Name, Cell::Made(service), Cell::Made(available), Cell::Age]);

fn service(row: &TableRow<'_>) -> String {
    row.at("/spec/service").map_or_else(
        || "Local".to_owned(),
        |service| format!("{}/{}", cell::text(service, "namespace"), cell::text(service, "name")),
    )
}

fn available(row: &TableRow<'_>) -> String {
    let Some(condition) = row.condition("/status/conditions", "Available") else { return "Unknown".to_owned() };
    match (cell::text(condition, "status"), cell::text(condition, "reason")) {
        (status @ "True", _) | (status, "") => status.to_owned(),
        (status, reason) => format!("{status} ({reason})"),
    }
}

fn validate(service: &Value, _: Option<&Value>, errors: &mut Errors) {
    let spec = &service["spec"];
    let path = Path::new("spec");
    let group = text(&spec["group"]);
    let version = text(&spec["version"]);
    let name = meta_text(service, "name");
    let wanted = format!("{version}.{group}");
    if !name.is_empty() && name != wanted {
        let detail = format!("must be `spec.version+\".\"+spec.group`: {wanted:?}");
        errors.push(FieldError::invalid(&Path::new("metadata").child("name"), name, detail));
    }
    if group.is_empty() && version != "v1" {
        let detail = "only v1 may have an empty group and it better be legacy kube";
        errors.push(FieldError::required(&path.child("group"), detail));
    }
    if !group.is_empty() {
        problems(group, dns1123_subdomain(group), &path.child("group"), errors);
    }
    problems(version, dns1035_label(version), &path.child("version"), errors);
    for (field, max) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1_000)] {
        let priority = number(&spec[field]);
        if !(1..=max).contains(&priority) {
            let detail = format!("must be positive and less than {max}");
            errors.push(FieldError::invalid(&path.child(field), priority, detail));
        }
    }
    destination(spec, &path, errors);
}

fn destination(spec: &Value, path: &Path, errors: &mut Errors) {
    let is_insecure = flag(&spec["insecureSkipTLSVerify"]);
    let bundle = text(&spec["caBundle"]);
    let service = &spec["service"];
    let insecure = path.child("insecureSkipTLSVerify");
    if !is_set(service) {
        if !bundle.is_empty() {
            let shown = format!("{} bytes", bundle.trim_end_matches('=').len() * 3 / 4);
            errors.push(FieldError::invalid(
                &path.child("caBundle"),
                shown,
                "local APIServices may not have a caBundle",
            ));
        }
        if is_insecure {
            errors.push(FieldError::invalid(&insecure, true, "local APIServices may not have insecureSkipTLSVerify"));
        }
        return;
    }
    let path = path.child("service");
    for field in ["namespace", "name"] {
        required(&service[field], &path.child(field), errors);
    }
    let port = number(&service["port"]);
    if !(1..=65_535).contains(&port) {
        let detail = format!("port is not valid: {}", range(1, 65_535));
        errors.push(FieldError::invalid(&path.child("port"), port, detail));
    }
    if is_insecure && !bundle.is_empty() {
        errors.push(FieldError::invalid(&insecure, true, "may not be true if caBundle is present"));
    }
}

fn validate_status(new: &Value, old: &Value, errors: &mut Errors) {
    validate_meta_update(new, old, errors);
    each(&new["status"]["conditions"], &Path::new("status").child("conditions"), |condition, path| {
        let status = text(&condition["status"]);
        if !matches!(status, "True" | "False" | "Unknown") {
            errors.push(FieldError::not_supported(&path.child("status"), status, &["True", "False", "Unknown"]));
        }
    });
}

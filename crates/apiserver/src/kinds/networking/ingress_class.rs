//! IngressClasses: `pkg/apis/networking/v1/defaults.go` and `pkg/apis/networking/validation/validation.go`.

use serde_json::Value;
use steersman_base::validation::dns1123_label;

use super::ingress::reference;
use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::check::{self, problems};
use crate::kinds::shared::json::{default_to, is_set, object_mut, text};
use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::Strategy;
use crate::table::{Cell, TableRow, cell};

/// The rules of IngressClasses.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .defaulted(|class| {
        if let Some(parameters) = object_mut(class, "spec").and_then(|spec| object_mut(spec, "parameters")) {
            default_to(parameters, "scope", "Cluster");
        }
    })
    .validated(|new, old, errors| {
        if let Some(old) = old {
            let path = Path::new("spec").child("controller");
            check::immutable_text(&new["spec"]["controller"], &old["spec"]["controller"], &path, errors);
        }
        class(&new["spec"], &Path::new("spec"), errors);
    })
    .with_strategy(Strategy::GENERATION)
    .printed(&[Cell::Made(class_name), Cell::Text("/spec/controller"), Cell::Made(class_parameters), Cell::Age]);

fn class(spec: &Value, path: &Path, errors: &mut Errors) {
    const LENGTH_MAX: usize = 250;
    let controller = text(&spec["controller"]);
    let at = path.child("controller");
    if controller.len() > LENGTH_MAX {
        errors.push(FieldError::too_long(&at, LENGTH_MAX));
    }
    check::domain_prefixed_path(controller, &at, errors);
    let parameters = &spec["parameters"];
    let path = path.child("parameters");
    if !is_set(parameters) {
        return;
    }
    reference(parameters, &path, errors);
    let namespace = parameters["namespace"].as_str();
    let at = path.child("namespace");
    match (parameters["scope"].as_str(), namespace) {
        (None, _) => errors.push(FieldError::required(&path.child("scope"), "")),
        (Some("Namespace"), None) => {
            errors.push(FieldError::required(&at, "`parameters.scope` is set to 'Namespace'"));
        }
        (Some("Namespace"), Some(name)) => problems(name, dns1123_label(name), &at, errors),
        (Some("Cluster"), Some(_)) => {
            errors.push(FieldError::forbidden(&at, "`parameters.scope` is set to 'Cluster'"));
        }
        (Some("Cluster"), None) => {}
        (Some(other), _) => {
            errors.push(FieldError::not_supported(&path.child("scope"), other, &["Cluster", "Namespace"]));
        }
    }
}

fn class_name(row: &TableRow<'_>) -> String {
    let name = row.text("/metadata/name");
    let annotation = row.text("/metadata/annotations/ingressclass.kubernetes.io~1is-default-class");
    if annotation == "true" { format!("{name} (default)") } else { name.to_owned() }
}

fn class_parameters(row: &TableRow<'_>) -> String {
    let Some(parameters) = row.at("/spec/parameters") else { return "<none>".to_owned() };
    let group = parameters.get("apiGroup").and_then(Value::as_str).map(|group| format!(".{group}")).unwrap_or_default();
    format!("{}{group}/{}", cell::text(parameters, "kind"), cell::text(parameters, "name"))
}

//! Ingresses: `pkg/apis/networking/validation/validation.go`, and the plug-in DefaultIngressClass.

use serde_json::Value;
use steersman_base::validation::{dns1123_label, dns1123_subdomain, path_segment};

use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::check::{self, problems, required};
use crate::kinds::shared::classes::default_class;
use crate::kinds::shared::endpoint_address::{load_balancer, load_balancer_status};
use crate::kinds::shared::json::{each, is_empty, is_set, items, number, set, text, with};
use crate::kinds::shared::meta::validate_meta_update;
use crate::kinds::{NameRule, Rules};
use crate::registry::admission::{Admission, Lookup};
use crate::registry::strategy::Strategy;
use crate::table::{Cell, TableRow, cell};

/// The rules of Ingresses.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .warned(|new, old, warnings| {
        const CLASS: &str = "kubernetes.io/ingress.class";
        let is_noted = is_set(&new["metadata"]["annotations"][CLASS]);
        if old.is_none() && is_noted && !is_set(&new["spec"]["ingressClassName"]) {
            warnings.push(format!("annotation {CLASS:?} is deprecated, please use 'spec.ingressClassName' instead"));
        }
    })
    .validated(|new, old, errors| {
        const CLASS: &str = "kubernetes.io/ingress.class";
        spec(&new["spec"], &Path::new("spec"), errors);
        let class = new["metadata"]["annotations"][CLASS].as_str();
        if let (None, Some(class), Some(name)) = (old, class, new["spec"]["ingressClassName"].as_str())
            && class != name
        {
            let path = Path::new("annotations").child(CLASS);
            let detail = "must match `ingressClassName` when both are specified";
            errors.push(FieldError::invalid(&path, class, detail));
        }
    })
    .status_validated(|new, old, errors| {
        validate_meta_update(new, old, errors);
        let path = Path::new("status").child("loadBalancer").child("ingress");
        load_balancer_status(&new["status"], &old["status"], &path, errors);
    })
    .admitted(Admission {
        mutate: |lookup, new, old| {
            if old.is_none() {
                ingress_class(lookup, new);
            }
            Ok(())
        },
        ..Admission::NONE
    })
    .with_strategy(Strategy::GENERATION)
    .etcd_prefix("ingress")
    .printed(&[
        Cell::Name,
        Cell::TextOr("/spec/ingressClassName", "<none>"),
        Cell::Made(ingress_hosts),
        Cell::Made(load_balancer),
        Cell::Made(|row| if row.count("/spec/tls") > 0 { "80, 443" } else { "80" }.to_owned()),
        Cell::Age,
    ]);

/// The most hosts that a cell shows.
const SHOWN_MAX: usize = 3;

fn spec(spec: &Value, path: &Path, errors: &mut Errors) {
    if items(&spec["rules"]).is_empty() && !is_set(&spec["defaultBackend"]) {
        let detail = "either `defaultBackend` or `rules` must be specified";
        errors.push(FieldError::invalid(path, spec["rules"].clone(), detail));
    }
    if is_set(&spec["defaultBackend"]) {
        backend(&spec["defaultBackend"], &path.child("defaultBackend"), errors);
    }
    each(&spec["rules"], &path.child("rules"), |rule, path| {
        let name = text(&rule["host"]);
        if !name.is_empty() {
            if check::ip(name).is_some() {
                let detail = "must be a DNS name, not an IP address";
                errors.push(FieldError::invalid(&path.child("host"), name, detail));
            }
            host(name, &path.child("host"), errors);
        }
        if is_set(&rule["http"]) {
            let at = path.child("http").child("paths");
            if items(&rule["http"]["paths"]).is_empty() {
                errors.push(FieldError::required(&at, ""));
            }
            each(&rule["http"]["paths"], &at, |it, path| http_path(it, path, errors));
        }
    });
    each(&spec["tls"], &path.child("tls"), |tls, path| {
        each(&tls["hosts"], &path.child("hosts"), |name, path| host(text(name), path, errors));
        let secret = text(&tls["secretName"]);
        if !secret.is_empty() {
            problems(secret, dns1123_subdomain(secret), &path.child("secretName"), errors);
        }
    });
    if let Some(class) = spec["ingressClassName"].as_str() {
        problems(class, dns1123_subdomain(class), &path.child("ingressClassName"), errors);
    }
}

/// A reference to an object of any kind.
pub(super) fn reference(reference: &Value, path: &Path, errors: &mut Errors) {
    if let Some(group) = reference["apiGroup"].as_str() {
        problems(group, dns1123_subdomain(group), &path.child("apiGroup"), errors);
    }
    for field in ["kind", "name"] {
        if required(&reference[field], &path.child(field), errors) {
            let value = text(&reference[field]);
            problems(value, path_segment(value), &path.child(field), errors);
        }
    }
}

fn host(name: &str, path: &Path, errors: &mut Errors) {
    if !name.contains('*') {
        problems(name, dns1123_subdomain(name), path, errors);
        return;
    }
    let good = name.strip_prefix("*.").is_some_and(|rest| dns1123_subdomain(rest).is_empty());
    if !good {
        let problem = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must \
                       consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character \
                       (e.g. '*.example.com', regex used for validation is \
                       '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
        errors.push(FieldError::invalid(path, name, problem));
    }
}

fn http_path(it: &Value, path: &Path, errors: &mut Errors) {
    let value = text(&it["path"]);
    let at = path.child("path");
    match it["pathType"].as_str() {
        None => {
            errors.push(FieldError::required(&path.child("pathType"), "pathType must be specified"));
            return;
        }
        Some("Exact" | "Prefix") => {
            if !value.starts_with('/') {
                errors.push(FieldError::invalid(&at, value, "must be an absolute path"));
            }
            for part in ["//", "/./", "/../", "%2f", "%2F"].iter().filter(|part| value.contains(**part)) {
                errors.push(FieldError::invalid(&at, value, format!("must not contain '{part}'")));
            }
            for end in ["/..", "/."].iter().filter(|end| value.ends_with(**end)) {
                errors.push(FieldError::invalid(&at, value, format!("cannot end with '{end}'")));
            }
        }
        Some("ImplementationSpecific") => {
            if !value.is_empty() && !value.starts_with('/') {
                errors.push(FieldError::invalid(&at, value, "must be an absolute path"));
            }
        }
        Some(other) => {
            let known = &["Exact", "ImplementationSpecific", "Prefix"];
            errors.push(FieldError::not_supported(&path.child("pathType"), other, known));
        }
    }
    backend(&it["backend"], &path.child("backend"), errors);
}

fn backend(backend: &Value, path: &Path, errors: &mut Errors) {
    let service = &backend["service"];
    let resource = &backend["resource"];
    let invalid = |detail: &str| FieldError::invalid(path, "", detail);
    match (is_set(resource), is_set(service)) {
        (true, true) => errors.push(invalid("cannot set both resource and service backends")),
        (false, false) => errors.push(invalid("resource or service backend is required")),
        (true, false) => {
            reference(resource, &path.child("resource"), errors);
        }
        (false, true) => {
            let at = path.child("service");
            if required(&service["name"], &at.child("name"), errors) {
                let name = text(&service["name"]);
                problems(name, dns1123_label(name), &at.child("name"), errors);
            }
            let name = text(&service["port"]["name"]);
            let port = &service["port"]["number"];
            let at = at.child("port");
            match (name.is_empty(), is_empty(port)) {
                (false, false) => errors.push(invalid("cannot set both port name & port number")),
                (false, true) => problems(name, check::port_name(name), &at.child("name"), errors),
                (true, false) => check::port(number(port), &at.child("number"), errors),
                (true, true) => errors.push(FieldError::required(path, "port name or number is required")),
            }
        }
    }
}

/// Sets the default class.
fn ingress_class(lookup: &dyn Lookup, ingress: &mut Value) {
    const LEGACY: &str = "kubernetes.io/ingress.class";
    if is_set(&ingress["spec"]["ingressClassName"]) || is_set(&ingress["metadata"]["annotations"][LEGACY]) {
        return;
    }
    let marks = ["ingressclass.kubernetes.io/is-default-class"];
    if let Some(class) = default_class(lookup, "networking.k8s.io", "ingressclasses", &marks) {
        with(ingress, "spec", |spec| set(spec, "ingressClassName", class));
    }
}

/// Unlike the others, this counts all rules, whether they have a host or not.
fn ingress_hosts(row: &TableRow<'_>) -> String {
    let rules = row.list_at("/spec/rules");
    let hosts: Vec<&str> = rules.iter().map(|rule| cell::text(rule, "host")).filter(|host| !host.is_empty()).collect();
    let shown = hosts.iter().take(SHOWN_MAX).copied().collect::<Vec<_>>().join(",");
    let last_shown = rules.iter().position(|rule| hosts.get(SHOWN_MAX - 1) == Some(&cell::text(rule, "host")));
    match last_shown {
        _ if hosts.is_empty() => "*".to_owned(),
        Some(index) if index + 1 < rules.len() => format!("{shown} + {} more...", rules.len() - SHOWN_MAX),
        _ => shown,
    }
}

//! Probes and hooks of a container: `validateProbe`, `validateLifecycle` and `validateHandler` of
//! `pkg/apis/core/validation/validation.go`.

use serde_json::Value;

use crate::field::{FieldError, Path};
use crate::kinds::shared::check::{self, Errors, problems, required};
use crate::kinds::shared::json::{each, is_empty, is_set, number, text};

/// Hooks and probes.
pub(crate) fn all(container: &Value, grace_seconds: Option<i64>, path: &Path, errors: &mut Errors) {
    let lifecycle = path.child("lifecycle");
    for hook in ["postStart", "preStop"] {
        if is_set(&container["lifecycle"][hook]) {
            handler(&container["lifecycle"][hook], grace_seconds, &lifecycle.child(hook), errors);
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if is_set(&container[name]) {
            probe(name, &container[name], grace_seconds, &path.child(name), errors);
        }
    }
}

fn probe(name: &str, probe: &Value, grace_seconds: Option<i64>, path: &Path, errors: &mut Errors) {
    handler(probe, grace_seconds, path, errors);
    for field in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"] {
        check::non_negative(&probe[field], &path.child(field), errors);
    }
    let grace = path.child("terminationGracePeriodSeconds");
    if let Some(seconds) = probe["terminationGracePeriodSeconds"].as_i64() {
        if seconds <= 0 {
            errors.push(FieldError::invalid(&grace, seconds, "must be greater than 0"));
        }
        if name == "readinessProbe" {
            errors.push(FieldError::invalid(&grace, seconds, "must not be set for readinessProbes"));
        }
    }
    let successes = number(&probe["successThreshold"]);
    if name != "readinessProbe" && successes != 1 {
        errors.push(FieldError::invalid(&path.child("successThreshold"), successes, "must be 1"));
    }
}

fn handler(handler: &Value, grace_seconds: Option<i64>, path: &Path, errors: &mut Errors) {
    let mut count = 0;
    for kind in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        let action = &handler[kind];
        let at = path.child(kind);
        if !is_set(action) {
            continue;
        }
        count += 1;
        if count > 1 {
            errors.push(FieldError::forbidden(&at, "may not specify more than 1 handler type"));
            continue;
        }
        match kind {
            "exec" if is_empty(&action["command"]) => errors.push(FieldError::required(&at.child("command"), "")),
            "httpGet" => http_get(action, &at, errors),
            "tcpSocket" => check::port_or_name(&action["port"], &at.child("port"), errors),
            "grpc" => check::port(number(&action["port"]), &at.child("port"), errors),
            "sleep" => {
                let seconds = number(&action["seconds"]);
                if let Some(grace) = grace_seconds.filter(|grace| seconds < 0 || seconds > *grace) {
                    let detail = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
                    errors.push(FieldError::invalid(&at, seconds, detail));
                }
            }
            _ => {}
        }
    }
    if count == 0 {
        errors.push(FieldError::required(path, "must specify a handler type"));
    }
}

fn http_get(action: &Value, path: &Path, errors: &mut Errors) {
    required(&action["path"], &path.child("path"), errors);
    check::port_or_name(&action["port"], &path.child("port"), errors);
    if !matches!(text(&action["scheme"]), "HTTP" | "HTTPS") {
        let scheme = text(&action["scheme"]);
        errors.push(FieldError::not_supported(&path.child("scheme"), scheme, &["HTTP", "HTTPS"]));
    }
    each(&action["httpHeaders"], &path.child("httpHeaders"), |header, _| {
        let name = text(&header["name"]);
        if name.is_empty() || !name.bytes().all(|byte| byte == b'-' || byte.is_ascii_alphanumeric()) {
            let problem = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', \
                           regex used for validation is '[-A-Za-z0-9]+')";
            problems(name, vec![problem.to_owned()], &path.child("httpHeaders"), errors);
        }
    });
}

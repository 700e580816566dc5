//! Who a pod runs as: `ValidateSecurityContext` and `validatePodSpecSecurityContext` of
//! `pkg/apis/core/validation/validation.go`.

use serde_json::Value;

use crate::field::{FieldError, Path};
use crate::kinds::shared::check::{self, Errors, one_of_if_set};
use crate::kinds::shared::go;
use crate::kinds::shared::json::{each, flag, is_set, items, text};

const ID_MAX: i64 = i32::MAX as i64;

/// The security context of a pod.
pub(crate) fn pod(spec: &Value, path: &Path, errors: &mut Errors) {
    let context = &spec["securityContext"];
    for field in ["fsGroup", "runAsUser", "runAsGroup"] {
        id(&context[field], &path.child(field), errors);
    }
    each(&context["supplementalGroups"], &path.child("supplementalGroups"), |group, path| id(group, path, errors));
    sysctls(&context["sysctls"], &path.child("sysctls"), errors);
    let mut one_of = |field: &str, known: &[&str]| one_of_if_set(&context[field], known, &path.child(field), errors);
    one_of("fsGroupChangePolicy", &["Always", "OnRootMismatch"]);
    seccomp(&context["seccompProfile"], &path.child("seccompProfile"), errors);
    app_armor(&context["appArmorProfile"], &path.child("appArmorProfile"), errors);
    let mut one_of = |field: &str, known: &[&str]| one_of_if_set(&context[field], known, &path.child(field), errors);
    one_of("supplementalGroupsPolicy", &["Merge", "Strict"]);
    one_of("seLinuxChangePolicy", &["MountOption", "Recursive"]);
}

/// The security context of a container.
pub(crate) fn container(container: &Value, spec: &Value, path: &Path, errors: &mut Errors) {
    let context = &container["securityContext"];
    id(&context["runAsUser"], &path.child("runAsUser"), errors);
    id(&context["runAsGroup"], &path.child("runAsGroup"), errors);
    let proc_mount = path.child("procMount");
    one_of_if_set(&context["procMount"], &["Default", "Unmasked"], &proc_mount, errors);
    if text(&context["procMount"]) == "Unmasked" && spec["hostUsers"] != Value::Bool(false) {
        let detail = "`hostUsers` must be false to use `Unmasked`";
        errors.push(FieldError::invalid(&proc_mount, "Unmasked", detail));
    }
    seccomp(&context["seccompProfile"], &path.child("seccompProfile"), errors);
    if context["allowPrivilegeEscalation"] == Value::Bool(false) {
        if flag(&context["privileged"]) {
            let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            errors.push(FieldError::invalid(path, go::show("SecurityContext", context), detail));
        }
        if items(&context["capabilities"]["add"]).iter().any(|name| text(name) == "CAP_SYS_ADMIN") {
            let detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
            errors.push(FieldError::invalid(path, go::show("SecurityContext", context), detail));
        }
    }
    app_armor(&context["appArmorProfile"], &path.child("appArmorProfile"), errors);
}

/// A pod with users of its own shares no other namespace with its node.
pub(crate) fn host_users(spec: &Value, path: &Path, errors: &mut Errors) {
    if spec["hostUsers"] != Value::Bool(false) {
        return;
    }
    for (field, name) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if flag(&spec[field]) {
            errors.push(FieldError::forbidden(&path.child(name), "when `hostUsers` is false"));
        }
    }
}

fn id(value: &Value, path: &Path, errors: &mut Errors) {
    if let Some(id) = value.as_i64() {
        check::in_range(id, 0, ID_MAX, path, errors);
    }
}

fn sysctls(sysctls: &Value, path: &Path, errors: &mut Errors) {
    const LENGTH_MAX: usize = 253;
    const PATTERN: &str = "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
    let mut seen = Vec::new();
    each(sysctls, path, |sysctl, path| {
        let name = text(&sysctl["name"]);
        let at = path.child("name");
        if name.is_empty() {
            errors.push(FieldError::required(&at, ""));
        } else if name.len() > LENGTH_MAX || !name.split(['.', '/']).all(is_sysctl_part) {
            let detail = format!("must have at most {LENGTH_MAX} characters and match regex {PATTERN}");
            errors.push(FieldError::invalid(&at, name, detail));
        } else if seen.contains(&name) {
            errors.push(FieldError::duplicate(&at, name));
        }
        seen.push(name);
    });
}

fn is_sysctl_part(part: &str) -> bool {
    let edge = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
    edge(part.as_bytes().first()) && edge(part.as_bytes().last()) && part.bytes().all(inner)
}

const PROFILES: &[&str] = &["Localhost", "RuntimeDefault", "Unconfined"];

fn seccomp(profile: &Value, path: &Path, errors: &mut Errors) {
    if !is_set(profile) {
        return;
    }
    let kind = text(&profile["type"]);
    if kind.is_empty() {
        errors.push(FieldError::required(&path.child("type"), "type is required when seccompProfile is set"));
    } else if !PROFILES.contains(&kind) {
        errors.push(FieldError::not_supported(&path.child("type"), kind, PROFILES));
    }
    let at = path.child("localhostProfile");
    match profile["localhostProfile"].as_str() {
        None if kind == "Localhost" => {
            errors.push(FieldError::required(&at, "must be set when seccomp type is Localhost"));
        }
        Some(name) if kind == "Localhost" => check::descending_path(name, &at, errors),
        Some(_) => {
            let detail = "can only be set when seccomp type is Localhost";
            errors.push(FieldError::invalid(&at, go::show("SeccompProfile", profile), detail));
        }
        None => {}
    }
}

fn app_armor(profile: &Value, path: &Path, errors: &mut Errors) {
    const LENGTH_MAX: usize = 4095;
    if !is_set(profile) {
        return;
    }
    let at = path.child("localhostProfile");
    let name = profile["localhostProfile"].as_str();
    match text(&profile["type"]) {
        "Localhost" => match name {
            None | Some("") => {
                errors.push(FieldError::required(&at, "must be set when AppArmor type is Localhost"));
            }
            Some(name) => {
                if name.trim().len() != name.len() {
                    errors.push(FieldError::invalid(&at, name, "must not be padded with whitespace"));
                }
                if name.len() > LENGTH_MAX {
                    errors.push(FieldError::too_long(&at, LENGTH_MAX));
                }
            }
        },
        "RuntimeDefault" | "Unconfined" => {
            if let Some(name) = name {
                let detail = "can only be set when AppArmor type is Localhost";
                errors.push(FieldError::invalid(&at, name, detail));
            }
        }
        "" => errors.push(FieldError::required(&path.child("type"), "type is required when appArmorProfile is set")),
        other => errors.push(FieldError::not_supported(&path.child("type"), other, PROFILES)),
    }
}

//! Containers of a pod: `validateContainers`, `validateInitContainers` and `validateEphemeralContainers` of
//! `pkg/apis/core/validation/validation.go`.

use serde_json::{Value, json};
use steersman_base::validation::dns1123_label;

use super::volumes::Volumes;
use super::{env, handlers, resources, security};
use crate::field::{FieldError, Path};
use crate::kinds::shared::check::{self, Errors, PROTOCOLS, forbid_if, one_of, one_of_if_set, problems, required};
use crate::kinds::shared::json::{each, flag, is_empty, is_set, items, number, text};

/// The facts about a pod that the checks of its containers need.
pub(crate) struct Context<'a> {
    spec: &'a Value,
    volumes: &'a Volumes<'a>,
    grace_seconds: Option<i64>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(spec: &'a Value, volumes: &'a Volumes<'a>) -> Self {
        Self { spec, volumes, grace_seconds: spec["terminationGracePeriodSeconds"].as_i64() }
    }
}

/// Regular containers: at least one, names and host ports unique.
pub(crate) fn containers(context: &Context<'_>, path: &Path, errors: &mut Errors) {
    let list = &context.spec["containers"];
    if items(list).is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let mut names = Vec::new();
    each(list, path, |container, path| {
        common(context, container, path, errors);
        unique_name(container, &mut names, path, errors);
        handlers::all(container, context.grace_seconds, path, errors);
        restart_policy(container, path, errors);
    });
    host_port_conflicts(items(list), path, errors);
}

/// Init containers; those that restart always are sidecars and may have what regular ones have.
pub(crate) fn init_containers(context: &Context<'_>, path: &Path, errors: &mut Errors) {
    const ONLY_SIDECARS: &str = "may not be set for init containers without restartPolicy=Always";
    let mut names: Vec<_> =
        items(&context.spec["containers"]).iter().map(|container| text(&container["name"])).collect();
    each(&context.spec["initContainers"], path, |container, at| {
        common(context, container, at, errors);
        let sidecar = text(&container["restartPolicy"]) == "Always";
        restart_policy(container, at, errors);
        unique_name(container, &mut names, at, errors);
        host_port_conflicts(std::slice::from_ref(container), path, errors);
        if sidecar {
            handlers::all(container, context.grace_seconds, at, errors);
        } else {
            for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
                forbid_if(is_set(&container[field]), ONLY_SIDECARS, &at.child(field), errors);
            }
            each(&container["resizePolicy"], &at.child("resizePolicy"), |policy, at| {
                if text(&policy["restartPolicy"]) == "RestartContainer" {
                    errors.push(FieldError::invalid(
                        &at.child("restartPolicy"),
                        "RestartContainer",
                        "must not be set to 'RestartContainer' for non-sidecar initContainers",
                    ));
                }
            });
        }
    });
}

/// Ephemeral containers: names unique among all, and only what a debugging container needs.
pub(crate) fn ephemeral_containers(context: &Context<'_>, path: &Path, errors: &mut Errors) {
    const NOT_ALLOWED: &[&str] = &[
        "ports",
        "resources",
        "resizePolicy",
        "restartPolicy",
        "restartPolicyRules",
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "lifecycle",
    ];
    let spec = context.spec;
    let others = items(&spec["containers"]).iter().chain(items(&spec["initContainers"]));
    let others: Vec<_> = others.map(|container| text(&container["name"])).collect();
    let mut names = others.clone();
    each(&spec["ephemeralContainers"], path, |container, path| {
        common(context, container, path, errors);
        only_for_pod(container, path, errors);
        unique_name(container, &mut names, path, errors);
        let target = text(&container["targetContainerName"]);
        if !target.is_empty() && !others.contains(&target) {
            errors.push(FieldError::not_found(&path.child("targetContainerName"), target));
        }
        for field in NOT_ALLOWED {
            let set = !is_empty(&container[*field]);
            forbid_if(set, "cannot be set for an Ephemeral Container", &path.child(field), errors);
        }
        each(&container["volumeMounts"], &path.child("volumeMounts"), |mount, path| {
            for field in ["subPath", "subPathExpr"] {
                let set = !is_empty(&mount[field]);
                forbid_if(set, "cannot be set for an Ephemeral Container", &path.child(field), errors);
            }
        });
    });
}

/// Checks what holds for pods and not for templates: an image's name has no space around it.
pub(crate) fn only_for_pod(container: &Value, path: &Path, errors: &mut Errors) {
    let image = text(&container["image"]);
    if image.trim().len() != image.len() {
        errors.push(FieldError::invalid(&path.child("image"), image, "must not have leading or trailing whitespace"));
    }
}

fn common(context: &Context<'_>, container: &Value, path: &Path, errors: &mut Errors) {
    let name = &container["name"];
    if required(name, &path.child("name"), errors) {
        problems(text(name), dns1123_label(text(name)), &path.child("name"), errors);
    }
    required(&container["image"], &path.child("image"), errors);
    one_of(
        &container["terminationMessagePolicy"],
        &["File", "FallbackToLogsOnError"],
        &path.child("terminationMessagePolicy"),
        errors,
    );
    ports(&container["ports"], &path.child("ports"), errors);
    env::vars(&container["env"], &path.child("env"), errors);
    env::sources(&container["envFrom"], &path.child("envFrom"), errors);
    mounts(context, container, &path.child("volumeMounts"), errors);
    devices(context, container, &path.child("volumeDevices"), errors);
    one_of(&container["imagePullPolicy"], &["Always", "IfNotPresent", "Never"], &path.child("imagePullPolicy"), errors);
    resources::container(&container["resources"], &context.spec["resourceClaims"], &path.child("resources"), errors);
    resize_policy(context, container, &path.child("resizePolicy"), errors);
    security::container(container, context.spec, &path.child("securityContext"), errors);
}

fn unique_name<'a>(container: &'a Value, names: &mut Vec<&'a str>, path: &Path, errors: &mut Errors) {
    let name = text(&container["name"]);
    if names.contains(&name) {
        errors.push(FieldError::duplicate(&path.child("name"), name));
    } else {
        names.push(name);
    }
}

fn restart_policy(container: &Value, path: &Path, errors: &mut Errors) {
    const RULES_MAX: usize = 20;
    const EXIT_CODES_MAX: usize = 255;
    const ACTIONS: &[&str] = &["Restart", "RestartAllContainers"];
    let rules = items(&container["restartPolicyRules"]);
    if container["restartPolicy"].is_null() && !rules.is_empty() {
        errors.push(FieldError::required(
            &path.child("restartPolicy"),
            "must specify restartPolicy when restart rules are used",
        ));
    }
    let policies = &["Always", "Never", "OnFailure"];
    one_of_if_set(&container["restartPolicy"], policies, &path.child("restartPolicy"), errors);
    let at = path.child("restartPolicyRules");
    if rules.len() > RULES_MAX {
        errors.push(FieldError::too_many(&at, rules.len(), RULES_MAX));
    }
    each(&container["restartPolicyRules"], &at, |rule, path| {
        if !ACTIONS.contains(&text(&rule["action"])) {
            errors.push(FieldError::not_supported(&path.child("action"), text(&rule["action"]), ACTIONS));
        }
        let codes = &rule["exitCodes"];
        if codes.is_null() {
            errors.push(FieldError::required(&path.child("exitCodes"), "must be specified"));
            return;
        }
        let path = path.child("exitCodes");
        if !["In", "NotIn"].contains(&text(&codes["operator"])) {
            let operator = text(&codes["operator"]);
            errors.push(FieldError::not_supported(&path.child("operator"), operator, &["In", "NotIn"]));
        }
        let count = items(&codes["values"]).len();
        if count > EXIT_CODES_MAX {
            errors.push(FieldError::too_many(&path.child("values"), count, EXIT_CODES_MAX));
        }
    });
}

fn ports(ports: &Value, path: &Path, errors: &mut Errors) {
    let mut names = Vec::new();
    each(ports, path, |port, path| {
        let name = text(&port["name"]);
        if !name.is_empty() {
            let wrong = check::port_name(name);
            if !wrong.is_empty() {
                problems(name, wrong, &path.child("name"), errors);
            } else if names.contains(&name) {
                errors.push(FieldError::duplicate(&path.child("name"), name));
            } else {
                names.push(name);
            }
        }
        match number(&port["containerPort"]) {
            0 => errors.push(FieldError::required(&path.child("containerPort"), "")),
            number => check::port(number, &path.child("containerPort"), errors),
        }
        match number(&port["hostPort"]) {
            0 => {}
            number => check::port(number, &path.child("hostPort"), errors),
        }
        one_of(&port["protocol"], PROTOCOLS, &path.child("protocol"), errors);
    });
}

fn host_port_conflicts(containers: &[Value], path: &Path, errors: &mut Errors) {
    let mut seen = Vec::new();
    for (index, container) in containers.iter().enumerate() {
        each(&container["ports"], &path.index(index).child("ports"), |port, path| {
            let host = number(&port["hostPort"]);
            if host == 0 {
                return;
            }
            let key = format!("{}/{}/{host}", text(&port["protocol"]), text(&port["hostIP"]));
            if seen.contains(&key) {
                errors.push(FieldError::duplicate(&path.child("hostPort"), key));
            } else {
                seen.push(key);
            }
        });
    }
}

fn mounts(context: &Context<'_>, container: &Value, path: &Path, errors: &mut Errors) {
    let mut seen = Vec::new();
    let devices = items(&container["volumeDevices"]);
    each(&container["volumeMounts"], path, |mount, at| {
        let name = text(&mount["name"]);
        let target = text(&mount["mountPath"]);
        required(&mount["name"], &at.child("name"), errors);
        if !context.volumes.contains_key(name) {
            errors.push(FieldError::not_found(&at.child("name"), name));
        }
        required(&mount["mountPath"], &at.child("mountPath"), errors);
        if seen.contains(&target) {
            errors.push(FieldError::invalid(&at.child("mountPath"), target, "must be unique"));
        }
        seen.push(target);
        if devices.iter().any(|device| text(&device["name"]) == name) {
            let detail = "must not already exist in volumeDevices";
            errors.push(FieldError::invalid(&at.child("name"), name, detail));
        }
        if devices.iter().any(|device| text(&device["devicePath"]) == target) {
            let detail = "must not already exist as a path in volumeDevices";
            errors.push(FieldError::invalid(&at.child("mountPath"), target, detail));
        }
        mount_options(mount, container, path, at, errors);
    });
}

/// Upstream names some of these fields without the mount's index.
fn mount_options(mount: &Value, container: &Value, path: &Path, at: &Path, errors: &mut Errors) {
    let sub_path = text(&mount["subPath"]);
    let expression = text(&mount["subPathExpr"]);
    if !sub_path.is_empty() {
        check::descending_path(sub_path, &path.child("subPath"), errors);
    }
    if !expression.is_empty() {
        if !sub_path.is_empty() {
            let detail = "subPathExpr and subPath are mutually exclusive";
            errors.push(FieldError::invalid(&at.child("subPathExpr"), expression, detail));
        }
        check::descending_path(expression, &path.child("subPathExpr"), errors);
    }
    let propagation = text(&mount["mountPropagation"]);
    if is_set(&mount["mountPropagation"]) {
        let path = path.child("mountPropagation");
        one_of_if_set(&mount["mountPropagation"], &["Bidirectional", "HostToContainer", "None"], &path, errors);
        let privileged = flag(&container["securityContext"]["privileged"]);
        forbid_if(
            propagation == "Bidirectional" && !privileged,
            "Bidirectional mount propagation is available only to privileged containers",
            &path,
            errors,
        );
    }
    let path = path.child("recursiveReadOnly");
    one_of_if_set(&mount["recursiveReadOnly"], &["Disabled", "Enabled", "IfPossible"], &path, errors);
    if matches!(text(&mount["recursiveReadOnly"]), "Enabled" | "IfPossible") {
        forbid_if(!flag(&mount["readOnly"]), "may only be specified when readOnly is true", &path, errors);
        forbid_if(
            !matches!(propagation, "" | "None"),
            "may only be specified when mountPropagation is None or not specified",
            &path,
            errors,
        );
    }
}

fn devices(context: &Context<'_>, container: &Value, path: &Path, errors: &mut Errors) {
    let mut names = Vec::new();
    let mut paths = Vec::new();
    let mounts = items(&container["volumeMounts"]);
    each(&container["volumeDevices"], path, |device, path| {
        let name = text(&device["name"]);
        let target = text(&device["devicePath"]);
        let invalid = |field: &str, value: &str, detail: &str| FieldError::invalid(&path.child(field), value, detail);
        required(&device["name"], &path.child("name"), errors);
        if names.contains(&name) {
            errors.push(invalid("name", name, "must be unique"));
        }
        match context.volumes.get(name) {
            None => errors.push(FieldError::not_found(&path.child("name"), name)),
            Some(volume) if is_set(&volume["persistentVolumeClaim"]) || is_set(&volume["ephemeral"]) => {}
            Some(_) => errors.push(invalid(
                "name",
                name,
                "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode",
            )),
        }
        required(&device["devicePath"], &path.child("devicePath"), errors);
        if paths.contains(&target) {
            errors.push(invalid("devicePath", target, "must be unique"));
        }
        if target.split('/').any(|part| part == "..") {
            errors.push(invalid("devicePath", target, "can not contain backsteps ('..')"));
        } else {
            paths.push(target);
        }
        if mounts.iter().any(|mount| text(&mount["name"]) == name) {
            errors.push(invalid("name", name, "must not already exist in volumeMounts"));
        }
        if mounts.iter().any(|mount| text(&mount["mountPath"]) == target) {
            errors.push(invalid("devicePath", target, "must not already exist as a path in volumeMounts"));
        }
        names.push(name);
    });
}

fn resize_policy(context: &Context<'_>, container: &Value, path: &Path, errors: &mut Errors) {
    let mut seen = Vec::new();
    each(&container["resizePolicy"], path, |policy, at| {
        let resource = text(&policy["resourceName"]);
        let restart = text(&policy["restartPolicy"]);
        if seen.contains(&resource) {
            errors.push(FieldError::duplicate(at, resource));
        }
        seen.push(resource);
        one_of(&json!(resource), &["cpu", "memory"], path, errors);
        one_of(&json!(restart), &["NotRequired", "RestartContainer"], path, errors);
        if text(&context.spec["restartPolicy"]) == "Never" && restart != "NotRequired" {
            let detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.push(FieldError::invalid(path, restart, detail));
        }
    });
}

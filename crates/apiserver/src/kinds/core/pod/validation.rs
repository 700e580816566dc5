//! Whether a pod or a pod template can be.
//!
//! Follows `ValidatePodCreate`, `ValidatePodSpec` and `ValidatePodTemplateSpec` of
//! `pkg/apis/core/validation/validation.go`, in their order.

use serde_json::Value;
use steersman_base::validation::{dns1123_label, dns1123_subdomain, label_value, qualified_name};

use super::{affinity, containers, resources, security, volumes};
use crate::field::{FieldError, Path};
use crate::kinds::shared::check::{self, Errors, forbid_if, one_of, problems};
use crate::kinds::shared::json::{each, flag, is_empty, is_set, items, number, text};
use crate::kinds::shared::meta;

/// The object that holds a pod's spec: some rules hold for pods only.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holder<'a> {
    /// A pod of this name.
    Pod(&'a str),
    /// A template.
    Template,
}

/// A pod that is created.
pub(crate) fn create(pod: &Value, errors: &mut Errors) {
    pod_spec_of(pod, errors);
    let spec = &pod["spec"];
    let path = Path::new("spec");
    forbid_if(
        !is_empty(&spec["ephemeralContainers"]),
        "cannot be set on create",
        &path.child("ephemeralContainers"),
        errors,
    );
    forbid_if(
        !is_empty(&spec["nodeName"]) && !is_empty(&spec["schedulingGates"]),
        "cannot be set until all schedulingGates have been cleared",
        &path.child("nodeName"),
        errors,
    );
}

/// The spec of a pod, with what only pods are held to (`validatePodMetadataAndSpec`).
pub(crate) fn pod_spec_of(pod: &Value, errors: &mut Errors) {
    let path = Path::new("spec");
    let spec = &pod["spec"];
    pod_spec(spec, Holder::Pod(text(&pod["metadata"]["name"])), &path, errors);
    if is_empty(&spec["serviceAccountName"]) {
        each(&spec["volumes"], &path.child("volumes"), |volume, path| {
            each(&volume["projected"]["sources"], &path.child("projected").child("sources"), |source, path| {
                forbid_if(
                    is_set(&source["serviceAccountToken"]),
                    "must not be specified when serviceAccountName is not set",
                    &path.child("serviceAccountToken"),
                    errors,
                );
            });
        });
    }
    check::non_negative(&spec["terminationGracePeriodSeconds"], &path.child("terminationGracePeriodSeconds"), errors);
    for list in ["containers", "initContainers"] {
        each(&spec[list], &path.child(list), |container, path| containers::only_for_pod(container, path, errors));
    }
}

/// A template of pods.
pub(crate) fn template(template: &Value, path: &Path, errors: &mut Errors) {
    // Upstream names the fields as if they stood in the template itself.
    meta::validate_template(&template["metadata"], path, errors);
    pod_spec(&template["spec"], Holder::Template, &path.child("spec"), errors);
    forbid_if(
        !is_empty(&template["spec"]["ephemeralContainers"]),
        "ephemeral containers not allowed in pod template",
        &path.child("spec").child("ephemeralContainers"),
        errors,
    );
}

/// The spec of a pod or of a template.
fn pod_spec(spec: &Value, holder: Holder<'_>, path: &Path, errors: &mut Errors) {
    if spec["terminationGracePeriodSeconds"].is_null() {
        errors.push(FieldError::required(&path.child("terminationGracePeriodSeconds"), ""));
    }
    let volumes = volumes::volumes(&spec["volumes"], holder, &path.child("volumes"), errors);
    resource_claims(&spec["resourceClaims"], &path.child("resourceClaims"), errors);
    let context = containers::Context::new(spec, &volumes);
    containers::containers(&context, &path.child("containers"), errors);
    containers::init_containers(&context, &path.child("initContainers"), errors);
    containers::ephemeral_containers(&context, &path.child("ephemeralContainers"), errors);
    if is_set(&spec["resources"]) {
        resources::pod_resources(spec, &path.child("resources"), errors);
    }
    host_network_ports(spec, holder, path, errors);
    one_of(&spec["restartPolicy"], &["Always", "OnFailure", "Never"], &path.child("restartPolicy"), errors);
    one_of(
        &spec["dnsPolicy"],
        &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
        &path.child("dnsPolicy"),
        errors,
    );
    check::labels(&spec["nodeSelector"], &path.child("nodeSelector"), errors);
    security::pod(spec, &path.child("securityContext"), errors);
    if flag(&spec["shareProcessNamespace"]) && flag(&spec["hostPID"]) {
        errors.push(FieldError::invalid(
            &path.child("shareProcessNamespace"),
            true,
            "ShareProcessNamespace and HostPID cannot both be enabled",
        ));
    }
    affinity::affinity(&spec["affinity"], &path.child("affinity"), errors);
    dns_config(spec, &path.child("dnsConfig"), errors);
    gates(spec, path, errors);
    affinity::spread_constraints(&spec["topologySpreadConstraints"], &path.child("topologySpreadConstraints"), errors);
    security::host_users(spec, path, errors);
    hostname_override(spec, path, errors);
    names(spec, path, errors);
    tolerations(&spec["tolerations"], &path.child("tolerations"), errors);
    host_aliases(&spec["hostAliases"], &path.child("hostAliases"), errors);
    classes(spec, path, errors);
}

fn names(spec: &Value, path: &Path, errors: &mut Errors) {
    let mut check = |field: &str, rule: fn(&str) -> Vec<String>| {
        let name = text(&spec[field]);
        if !name.is_empty() {
            problems(name, rule(name), &path.child(field), errors);
        }
    };
    check("serviceAccountName", dns1123_subdomain);
    check("nodeName", dns1123_subdomain);
    if let Some(seconds) = spec["activeDeadlineSeconds"].as_i64() {
        check::in_range(seconds, 1, i64::from(i32::MAX), &path.child("activeDeadlineSeconds"), errors);
    }
    let mut check = |field: &str| {
        let name = text(&spec[field]);
        if !name.is_empty() {
            problems(name, dns1123_label(name), &path.child(field), errors);
        }
    };
    check("hostname");
    check("subdomain");
}

fn classes(spec: &Value, path: &Path, errors: &mut Errors) {
    let class = text(&spec["priorityClassName"]);
    if !class.is_empty() {
        problems(class, dns1123_subdomain(class), &path.child("priorityClassName"), errors);
    }
    if let Some(class) = spec["runtimeClassName"].as_str() {
        problems(class, dns1123_subdomain(class), &path.child("runtimeClassName"), errors);
    }
    if is_set(&spec["preemptionPolicy"]) {
        let policies = &["PreemptLowerPriority", "Never"];
        one_of(&spec["preemptionPolicy"], policies, &path.child("preemptionPolicy"), errors);
    }
    if is_set(&spec["overhead"]) {
        resources::overhead(&spec["overhead"], &path.child("overhead"), errors);
    }
    if is_set(&spec["os"]) {
        match text(&spec["os"]["name"]) {
            "" => errors.push(FieldError::required(&path.child("os").child("name"), "")),
            "linux" | "windows" => {}
            other => errors.push(FieldError::not_supported(&path.child("os"), other, &["linux", "windows"])),
        }
    }
}

fn resource_claims(claims: &Value, path: &Path, errors: &mut Errors) {
    let mut seen = Vec::new();
    each(claims, path, |claim, path| {
        let name = text(&claim["name"]);
        if name.is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        } else if seen.contains(&name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        } else {
            problems(name, dns1123_label(name), &path.child("name"), errors);
            seen.push(name);
        }
        let sources = ["resourceClaimName", "resourceClaimTemplateName"];
        match sources.iter().filter(|source| is_set(&claim[**source])).count() {
            0 => errors.push(FieldError::invalid(
                path,
                claim.clone(),
                "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
            )),
            1 => {}
            _ => errors.push(FieldError::invalid(
                path,
                claim.clone(),
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
            )),
        }
    });
}

fn host_network_ports(spec: &Value, holder: Holder<'_>, path: &Path, errors: &mut Errors) {
    if !flag(&spec["hostNetwork"]) {
        return;
    }
    each(&spec["containers"], &path.child("containers"), |container, path| {
        each(&container["ports"], &path.child("ports"), |port, path| {
            let host = number(&port["hostPort"]);
            let own = number(&port["containerPort"]);
            if (holder != Holder::Template || host != 0) && host != own {
                errors.push(FieldError::invalid(
                    &path.child("hostPort"),
                    host,
                    "must match `containerPort` when `hostNetwork` is true",
                ));
            }
        });
    });
}

fn dns_config(spec: &Value, path: &Path, errors: &mut Errors) {
    const NAMESERVERS_MAX: usize = 3;
    const SEARCHES_MAX: usize = 32;
    const SEARCH_LIST_LENGTH_MAX: usize = 2048;
    let config = &spec["dnsConfig"];
    if text(&spec["dnsPolicy"]) == "None" {
        if config.is_null() {
            errors.push(FieldError::required(path, "must provide `dnsConfig` when `dnsPolicy` is None"));
            return;
        }
        if is_empty(&config["nameservers"]) {
            errors.push(FieldError::required(
                &path.child("nameservers"),
                "must provide at least one DNS nameserver when `dnsPolicy` is None",
            ));
            return;
        }
    }
    let servers = path.child("nameservers");
    if items(&config["nameservers"]).len() > NAMESERVERS_MAX {
        let detail = format!("must not have more than {NAMESERVERS_MAX} nameservers");
        errors.push(FieldError::invalid(&servers, config["nameservers"].clone(), detail));
    }
    each(&config["nameservers"], &servers, |server, path| check::legacy_ip(text(server), &[], path, errors));
    let searches = path.child("searches");
    let list: Vec<_> = items(&config["searches"]).iter().map(text).collect();
    if list.len() > SEARCHES_MAX {
        let detail = format!("must not have more than {SEARCHES_MAX} search paths");
        errors.push(FieldError::invalid(&searches, config["searches"].clone(), detail));
    }
    if list.join(" ").len() > SEARCH_LIST_LENGTH_MAX {
        let detail = format!(
            "must not have more than {SEARCH_LIST_LENGTH_MAX} characters (including spaces) in the search list"
        );
        errors.push(FieldError::invalid(&searches, config["searches"].clone(), detail));
    }
    for (index, search) in list.iter().enumerate().filter(|(_, search)| **search != ".") {
        let search = search.strip_suffix('.').unwrap_or(search);
        problems(search, check::subdomain_with_underscore(search), &searches.index(index), errors);
    }
    each(&config["options"], &path.child("options"), |option, path| {
        if is_empty(&option["name"]) {
            errors.push(FieldError::required(path, "must not be empty"));
        }
    });
}

fn gates(spec: &Value, path: &Path, errors: &mut Errors) {
    each(&spec["readinessGates"], &path.child("readinessGates"), |gate, path| {
        let name = text(&gate["conditionType"]);
        problems(name, qualified_name(name), &path.child("conditionType"), errors);
    });
    let mut seen = Vec::new();
    each(&spec["schedulingGates"], &path.child("schedulingGates"), |gate, path| {
        let name = text(&gate["name"]);
        problems(name, qualified_name(name), path, errors);
        if seen.contains(&name) {
            errors.push(FieldError::duplicate(path, name));
        }
        seen.push(name);
    });
}

fn hostname_override(spec: &Value, path: &Path, errors: &mut Errors) {
    const LENGTH_MAX: usize = 64;
    let Some(name) = spec["hostnameOverride"].as_str() else { return };
    let at = path.child("hostnameOverride");
    forbid_if(flag(&spec["setHostnameAsFQDN"]), "may not be specified when setHostnameAsFQDN is true", &at, errors);
    forbid_if(flag(&spec["hostNetwork"]), "may not be specified when hostNetwork is true", &at, errors);
    if name.len() > LENGTH_MAX {
        errors.push(FieldError::too_long(&at, LENGTH_MAX));
    }
    problems(name, dns1123_subdomain(name), &at, errors);
}

fn host_aliases(aliases: &Value, path: &Path, errors: &mut Errors) {
    each(aliases, path, |alias, path| {
        check::legacy_ip(text(&alias["ip"]), &[], &path.child("ip"), errors);
        each(&alias["hostnames"], &path.child("hostnames"), |name, path| {
            problems(text(name), dns1123_subdomain(text(name)), path, errors);
        });
    });
}

/// Tolerations: `ValidateTolerations`.
pub(crate) fn tolerations(tolerations: &Value, path: &Path, errors: &mut Errors) {
    each(tolerations, path, |toleration, path| {
        let key = text(&toleration["key"]);
        let operator = text(&toleration["operator"]);
        let value = text(&toleration["value"]);
        let effect = text(&toleration["effect"]);
        if !key.is_empty() {
            problems(key, qualified_name(key), &path.child("key"), errors);
        } else if operator != "Exists" {
            errors.push(FieldError::invalid(
                &path.child("operator"),
                operator,
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
            ));
        }
        if is_set(&toleration["tolerationSeconds"]) && effect != "NoExecute" {
            errors.push(FieldError::invalid(
                &path.child("effect"),
                effect,
                "effect must be 'NoExecute' when `tolerationSeconds` is set",
            ));
        }
        let at = path.child("operator");
        match operator {
            "" | "Equal" => {
                let wrong = label_value(value);
                if !wrong.is_empty() {
                    errors.push(FieldError::invalid(&at, value, wrong.join(";")));
                }
            }
            "Exists" if value.is_empty() => {}
            "Exists" => {
                errors.push(FieldError::invalid(&at, value, "value must be empty when `operator` is 'Exists'"));
            }
            "Lt" | "Gt" => {
                errors.push(FieldError::not_supported(&at, operator, &["Equal", "Exists", "Lt", "Gt"]));
            }
            _ => errors.push(FieldError::not_supported(&at, operator, &["Equal", "Exists"])),
        }
        if !effect.is_empty() {
            taint_effect(effect, &path.child("effect"), errors);
        }
    });
}

/// Checks the effect of a taint: `validateTaintEffect`.
pub(crate) fn taint_effect(effect: &str, path: &Path, errors: &mut Errors) {
    const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];
    if !EFFECTS.contains(&effect) {
        errors.push(FieldError::not_supported(path, effect, EFFECTS));
    }
}

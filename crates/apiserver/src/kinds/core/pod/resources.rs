//! What containers ask for: `validateResourceRequirements` of `pkg/apis/core/validation/validation.go`, and the names of
//! resources from `pkg/apis/core/helper/helpers.go`.

use serde_json::{Value, json};
use steersman_base::Quantity;
use steersman_base::validation::{dns1123_label, qualified_name};

use crate::field::{FieldError, Path};
use crate::kinds::shared::check::{self, Errors, problems};
use crate::kinds::shared::json::{each, entries, is_set, items, text};

const STANDARD: &[&str] = &[
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];
const CONTAINER: &[&str] = &["cpu", "memory", "ephemeral-storage"];
const INTEGER: &[&str] = &[
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

/// Whether the name is that of a resource that quotas limit: every standard one but the storage of a claim, which they
/// limit as `requests.storage`.
pub(crate) fn is_of_quotas(name: &str) -> bool {
    name != "storage" && STANDARD.contains(&name)
}

/// Checks the resources of a container.
pub(crate) fn container(requirements: &Value, claims: &Value, path: &Path, errors: &mut Errors) {
    requirements_of(requirements, container_name, path, errors);
    claim_names(&requirements["claims"], claims, &path.child("claims"), errors);
}

/// Checks the resources of a pod as a whole.
pub(crate) fn pod_resources(spec: &Value, path: &Path, errors: &mut Errors) {
    if text(&spec["os"]["name"]) == "windows" {
        errors.push(FieldError::forbidden(path, "may not be set for a windows pod"));
        return;
    }
    let resources = &spec["resources"];
    if is_set(&resources["claims"]) {
        let detail = "claims may not be set for Resources at pod-level";
        errors.push(FieldError::forbidden(&path.child("claims"), detail));
    }
    requirements_of(resources, pod_name, path, errors);
}

/// Checks the overhead of running a pod; upstream checks it as if it were a container's limits.
pub(crate) fn overhead(amounts: &Value, path: &Path, errors: &mut Errors) {
    requirements_of(&json!({ "limits": amounts }), container_name, path, errors);
}

fn requirements_of(requirements: &Value, name_rule: fn(&str, &Path, &mut Errors), path: &Path, errors: &mut Errors) {
    let limits = &requirements["limits"];
    let requests = &requirements["requests"];
    let limits_path = path.child("limits");
    let requests_path = path.child("requests");
    for (name, amount) in entries(limits) {
        let at = limits_path.key(name);
        name_rule(name, &at, errors);
        amount_of(name, amount, &at, errors);
    }
    for (name, amount) in entries(requests) {
        let at = requests_path.key(name);
        name_rule(name, &at, errors);
        amount_of(name, amount, &at, errors);
        match limits.get(name) {
            Some(limit) => within(name, amount, limit, &requests_path, errors),
            None if !can_overcommit(name) => {
                errors.push(FieldError::required(&limits_path, "Limit must be set for non overcommitable resources"));
            }
            None => {}
        }
    }
    let has = |of: fn(&str) -> bool| [limits, requests].iter().any(|list| entries(list).iter().any(|it| of(it.0)));
    if has(is_huge_page) && !has(|name| matches!(name, "cpu" | "memory")) {
        errors.push(FieldError::forbidden(path, "HugePages require cpu or memory"));
    }
}

fn within(name: &str, request: &Value, limit: &Value, path: &Path, errors: &mut Errors) {
    let (Some(request), Some(limit)) = (check::quantity(request), check::quantity(limit)) else { return };
    if request != limit && !can_overcommit(name) {
        let detail = format!("must be equal to {name} limit of {limit}");
        errors.push(FieldError::invalid(path, request.to_string(), detail));
    } else if request > limit {
        let detail = format!("must be less than or equal to {name} limit of {limit}");
        errors.push(FieldError::invalid(path, request.to_string(), detail));
    }
}

/// An amount must not be negative, and whole if it counts things: `ValidateResourceQuantityValue`.
pub(crate) fn amount_of(name: &str, amount: &Value, path: &Path, errors: &mut Errors) {
    check::non_negative_quantity(amount, path, errors);
    let Some(quantity) = check::quantity(amount) else { return };
    if (INTEGER.contains(&name) || is_extended(name)) && quantity.milli_value() % 1000 != 0 {
        errors.push(FieldError::invalid(path, quantity.to_string(), "must be an integer"));
    }
}

/// A resource that is known or has a domain: `validateResourceName`.
pub(crate) fn name(name: &str, path: &Path, errors: &mut Errors) -> bool {
    let wrong = qualified_name(name);
    if !wrong.is_empty() {
        problems(name, wrong, path, errors);
        return false;
    }
    if !name.contains('/') && !STANDARD.contains(&name) && !is_huge_page(name) && !is_quota_of_huge_pages(name) {
        errors.push(FieldError::invalid(path, name, "must be a standard resource type or fully qualified"));
        return false;
    }
    true
}

pub(crate) fn container_name(value: &str, path: &Path, errors: &mut Errors) {
    name(value, path, errors);
    if !value.contains('/') {
        if !CONTAINER.contains(&value) && !is_huge_page(value) {
            errors.push(FieldError::invalid(path, value, "must be a standard resource for containers"));
        }
    } else if !is_native(value) && !is_extended(value) {
        errors.push(FieldError::invalid(path, value, "doesn't follow extended resource name standard"));
    }
}

fn pod_name(value: &str, path: &Path, errors: &mut Errors) {
    name(value, path, errors);
    if !matches!(value, "cpu" | "memory") && !is_huge_page(value) {
        errors.push(FieldError::not_supported(path, value, &["cpu", "hugepages-", "memory"]));
    }
}

fn claim_names(claims: &Value, of_pod: &Value, path: &Path, errors: &mut Errors) {
    let mut known: Vec<_> = items(of_pod).iter().map(|claim| text(&claim["name"])).collect();
    known.sort_unstable();
    let mut seen = Vec::new();
    each(claims, path, |claim, path| {
        let name = text(&claim["name"]);
        let request = text(&claim["request"]);
        if name.is_empty() {
            errors.push(FieldError::required(path, ""));
            return;
        }
        if !request.is_empty() {
            problems(request, dns1123_label(request), &path.child("request"), errors);
        }
        let overlaps =
            |seen: &(&str, &str)| seen.0 == name && (seen.1 == request || seen.1.is_empty() || request.is_empty());
        if seen.iter().any(overlaps) {
            errors.push(FieldError::duplicate(path, name));
        }
        seen.push((name, request));
        if !known.contains(&name) {
            let mut error = FieldError::not_found(path, name);
            error.detail = match known.is_empty() {
                true => "must be one of the names in pod.spec.resourceClaims which is empty".to_owned(),
                false => format!("must be one of the names in pod.spec.resourceClaims: {}", known.join(", ")),
            };
            errors.push(error);
        }
    });
}

fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

fn is_quota_of_huge_pages(name: &str) -> bool {
    name.starts_with("requests.hugepages-") || name.starts_with("limits.hugepages-")
}

/// Whether a resource is one of Kubernetes' own.
pub(crate) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn is_extended(name: &str) -> bool {
    !is_native(name) && !name.starts_with("requests.") && qualified_name(&format!("requests.{name}")).is_empty()
}

fn can_overcommit(name: &str) -> bool {
    is_native(name) && !is_huge_page(name)
}

/// The larger of two amounts, if both can be read.
pub(crate) fn exceeds(value: &Value, bound: &Value) -> Option<(Quantity, Quantity)> {
    let value = check::quantity(value)?;
    let bound = check::quantity(bound)?;
    (value > bound).then_some((value, bound))
}

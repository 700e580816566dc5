//! ResourceQuotas and LimitRanges: `ValidateResourceQuota` and `ValidateLimitRange` of
//! `pkg/apis/core/validation/validation.go`.

use std::collections::BTreeSet;

use serde_json::Value;
use steersman_base::validation::qualified_name;

use crate::field::{FieldError, Path};
use crate::kinds::check::{self, Errors, forbid_if, problems};
use crate::kinds::json::{default_to, each, each_mut, entries, is_empty, items, object_mut, text, with};
use crate::kinds::pod::resources::{self, amount_of, exceeds};
use crate::kinds::{NameRule, Rules};

pub(super) static RESOURCE_QUOTA: Rules = Rules::named(NameRule::Subdomain).validated(|new, old, errors| {
    let path = Path::new("spec");
    let spec = &new["spec"];
    hard(&spec["hard"], &path.child("hard"), errors);
    scopes(spec, &path, errors);
    if let Some(old) = old {
        let sorted =
            |spec: &Value| items(&spec["scopes"]).iter().map(|it| text(it).to_owned()).collect::<BTreeSet<_>>();
        if sorted(spec) != sorted(&old["spec"]) {
            errors.push(FieldError::invalid(&path.child("scopes"), spec["scopes"].clone(), check::IMMUTABLE));
        }
    }
});

pub(super) static LIMIT_RANGE: Rules =
    Rules::named(NameRule::Subdomain).defaulted(limit_defaults).validated(|new, _, errors| {
        let path = Path::new("spec").child("limits");
        let limits = items(&new["spec"]["limits"]);
        for (index, limit) in limits.iter().enumerate() {
            let path = path.index(index);
            limit_type(&limit["type"], &path.child("type"), errors);
            if limits[..index].iter().any(|other| other["type"] == limit["type"]) {
                errors.push(FieldError::duplicate(&path.child("type"), limit["type"].clone()));
            }
            limit_of(limit, &path, errors);
        }
    });

fn hard(hard: &Value, path: &Path, errors: &mut Errors) {
    const QUOTA: &[&str] = &[
        "cpu",
        "memory",
        "ephemeral-storage",
        "requests.cpu",
        "requests.memory",
        "requests.storage",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "persistentvolumeclaims",
        "configmaps",
        "services.nodeports",
        "services.loadbalancers",
    ];
    for (name, amount) in entries(hard) {
        let path = path.key(name);
        resources::name(name, &path, errors);
        let pages = ["hugepages-", "requests.hugepages-"].iter().any(|prefix| name.starts_with(prefix));
        if !name.contains('/') && !QUOTA.contains(&name) && !pages {
            errors.push(FieldError::invalid(&path, name, "must be a standard resource for quota"));
        }
        amount_of(name, amount, &path, errors);
    }
}

fn scopes(spec: &Value, path: &Path, errors: &mut Errors) {
    const SCOPES: &[&str] = &[
        "Terminating",
        "NotTerminating",
        "BestEffort",
        "NotBestEffort",
        "PriorityClass",
        "CrossNamespacePodAffinity",
        "VolumeAttributesClass",
    ];
    let (scopes, at) = (&spec["scopes"], path.child("scopes"));
    let mut invalid = |detail: &str| errors.push(FieldError::invalid(&at, scopes.clone(), detail));
    for scope in items(scopes).iter().map(text) {
        if !SCOPES.contains(&scope) {
            invalid("unsupported scope");
        }
        let fits = |name: &str| match scope {
            "BestEffort" => name == "pods",
            "VolumeAttributesClass" => matches!(name, "persistentvolumeclaims" | "requests.storage"),
            _ => {
                matches!(name, "pods" | "cpu" | "memory" | "ephemeral-storage")
                    || name.starts_with("requests.")
                    || name.starts_with("limits.")
            }
        };
        for (name, _) in entries(&spec["hard"]).into_iter().filter(|(name, _)| !name.contains('/')) {
            if !fits(name) {
                invalid("unsupported scope applied to resource");
            }
        }
    }
    let has = |scope: &str| items(scopes).iter().any(|it| text(it) == scope);
    if (has("BestEffort") && has("NotBestEffort")) || (has("Terminating") && has("NotTerminating")) {
        invalid("conflicting scopes");
    }
    let at = path.child("scopeSelector").child("matchExpressions");
    each(&spec["scopeSelector"]["matchExpressions"], &at, |expression, _| {
        let (scope, operator) = (text(&expression["scopeName"]), text(&expression["operator"]));
        if !SCOPES.contains(&scope) {
            errors.push(FieldError::invalid(&at.child("scopeName"), scope, "unsupported scope"));
        }
        let needs_exists = matches!(scope, "Terminating" | "NotTerminating" | "BestEffort" | "NotBestEffort");
        if needs_exists && operator != "Exists" {
            let detail = "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, \
                          ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
                          ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
            errors.push(FieldError::invalid(&at.child("operator"), operator, detail));
        }
        match operator {
            "In" | "NotIn" if is_empty(&expression["values"]) => errors.push(FieldError::required(
                &at.child("values"),
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
            )),
            "Exists" | "DoesNotExist" if !is_empty(&expression["values"]) => errors.push(FieldError::invalid(
                &at.child("values"),
                expression["values"].clone(),
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
            )),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                errors.push(FieldError::invalid(&at.child("operator"), other, "not a valid selector operator"));
            }
        }
    });
}

/// What a container's limits leave open: the default follows the maximum, the default request the default.
fn limit_defaults(object: &mut Value) {
    let Some(spec) = object_mut(object, "spec") else { return };
    each_mut(spec, "limits", |limit| {
        if text(&limit["type"]) != "Container" {
            return;
        }
        for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
            let amounts = limit[from].clone();
            if is_empty(&amounts) {
                continue;
            }
            with(limit, to, |values| {
                for (name, amount) in entries(&amounts) {
                    default_to(values, name, amount.clone());
                }
            });
        }
    });
}

fn limit_type(value: &Value, path: &Path, errors: &mut Errors) {
    let name = text(value);
    let wrong = qualified_name(name);
    if !wrong.is_empty() {
        problems(name, wrong, path, errors);
    } else if !name.contains('/') && !matches!(name, "Pod" | "Container" | "PersistentVolumeClaim") {
        errors.push(FieldError::invalid(path, name, "must be a standard limit type or fully qualified"));
    }
}

fn limit_of(limit: &Value, path: &Path, errors: &mut Errors) {
    const LISTS: &[&str] = &["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"];
    let mut names = BTreeSet::new();
    let is_pod = text(&limit["type"]) == "Pod";
    for list in LISTS {
        let of_pod = is_pod && matches!(*list, "default" | "defaultRequest");
        forbid_if(
            of_pod && !is_empty(&limit[*list]),
            "may not be specified when `type` is 'Pod'",
            &path.child(list),
            errors,
        );
        for (name, _) in entries(&limit[*list]).into_iter().filter(|_| !of_pod) {
            resources::name(name, &path.child(list).key(name), errors);
            names.insert(name);
        }
    }
    let is_claim = text(&limit["type"]) == "PersistentVolumeClaim";
    if is_claim && limit["min"]["storage"].is_null() && limit["max"]["storage"].is_null() {
        let detail = "either minimum or maximum storage value is required, but neither was provided";
        errors.push(FieldError::required(&path.child("limits"), detail));
    }
    // Which list must not exceed which, where that is reported, which value is shown, and what the two are called.
    const ORDER: &[(&str, &str, &str, &str, &str, &str)] = &[
        ("min", "max", "min", "min", "min value", "max value"),
        ("min", "defaultRequest", "defaultRequest", "defaultRequest", "min value", "default request value"),
        ("defaultRequest", "max", "defaultRequest", "defaultRequest", "default request value", "max value"),
        (
            "defaultRequest",
            "default",
            "defaultRequest",
            "defaultRequest",
            "default request value",
            "default limit value",
        ),
        ("min", "default", "default", "min", "min value", "default value"),
        ("default", "max", "default", "max", "default value", "max value"),
    ];
    for name in names {
        for (low, high, at, shown, low_name, high_name) in ORDER {
            if let Some((low, high)) = exceeds(&limit[*low][name], &limit[*high][name]) {
                let detail = format!("{low_name} {low} is greater than {high_name} {high}");
                let shown = limit[*shown][name].clone();
                errors.push(FieldError::invalid(&path.child(at).key(name), shown, detail));
            }
        }
        let ratio = &limit["maxLimitRequestRatio"][name];
        if let Some(quantity) = check::quantity(ratio).filter(|ratio| ratio.milli_value() < 1000) {
            let detail = format!("ratio {quantity} is less than 1");
            let path = path.child("maxLimitRequestRatio").key(name);
            errors.push(FieldError::invalid(&path, ratio.clone(), detail));
        }
        let bounds = (check::quantity(&limit["min"][name]), check::quantity(&limit["max"][name]));
        if let (Some(quantity), (Some(min), Some(max))) = (check::quantity(ratio), bounds) {
            let most = max.to_f64() / min.to_f64();
            if quantity.to_f64() > most {
                let detail = format!("ratio {quantity} is greater than max/min = {most:.6}");
                let path = path.child("maxLimitRequestRatio").key(name);
                errors.push(FieldError::invalid(&path, ratio.clone(), detail));
            }
        }
    }
}

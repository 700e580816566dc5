//! ResourceQuotas: `ValidateResourceQuota` of `pkg/apis/core/validation/validation.go`. The plug-in
//! `registry/admission/quota` enforces them.

use serde_json::Value;
use std::collections::BTreeSet;

use crate::field::{Errors, FieldError, Path};
use crate::kinds::core::pod::resources::{self, amount_of};
use crate::kinds::shared::check;
use crate::kinds::shared::json::{each, entries, is_empty, items, text};
use crate::kinds::shared::meta::validate_meta_update;
use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::Strategy;
use crate::table::{Cell, TableRow};

/// The rules of ResourceQuotas.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .validated(|new, old, errors| {
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
    })
    .status_validated(|new, old, errors| {
        validate_meta_update(new, old, errors);
        let path = Path::new("status");
        for list in ["hard", "used"] {
            for (name, amount) in entries(&new["status"][list]) {
                amount_of(name, amount, &path.child(list).key(name), errors);
            }
        }
    })
    .with_strategy(Strategy::RETURNS_DELETED)
    .printed(&[Cell::Name, Cell::Made(|row| amounts(row, false)), Cell::Made(|row| amounts(row, true)), Cell::Age]);

fn hard(hard: &Value, path: &Path, errors: &mut Errors) {
    for (name, amount) in entries(hard) {
        let path = path.key(name);
        resources::name(name, &path, errors);
        let pages = ["hugepages-", "requests.hugepages-"].iter().any(|prefix| name.starts_with(prefix));
        if !name.contains('/') && !resources::is_of_quotas(name) && !pages {
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
    let scopes = &spec["scopes"];
    let at = path.child("scopes");
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
        let scope = text(&expression["scopeName"]);
        let operator = text(&expression["operator"]);
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

/// Used and hard amounts, limits apart from all others: `pods: 1/10, requests.cpu: 0/2`.
fn amounts(row: &TableRow<'_>, limits: bool) -> String {
    let hard = row.at("/status/hard").and_then(Value::as_object).into_iter().flatten();
    let used = row.at("/status/used");
    let amounts: Vec<String> = hard
        .filter(|(resource, _)| resource.starts_with("limits.") == limits)
        .map(|(resource, hard)| {
            let used = used.and_then(|used| used.get(resource)).and_then(Value::as_str).unwrap_or("0");
            format!("{resource}: {used}/{}", hard.as_str().unwrap_or("0"))
        })
        .collect();
    amounts.join(", ")
}

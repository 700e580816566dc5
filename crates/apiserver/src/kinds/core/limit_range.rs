//! LimitRanges. Follows `pkg/apis/core/v1/defaults.go` and `ValidateLimitRange` of `pkg/apis/core/validation/validation.go`.

use serde_json::Value;
use std::collections::BTreeSet;
use steersman_base::validation::qualified_name;

use crate::field::{Errors, FieldError, Path};
use crate::kinds::core::pod::resources::{self, exceeds};
use crate::kinds::shared::check::{self, forbid_if, problems};
use crate::kinds::shared::json::{default_to, each_mut, entries, is_empty, items, object_mut, text, with};
use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::Strategy;

/// The rules of LimitRanges.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .defaulted(limit_defaults)
    .validated(|new, _, errors| {
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
    })
    .with_strategy(Strategy { create_on_update: true, defaults_name: true, ..Strategy::DEFAULT });

/// Sets the defaults of a container's limits: the default follows the maximum, the default request the default.
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

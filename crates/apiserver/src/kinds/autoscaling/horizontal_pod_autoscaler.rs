//! HorizontalPodAutoscalers of both versions. Follows `pkg/apis/autoscaling/v2/defaults.go`, `v1/conversion.go` and
//! `pkg/apis/autoscaling/validation/validation.go`.

mod table;
mod v1;

use serde_json::{Map, Value, json};
use steersman_base::validation::{dns1123_label, path_segment};

use crate::field::{Errors, FieldError, Path};
use crate::kinds::core::pod::resources::container_name;
use crate::kinds::shared::check::{self, forbid_if, one_of_if_set, problems};
use crate::kinds::shared::json::{default_to, each, is_empty, is_set, items, number, object_mut, set, text, with};
use crate::kinds::shared::meta::validate_meta_update;
use crate::kinds::{NameRule, Rules, StoredAs};
use crate::registry::strategy::Strategy;
use crate::table::Cell;
use std::borrow::Cow;

/// The rules of HorizontalPodAutoscalers.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .defaulted(default)
    .prepared(|new, old| {
        if v1::is_v1(new) {
            v1::keep_status(new, old);
        }
    })
    .validated(|new, old, errors| {
        // Upstream checks the form in which both versions are kept, and names its fields.
        let new = if v1::is_v1(new) { Cow::Owned(v1::stored(new)) } else { Cow::Borrowed(new) };
        spec(&new["spec"], old.map(|old| &old["spec"]), &Path::new("spec"), errors);
    })
    .status_prepared(|new, old, _| {
        if v1::is_v1(new) {
            v1::keep_spec(new, old);
        }
    })
    .status_validated(|new, old, errors| {
        validate_meta_update(new, old, errors);
        for field in ["currentReplicas", "desiredReplicas"] {
            check::non_negative(&new["status"][field], &Path::new("status").child(field), errors);
        }
    })
    .with_strategy(Strategy::GENERATION)
    .stored_as(StoredAs {
        group: "autoscaling",
        version: "v2",
        to_storage: |object| on_value(object, v1::to_storage),
        to_version: |object| on_value(object, v1::to_version),
        field: |field| Some(Cow::Borrowed(field)),
    })
    .printed(&[
        Cell::Name,
        Cell::Made(|row| {
            format!("{}/{}", row.text("/spec/scaleTargetRef/kind"), row.text("/spec/scaleTargetRef/name"))
        }),
        Cell::Made(table::metrics),
        Cell::Made(|row| row.at("/spec/minReplicas").map_or_else(|| "<unset>".to_owned(), Value::to_string)),
        Cell::Int("/spec/maxReplicas"),
        Cell::Int("/status/currentReplicas"),
        Cell::Age,
    ]);

const CPU_UTILIZATION: i64 = 80;

const WINDOW_SECONDS_MAX: i64 = 3600;

const PERIOD_SECONDS_MAX: i64 = 1800;

/// Changes the fields of an object with a function of values.
fn on_value(fields: &mut Map<String, Value>, change: fn(&mut Value)) {
    let mut object = Value::Object(std::mem::take(fields));
    change(&mut object);
    if let Value::Object(changed) = object {
        *fields = changed;
    }
}

fn default(object: &mut Value) {
    with(object, "spec", |spec| default_to(spec, "minReplicas", 1));
    if v1::is_v1(object) {
        v1::default(object);
        return;
    }
    v1::drop_annotations(object);
    with(object, "spec", |spec| {
        if is_empty(&spec["metrics"]) {
            let target = json!({"type": "Utilization", "averageUtilization": CPU_UTILIZATION});
            set(spec, "metrics", json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]));
        }
        if let Some(behavior) = object_mut(spec, "behavior") {
            let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
            let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
            with(behavior, "scaleUp", |rules| {
                default_to(rules, "stabilizationWindowSeconds", 0);
                default_to(rules, "selectPolicy", "Max");
                default_to(rules, "policies", json!([pods, percent]));
            });
            with(behavior, "scaleDown", |rules| {
                default_to(rules, "selectPolicy", "Max");
                default_to(rules, "policies", json!([percent]));
            });
        }
    });
}

/// Whether two references have the same kind and version: what was taken once is not looked at again.
fn is_same_kind(new: &Value, old: &Value) -> bool {
    ["apiVersion", "kind"].iter().all(|field| text(&new[field]) == text(&old[field]))
}

/// Checks the version of a target. It has a group, except for ReplicationControllers, the only kind of the core group
/// that can be scaled.
fn target_version(target: &Value, path: &Path, errors: &mut Errors) {
    let version = text(&target["apiVersion"]);
    let problem = match version.split('/').collect::<Vec<_>>()[..] {
        [_] | ["", _] if text(&target["kind"]) != "ReplicationController" => {
            "apiVersion must specify API group".to_owned()
        }
        [_] | [_, _] => return,
        _ => format!("unexpected GroupVersion string: {version}"),
    };
    errors.push(FieldError::invalid(path, version, problem));
}

fn spec(spec: &Value, old: Option<&Value>, path: &Path, errors: &mut Errors) {
    let min = spec["minReplicas"].as_i64();
    let max = number(&spec["maxReplicas"]);
    let at = path.child("maxReplicas");
    if min.is_some_and(|min| max < min) {
        errors.push(FieldError::invalid(&at, max, "must be greater than or equal to `minReplicas`"));
    }
    let target = &spec["scaleTargetRef"];
    reference(target, &path.child("scaleTargetRef"), errors);
    if !old.is_some_and(|old| is_same_kind(target, &old["scaleTargetRef"])) {
        target_version(target, &path.child("scaleTargetRef").child("apiVersion"), errors);
    }
    each(&spec["metrics"], &path.child("metrics"), |it, path| metric(it, path, errors));
    let of_objects = |it: &Value| matches!(text(&it["type"]), "Object" | "External");
    forbid_if(
        min == Some(0) && !items(&spec["metrics"]).iter().any(of_objects),
        "must specify at least one Object or External metric to support scaling to zero replicas",
        &path.child("metrics"),
        errors,
    );
    for direction in ["scaleUp", "scaleDown"] {
        let rules = &spec["behavior"][direction];
        if is_set(rules) {
            scaling_rules(rules, &path.child("behavior").child(direction), errors);
        }
    }
    // Checked declaratively upstream, after what is checked by hand.
    check::non_negative(&spec["minReplicas"], &path.child("minReplicas"), errors);
    if max == 0 {
        errors.push(FieldError::required(&at, ""));
    } else if max < 0 {
        errors.push(FieldError::invalid(&at, max, "must be greater than or equal to 1"));
    }
}

fn metric(metric: &Value, path: &Path, errors: &mut Errors) {
    const TYPES: &[&str] = &["ContainerResource", "External", "Object", "Pods", "Resource"];
    const SOURCES: &[(&str, &str)] = &[
        ("Object", "object"),
        ("External", "external"),
        ("Pods", "pods"),
        ("Resource", "resource"),
        ("ContainerResource", "containerResource"),
    ];
    let kind = text(&metric["type"]);
    if kind.is_empty() {
        errors.push(FieldError::required(&path.child("type"), "must specify a metric source type"));
    }
    if !TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(&path.child("type"), kind, TYPES));
    }
    let there: Vec<_> = SOURCES.iter().filter(|(_, field)| is_set(&metric[*field])).collect();
    if let Some((_, field)) = there.first() {
        source(field, &metric[*field], &path.child(field), errors);
    }
    match SOURCES.iter().find(|(name, _)| *name == kind) {
        Some((_, field)) if !is_set(&metric[*field]) => {
            let detail = "must populate information for the given metric source";
            errors.push(FieldError::required(&path.child(field), detail));
        }
        Some(_) => {}
        None => errors.push(FieldError::not_supported(&path.child("type"), kind, TYPES)),
    }
    if there.len() != 1 {
        for (_, field) in there.iter().filter(|(name, _)| *name != kind) {
            let detail = "must populate the given metric source only";
            errors.push(FieldError::forbidden(&path.child(field), detail));
        }
    }
}

fn source(kind: &str, source: &Value, path: &Path, errors: &mut Errors) {
    let target = &source["target"];
    let at = path.child("target");
    let has = |field: &str| is_set(&target[field]);
    match kind {
        "object" => reference(&source["describedObject"], &path.child("describedObject"), errors),
        "resource" | "containerResource" if is_empty(&source["name"]) => {
            errors.push(FieldError::required(&path.child("name"), "must specify a resource name"));
        }
        _ => {}
    }
    if kind == "containerResource" {
        let name = text(&source["name"]);
        let container = text(&source["container"]);
        if !name.is_empty() {
            container_name(name, &path.child("name"), errors);
        }
        if container.is_empty() {
            errors.push(FieldError::required(&path.child("container"), "must specify a container"));
        } else {
            problems(container, dns1123_label(container), &path.child("container"), errors);
        }
    }
    if matches!(kind, "object" | "external" | "pods") {
        let name = text(&source["metric"]["name"]);
        let at = path.child("metric").child("name");
        if name.is_empty() {
            errors.push(FieldError::required(&at, "must specify a metric name"));
        } else {
            problems(name, path_segment(name), &at, errors);
        }
    }
    metric_target(target, &at, errors);
    match kind {
        "object" if !has("value") && !has("averageValue") => {
            let detail = "must set either a target value or averageValue";
            errors.push(FieldError::required(&at.child("averageValue"), detail));
        }
        "external" if !has("value") && !has("averageValue") => {
            let detail = "must set either a target value for metric or a per-pod target";
            errors.push(FieldError::required(&at.child("averageValue"), detail));
        }
        "external" => forbid_if(
            has("value") && has("averageValue"),
            "may not set both a target value for metric and a per-pod target",
            &at.child("value"),
            errors,
        ),
        "pods" if !has("averageValue") => {
            let detail = "must specify a positive target averageValue";
            errors.push(FieldError::required(&at.child("averageValue"), detail));
        }
        "resource" | "containerResource" if !has("averageUtilization") && !has("averageValue") => {
            let detail = "must set either a target raw value or a target utilization";
            errors.push(FieldError::required(&at.child("averageUtilization"), detail));
        }
        "resource" | "containerResource" => forbid_if(
            has("averageUtilization") && has("averageValue"),
            "may not set both a target raw value and a target utilization",
            &at.child("averageValue"),
            errors,
        ),
        _ => {}
    }
}

fn metric_target(target: &Value, path: &Path, errors: &mut Errors) {
    const TYPES: &[&str] = &["Utilization", "Value", "AverageValue"];
    let kind = text(&target["type"]);
    if kind.is_empty() {
        errors.push(FieldError::required(&path.child("type"), "must specify a metric target type"));
    }
    if !TYPES.contains(&kind) {
        let detail = "must be either Utilization, Value, or AverageValue";
        errors.push(FieldError::invalid(&path.child("type"), kind, detail));
    }
    for field in ["value", "averageValue"] {
        if let Some(quantity) = check::quantity(&target[field]).filter(|quantity| quantity.milli_value() <= 0) {
            errors.push(FieldError::invalid(&path.child(field), quantity.to_string(), "must be positive"));
        }
    }
    if target["averageUtilization"].as_i64().is_some_and(|utilization| utilization < 1) {
        let shown = target["averageUtilization"].clone();
        errors.push(FieldError::invalid(&path.child("averageUtilization"), shown, "must be greater than 0"));
    }
}

fn scaling_rules(rules: &Value, path: &Path, errors: &mut Errors) {
    let at = path.child("stabilizationWindowSeconds");
    if let Some(seconds) = rules["stabilizationWindowSeconds"].as_i64() {
        if seconds < 0 {
            errors.push(FieldError::invalid(&at, seconds, "must be greater than or equal to zero"));
        }
        if seconds > WINDOW_SECONDS_MAX {
            errors.push(FieldError::invalid(
                &at,
                seconds,
                format!("must be less than or equal to {WINDOW_SECONDS_MAX}"),
            ));
        }
    }
    one_of_if_set(&rules["selectPolicy"], &["Disabled", "Max", "Min"], &path.child("selectPolicy"), errors);
    let at = path.child("policies");
    if items(&rules["policies"]).is_empty() {
        errors.push(FieldError::required(&at, "must specify at least one Policy"));
    }
    each(&rules["policies"], &at, |policy, path| {
        if !matches!(text(&policy["type"]), "Pods" | "Percent") {
            let kind = text(&policy["type"]);
            errors.push(FieldError::not_supported(&path.child("type"), kind, &["Percent", "Pods"]));
        }
        for field in ["value", "periodSeconds"] {
            let value = number(&policy[field]);
            if value <= 0 {
                errors.push(FieldError::invalid(&path.child(field), value, "must be greater than zero"));
            }
        }
        let seconds = number(&policy["periodSeconds"]);
        if seconds > PERIOD_SECONDS_MAX {
            let detail = format!("must be less than or equal to {PERIOD_SECONDS_MAX}");
            errors.push(FieldError::invalid(&path.child("periodSeconds"), seconds, detail));
        }
    });
    check::non_negative_quantity(&rules["tolerance"], &path.child("tolerance"), errors);
}

/// A reference to an object of any version: `ValidateCrossVersionObjectReference`.
fn reference(reference: &Value, path: &Path, errors: &mut Errors) {
    for field in ["kind", "name"] {
        let value = text(&reference[field]);
        if value.is_empty() {
            errors.push(FieldError::required(&path.child(field), ""));
        } else {
            problems(value, path_segment(value), &path.child(field), errors);
        }
    }
}

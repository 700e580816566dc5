//! The first version of HorizontalPodAutoscalers, which has one metric, the utilization of the processor. All else is kept in
//! annotations: `pkg/apis/autoscaling/v1/conversion.go`.

use serde_json::{Map, Value, json};

use super::CPU_UTILIZATION;
use crate::kinds::shared::json::{copy, default_to, entries, is_empty, items, set, text, unset, with};
use crate::schema::{self, FieldValidation};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";

/// The annotations that stand for fields of the specification.
const OF_SPEC: [&str; 2] = [METRICS, BEHAVIOR];

/// The annotations that stand for fields of the status.
const OF_STATUS: [&str; 2] = [CURRENT_METRICS, CONDITIONS];

/// Annotations of older servers, which are never kept.
const OF_OLD: [&str; 2] =
    ["autoscaling.alpha.kubernetes.io/scale-down-tolerance", "autoscaling.alpha.kubernetes.io/scale-up-tolerance"];

/// The fields of one source of a metric: where the stored form has them, and their names in the first version.
type Fields = &'static [(&'static str, &'static str)];

const SOURCES: [(&str, Fields); 5] = [
    (
        "object",
        &[
            ("/describedObject", "target"),
            ("/metric/name", "metricName"),
            ("/metric/selector", "selector"),
            ("/target/value", "targetValue"),
            ("/target/averageValue", "averageValue"),
        ],
    ),
    (
        "pods",
        &[
            ("/metric/name", "metricName"),
            ("/metric/selector", "selector"),
            ("/target/averageValue", "targetAverageValue"),
        ],
    ),
    (
        "resource",
        &[
            ("/name", "name"),
            ("/target/averageUtilization", "targetAverageUtilization"),
            ("/target/averageValue", "targetAverageValue"),
        ],
    ),
    (
        "containerResource",
        &[
            ("/name", "name"),
            ("/container", "container"),
            ("/target/averageUtilization", "targetAverageUtilization"),
            ("/target/averageValue", "targetAverageValue"),
        ],
    ),
    (
        "external",
        &[
            ("/metric/name", "metricName"),
            ("/metric/selector", "metricSelector"),
            ("/target/value", "targetValue"),
            ("/target/averageValue", "targetAverageValue"),
        ],
    ),
];

const STATUSES: [(&str, Fields); 5] = [
    (
        "object",
        &[
            ("/describedObject", "target"),
            ("/metric/name", "metricName"),
            ("/metric/selector", "selector"),
            ("/current/value", "currentValue"),
            ("/current/averageValue", "averageValue"),
        ],
    ),
    (
        "pods",
        &[
            ("/metric/name", "metricName"),
            ("/metric/selector", "selector"),
            ("/current/averageValue", "currentAverageValue"),
        ],
    ),
    (
        "resource",
        &[
            ("/name", "name"),
            ("/current/averageUtilization", "currentAverageUtilization"),
            ("/current/averageValue", "currentAverageValue"),
        ],
    ),
    (
        "containerResource",
        &[
            ("/name", "name"),
            ("/container", "container"),
            ("/current/averageUtilization", "currentAverageUtilization"),
            ("/current/averageValue", "currentAverageValue"),
        ],
    ),
    (
        "external",
        &[
            ("/metric/name", "metricName"),
            ("/metric/selector", "metricSelector"),
            ("/current/value", "currentValue"),
            ("/current/averageValue", "currentAverageValue"),
        ],
    ),
];

/// Whether this is an object of the first version.
pub(super) fn is_v1(object: &Value) -> bool {
    text(&object["apiVersion"]) == "autoscaling/v1"
}

/// Sets the target, unless the annotations have other metrics.
pub(super) fn default(object: &mut Value) {
    if is_empty(&other_metrics(&object["metadata"]["annotations"])) {
        with(object, "spec", |spec| default_to(spec, "targetCPUUtilizationPercentage", CPU_UTILIZATION));
    }
}

/// Keeps the status that annotations stand for: who writes the specification does not write it.
pub(super) fn keep_status(new: &mut Value, old: Option<&Value>) {
    keep(new, old.unwrap_or(&Value::Null), &OF_STATUS);
}

/// Keeps the specification that annotations stand for: who writes the status does not write it.
pub(super) fn keep_spec(new: &mut Value, old: &Value) {
    keep(new, old, &OF_SPEC);
}

fn keep(new: &mut Value, old: &Value, names: &[&str]) {
    let before = &old["metadata"]["annotations"];
    let is_there = |annotations: &Value| names.iter().any(|name| annotations.get(name).is_some());
    if is_there(before) || is_there(&new["metadata"]["annotations"]) {
        with(new, "metadata", |meta| {
            with(meta, "annotations", |annotations| names.iter().for_each(|name| copy(annotations, before, name)));
            drop_empty(meta);
        });
    }
}

/// Removes the annotations that stand for fields.
pub(super) fn drop_annotations(object: &mut Value) {
    let Some(meta) = object.get_mut("metadata").filter(|meta| meta["annotations"].is_object()) else { return };
    let removed =
        OF_SPEC.iter().chain(&OF_STATUS).chain(&OF_OLD).filter(|name| unset(&mut meta["annotations"], name).is_some());
    if removed.count() > 0 {
        drop_empty(meta);
    }
}

fn drop_empty(meta: &mut Value) {
    if is_empty(&meta["annotations"]) {
        unset(meta, "annotations");
    }
}

/// Returns an object of the first version in its stored form, `apiVersion` aside.
pub(super) fn stored(object: &Value) -> Value {
    let mut stored = object.clone();
    to_storage(&mut stored);
    stored
}

/// Changes an object of the first version to its stored form, `apiVersion` aside.
pub(super) fn to_storage(object: &mut Value) {
    let annotations = object["metadata"]["annotations"].clone();
    let target = object.get_mut("spec").and_then(|spec| unset(spec, "targetCPUUtilizationPercentage"));
    let mut metrics = other_metrics(&annotations);
    if let Some(list) = metrics.as_array_mut() {
        let percent = target.filter(|target| !target.is_null());
        let percent = percent.or_else(|| list.is_empty().then(|| CPU_UTILIZATION.into()));
        list.extend(percent.map(|percent| {
            let target = json!({"type": "Utilization", "averageUtilization": percent});
            json!({"type": "Resource", "resource": {"name": "cpu", "target": target}})
        }));
    }
    let behavior = kept(&annotations, BEHAVIOR).map(|behavior| renamed(behavior, &|first| first.to_ascii_lowercase()));
    let behavior = behavior.and_then(|it| checked("spec", "behavior", &it)).filter(|behavior| !is_empty(behavior));
    with(object, "spec", |spec| {
        set(spec, "metrics", metrics);
        if let Some(behavior) = behavior {
            set(spec, "behavior", behavior);
        }
    });

    let percent = object.get_mut("status").and_then(|status| unset(status, "currentCPUUtilizationPercentage"));
    let percent = percent.filter(|percent| !percent.is_null()).map(|percent| {
        json!([{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": percent}}}])
    });
    let current = kept(&annotations, CURRENT_METRICS).map(|current| metrics_of(&current, &STATUSES));
    let current = current.and_then(|current| checked("status", "currentMetrics", &current)).or(percent);
    let conditions = kept(&annotations, CONDITIONS).and_then(|conditions| checked("status", "conditions", &conditions));
    if current.is_some() || conditions.is_some() {
        with(object, "status", |status| {
            current.into_iter().for_each(|current| set(status, "currentMetrics", current));
            conditions.into_iter().for_each(|conditions| set(status, "conditions", conditions));
        });
    }
    drop_annotations(object);
}

/// Changes a stored object to one of the first version, `apiVersion` aside.
pub(super) fn to_version(object: &mut Value) {
    drop_annotations(object);
    let mut notes = Vec::new();
    let mut note = |name: &'static str, value: Value| {
        if !is_empty(&value) {
            notes.push((name, value.to_string()));
        }
    };
    let mut percent = None;
    if let Some(spec) = object.get_mut("spec") {
        let metrics = unset(spec, "metrics").unwrap_or_default();
        let of_cpu =
            |metric: &Value| is_cpu(metric).then(|| metric["resource"]["target"]["averageUtilization"].clone());
        let of_cpu = |metric: &Value| of_cpu(metric).filter(|percent| !percent.is_null());
        if let Some(target) = items(&metrics).iter().find_map(of_cpu) {
            set(spec, "targetCPUUtilizationPercentage", target);
        }
        note(METRICS, items(&metrics).iter().filter(|it| of_cpu(it).is_none()).map(|it| shown(it, &SOURCES)).collect());
        let behavior = unset(spec, "behavior").unwrap_or_default();
        note(BEHAVIOR, renamed(behavior, &|first| first.to_ascii_uppercase()));
    }
    if let Some(status) = object.get_mut("status") {
        let current = unset(status, "currentMetrics").unwrap_or_default();
        for metric in items(&current).iter().filter(|metric| is_cpu(metric)) {
            percent = metric["resource"]["current"].get("averageUtilization").cloned().or(percent);
        }
        note(CURRENT_METRICS, items(&current).iter().map(|metric| shown(metric, &STATUSES)).collect());
        note(CONDITIONS, unset(status, "conditions").unwrap_or_default());
    }
    with(object, "status", |status| {
        percent.into_iter().for_each(|percent| set(status, "currentCPUUtilizationPercentage", percent));
        default_to(status, "currentReplicas", 0);
        default_to(status, "desiredReplicas", 0);
    });
    if !notes.is_empty() {
        with(object, "metadata", |meta| {
            with(meta, "annotations", |annotations| {
                notes.into_iter().for_each(|(name, value)| set(annotations, name, value));
            });
        });
    }
}

fn is_cpu(metric: &Value) -> bool {
    text(&metric["type"]) == "Resource" && text(&metric["resource"]["name"]) == "cpu"
}

/// Returns the value that an annotation holds.
fn kept(annotations: &Value, name: &str) -> Option<Value> {
    serde_json::from_str(annotations.get(name)?.as_str()?).ok()
}

/// Returns the metrics that the annotations hold; a list in any case.
fn other_metrics(annotations: &Value) -> Value {
    let metrics = kept(annotations, METRICS).map(|metrics| metrics_of(&metrics, &SOURCES));
    metrics.and_then(|metrics| checked("spec", "metrics", &metrics)).unwrap_or_else(|| json!([]))
}

/// Returns a field as the schema of the stored form has it; none if it does not fit. Annotations hold any text.
fn checked(part: &str, field: &str, value: &Value) -> Option<Value> {
    let mut object = json!({part: {field: value}});
    schema::check("autoscaling", "v2", "HorizontalPodAutoscaler", &mut object, FieldValidation::Ignore).ok()?;
    object.get_mut(part).and_then(|part| unset(part, field)).filter(|value| !value.is_null())
}

/// Returns metrics of the first version in their stored form.
fn metrics_of(metrics: &Value, sources: &[(&str, Fields)]) -> Value {
    let one = |metric: &Value| {
        let mut stored = json!({"type": metric["type"]});
        for (source, fields) in sources {
            if metric[source].is_object() {
                set(&mut stored, source, source_of(source, &metric[source], fields));
            }
        }
        stored
    };
    match metrics.as_array() {
        Some(metrics) => metrics.iter().map(one).collect(),
        // Not a list: the check of its type refuses it.
        None => metrics.clone(),
    }
}

fn source_of(name: &str, source: &Value, fields: Fields) -> Value {
    let mut stored = Value::Object(Map::new());
    for (path, field) in fields.iter().filter(|(_, field)| !source[field].is_null()) {
        match path[1..].split_once('/') {
            Some((outer, inner)) => with(&mut stored, outer, |it| set(it, inner, source[field].clone())),
            None => set(&mut stored, &path[1..], source[field].clone()),
        }
    }
    if fields.iter().any(|(path, _)| path.starts_with("/target/")) {
        with(&mut stored, "target", |target| {
            let has = |field: &str| !target[field].is_null();
            let kind = match name {
                "resource" | "containerResource" if has("averageUtilization") => "Utilization",
                "external" if has("value") => "Value",
                "object" if !has("averageValue") => "Value",
                _ => "AverageValue",
            };
            // The first version cannot leave the value of an object out.
            if name == "object" && kind == "AverageValue" && matches!(text(&target["value"]), "0") {
                unset(target, "value");
            }
            set(target, "type", kind);
        });
    }
    stored
}

/// Returns a stored metric as the first version has it.
fn shown(metric: &Value, sources: &[(&str, Fields)]) -> Value {
    let mut shown = json!({"type": metric["type"]});
    for (source, fields) in sources.iter().filter(|(source, _)| metric[source].is_object()) {
        let fields = fields.iter().filter_map(|(path, field)| {
            let value = metric[source].pointer(path).filter(|value| !value.is_null())?;
            Some(((*field).to_owned(), value.clone()))
        });
        set(&mut shown, source, fields.collect::<Map<String, Value>>());
    }
    shown
}

/// Returns a value whose fields begin with another letter: upstream keeps the behavior under the names of Go's fields.
fn renamed(value: Value, first: &impl Fn(char) -> char) -> Value {
    match value {
        Value::Object(_) => entries(&value)
            .into_iter()
            .filter(|(_, field)| !field.is_null())
            .map(|(name, field)| {
                let mut letters = name.chars();
                let head = letters.next().map(first);
                (head.into_iter().chain(letters).collect::<String>(), renamed(field.clone(), first))
            })
            .collect::<Map<String, Value>>()
            .into(),
        Value::Array(list) => list.into_iter().map(|item| renamed(item, first)).collect(),
        other => other,
    }
}

//! Jobs. Follows `pkg/apis/batch/v1/defaults.go`, `pkg/registry/batch/job/strategy.go` and
//! `pkg/apis/batch/validation/validation.go`.

mod index;
mod policies;
mod status;
mod table;

use serde_json::{Value, json};
use steersman_base::Selector;
use steersman_base::validation::dns1123_label;

use crate::field::{Errors, FieldError, Path, Shown};
use crate::kinds::core::pod;
use crate::kinds::core::pod::warnings;
use crate::kinds::shared::check;
use crate::kinds::shared::go;
use crate::kinds::shared::json::{
    copy, default_to, default_zero_to, each_mut, flag, is_empty, is_set, items, number, object_mut, same, set, text,
    with,
};
use crate::kinds::shared::workload::{self, CONTAINERS, IMAGES, SELECTOR};
use crate::kinds::{NameRule, Rules};
use crate::registry::admission::Admission;
use crate::registry::strategy::{Dependents, SelectableField, Strategy};
use crate::table::Cell;

/// The rules of Jobs.
pub(crate) static RULES: Rules =
    Rules::named(NameRule::Subdomain).defaulted(default).warned(warnings::workload).admitted(Admission::of_template("/spec/template")).prepared(prepare).validated(|new, old, errors| {
        let path = Path::new("spec");
        if old.is_none() {
            generated_selector(new, errors);
        }
        spec_with_selector(&new["spec"], &path, errors);
        if let Some(old) = old {
            update(&new["spec"], old, &path, errors);
        }
        name_for_completions(new, errors);
        // Upstream copies the generated labels after it has validated.
        let labels = Path::new("metadata").child("labels");
        let name = Shown::from(text(&new["metadata"]["name"]));
        errors.retain(|error| error.path != labels || error.value.as_ref() != Some(&name));
    })
    .status_prepared(|new, old, _| {
        let labels = old["spec"]["template"]["metadata"]["labels"].clone();
        with(new, "metadata", |metadata| default_zero_to(metadata, "labels", labels));
    })
    .status_validated(status::validate)
    .with_strategy(Strategy {
        dependents: Dependents::Orphan,
        propagation_warning: Some(
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or \
             set propagationPolicy=Orphan to suppress this warning",
        ),
        selectable_fields: &[SelectableField::at("status.successful").or("0")],
        ..Strategy::GENERATION
    })
    .printed(&[
        Cell::Name,
        Cell::Made(table::status),
        Cell::Made(table::completions),
        Cell::Made(table::duration),
        Cell::Age,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ]);

const LABEL_UID: &str = "batch.kubernetes.io/controller-uid";

const LABEL_NAME: &str = "batch.kubernetes.io/job-name";

const LABEL_UID_OLD: &str = "controller-uid";

const LABEL_NAME_OLD: &str = "job-name";

fn default(job: &mut Value) {
    labels_from_template(job);
    with(job, "spec", |spec| {
        if spec["completions"].is_null() && spec["parallelism"].is_null() {
            default_to(spec, "completions", 1);
        }
        default_to(spec, "parallelism", 1);
        let backoff = if is_set(&spec["backoffLimitPerIndex"]) { i32::MAX } else { 6 };
        default_to(spec, "backoffLimit", backoff);
        default_to(spec, "completionMode", "NonIndexed");
        default_to(spec, "suspend", false);
        let replacement = if is_set(&spec["podFailurePolicy"]) { "Failed" } else { "TerminatingOrFailed" };
        default_to(spec, "podReplacementPolicy", replacement);
        default_to(spec, "manualSelector", false);
        template_defaults(spec);
    });
}

/// Sets the defaults of a job's spec wherever it stands.
pub(crate) fn template_defaults(spec: &mut Value) {
    pod::defaults::template(spec);
    if let Some(policy) = object_mut(spec, "podFailurePolicy") {
        each_mut(policy, "rules", |rule| {
            each_mut(rule, "onPodConditions", |pattern| default_zero_to(pattern, "status", "True"));
        });
    }
}

fn labels_from_template(job: &mut Value) {
    let labels = job["spec"]["template"]["metadata"]["labels"].clone();
    if labels.is_object() {
        with(job, "metadata", |metadata| default_zero_to(metadata, "labels", labels));
    }
}

fn prepare(job: &mut Value, old: Option<&Value>) {
    workload::prepare(job, old);
    if old.is_some() || flag(&job["spec"]["manualSelector"]) {
        return;
    }
    let name = job["metadata"]["name"].clone();
    let uid = job["metadata"]["uid"].clone();
    with(job, "spec", |spec| {
        with(spec, "template", |template| {
            with(template, "metadata", |metadata| {
                with(metadata, "labels", |labels| {
                    default_to(labels, LABEL_NAME_OLD, name.clone());
                    default_to(labels, LABEL_NAME, name);
                    default_to(labels, LABEL_UID_OLD, uid.clone());
                    default_to(labels, LABEL_UID, uid.clone());
                });
            });
        });
        with(spec, "selector", |selector| {
            with(selector, "matchLabels", |labels| default_to(labels, LABEL_UID, uid));
        });
    });
    // Upstream's defaults run again when the object is read back.
    labels_from_template(job);
}

fn generated_selector(job: &Value, errors: &mut Errors) {
    let spec = &job["spec"];
    if flag(&spec["manualSelector"]) || !is_set(&spec["selector"]) {
        return;
    }
    let name = text(&job["metadata"]["name"]);
    let uid = text(&job["metadata"]["uid"]);
    let labels = &spec["template"]["metadata"]["labels"];
    let path = Path::new("spec").child("template").child("metadata").child("labels");
    let expected = [(LABEL_UID_OLD, uid), (LABEL_NAME_OLD, name), (LABEL_UID, uid), (LABEL_NAME, name)];
    for (key, want) in expected {
        match labels.get(key) {
            None => errors.push(FieldError::required(&path.key(key), format!("must be '{want}'"))),
            Some(value) if text(value) != want => {
                errors.push(FieldError::invalid(&path.key(key), labels.clone(), format!("must be '{want}'")));
            }
            Some(_) => {}
        }
    }
    let generated = json!({LABEL_UID_OLD: uid, LABEL_NAME_OLD: name, LABEL_UID: uid, LABEL_NAME: name});
    let selector = Selector::from_declared(Some(&check::selector_of(&spec["selector"])));
    if selector.is_ok_and(|selector| !check::matches(&selector, &generated)) {
        let shown = check::shown_selector(&spec["selector"]);
        let path = Path::new("spec").child("selector");
        errors.push(FieldError::invalid(&path, shown, "`selector` not auto-generated"));
    }
}

fn spec_with_selector(job: &Value, path: &Path, errors: &mut Errors) {
    spec(job, path, errors);
    let declared = &job["selector"];
    if is_set(declared) {
        check::label_selector(declared, &path.child("selector"), errors);
    } else {
        errors.push(FieldError::required(&path.child("selector"), ""));
    }
    let selector = Selector::from_declared(is_set(declared).then_some(&check::selector_of(declared)));
    let labels = &job["template"]["metadata"]["labels"];
    if selector.is_ok_and(|selector| !check::matches(&selector, labels)) {
        let path = path.child("template").child("metadata").child("labels");
        errors.push(FieldError::invalid(&path, labels.clone(), "`selector` does not match template `labels`"));
    }
}

/// The spec of a job or of a cron job's template: `validateJobSpec`.
pub(crate) fn spec(spec: &Value, path: &Path, errors: &mut Errors) {
    const MANAGED_BY_LENGTH_MAX: usize = 63;
    for field in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        check::non_negative(&spec[field], &path.child(field), errors);
    }
    if is_set(&spec["maxFailedIndexes"]) && !is_set(&spec["backoffLimitPerIndex"]) {
        let detail = "when maxFailedIndexes is specified";
        errors.push(FieldError::required(&path.child("backoffLimitPerIndex"), detail));
    }
    if let Some(manager) = spec["managedBy"].as_str() {
        let at = path.child("managedBy");
        check::domain_prefixed_path(manager, &at, errors);
        if manager.len() > MANAGED_BY_LENGTH_MAX {
            errors.push(FieldError::too_long(&at, MANAGED_BY_LENGTH_MAX));
        }
    }
    completion_mode(spec, path, errors);
    if is_set(&spec["podFailurePolicy"]) {
        policies::failure_policy(spec, &path.child("podFailurePolicy").child("rules"), errors);
    }
    policies::success_policy(spec, &path.child("successPolicy"), errors);
    replacement_policy(spec, &path.child("podReplacementPolicy"), errors);
    pod::validation::template(&spec["template"], &path.child("template"), errors);
    restart_policy(spec, &path.child("template").child("spec").child("restartPolicy"), errors);
}

fn restart_policy(spec: &Value, path: &Path, errors: &mut Errors) {
    match text(&spec["template"]["spec"]["restartPolicy"]) {
        "" | "Always" => errors.push(FieldError::required(path, "valid values: \"OnFailure\", \"Never\"")),
        "Never" => {}
        "OnFailure" if is_set(&spec["podFailurePolicy"]) => errors.push(FieldError::invalid(
            path,
            "OnFailure",
            "only \"Never\" is supported when podFailurePolicy is specified",
        )),
        "OnFailure" => {}
        other => errors.push(FieldError::not_supported(path, other, &["OnFailure", "Never"])),
    }
}

fn completion_mode(spec: &Value, path: &Path, errors: &mut Errors) {
    const PARALLELISM_MAX: i64 = 100_000;
    const FAILED_INDEXES_MAX: i64 = 100_000;
    /// Above so many indexes, a status with a limit per index could grow too large for an object.
    const COMPLETIONS_MANY: i64 = 100_000;
    const OF_MANY_MAX: i64 = 10_000;
    check::one_of_if_set(&spec["completionMode"], &["NonIndexed", "Indexed"], &path.child("completionMode"), errors);
    let failed_max = spec["maxFailedIndexes"].as_i64();
    let mode = text(&spec["completionMode"]);
    if mode != "Indexed" {
        for field in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if is_set(&spec[field]) && (mode == "NonIndexed" || !is_set(&spec["completionMode"])) {
                let detail = "requires indexed completion mode";
                errors.push(FieldError::invalid(&path.child(field), spec[field].clone(), detail));
            }
        }
        return;
    }
    let completions = spec["completions"].as_i64();
    let parallelism = number(&spec["parallelism"]);
    let mut limit = |field: &str, value: i64, detail: String| {
        errors.push(FieldError::invalid(&path.child(field), value, detail));
    };
    if parallelism > PARALLELISM_MAX {
        let detail = format!("must be less than or equal to {PARALLELISM_MAX} when completion mode is Indexed");
        limit("parallelism", parallelism, detail);
    }
    if let (Some(completions), Some(failed)) = (completions, failed_max)
        && failed > completions
    {
        limit("maxFailedIndexes", failed, "must be less than or equal to completions".to_owned());
    }
    if let Some(failed) = failed_max.filter(|failed| *failed > FAILED_INDEXES_MAX) {
        limit("maxFailedIndexes", failed, format!("must be less than or equal to {FAILED_INDEXES_MAX}"));
    }
    if completions.is_some_and(|it| it > COMPLETIONS_MANY) && is_set(&spec["backoffLimitPerIndex"]) {
        let detail = format!(
            "must be less than or equal to {OF_MANY_MAX} when completions are above {COMPLETIONS_MANY} and used with \
             backoff limit per index"
        );
        if parallelism > OF_MANY_MAX {
            limit("parallelism", parallelism, detail.clone());
        }
        match failed_max {
            Some(failed) if failed > OF_MANY_MAX => limit("maxFailedIndexes", failed, detail),
            Some(_) => {}
            None => {
                let detail = format!("must be specified when completions is above {COMPLETIONS_MANY}");
                errors.push(FieldError::required(&path.child("maxFailedIndexes"), detail));
            }
        }
    }
    if completions.is_none() {
        errors.push(FieldError::required(&path.child("completions"), "when completion mode is Indexed"));
    }
}

fn replacement_policy(spec: &Value, path: &Path, errors: &mut Errors) {
    let known: &[&str] =
        if is_set(&spec["podFailurePolicy"]) { &["Failed"] } else { &["Failed", "TerminatingOrFailed"] };
    check::one_of_if_set(&spec["podReplacementPolicy"], known, path, errors);
}

/// The pods of an indexed job are named after it and their index.
fn name_for_completions(job: &Value, errors: &mut Errors) {
    let completions = number(&job["spec"]["completions"]);
    if text(&job["spec"]["completionMode"]) != "Indexed" || completions <= 0 {
        return;
    }
    let name = text(&job["metadata"]["name"]);
    let last = format!("{name}-{}", completions - 1);
    if !dns1123_label(&last).is_empty() {
        let detail = format!("will not able to create pod with invalid DNS label: {last}");
        errors.push(FieldError::invalid(&Path::new("metadata").child("name"), name, detail));
    }
}

fn update(new: &Value, old_job: &Value, path: &Path, errors: &mut Errors) {
    let old = &old_job["spec"];
    let at = path.child("completions");
    if text(&new["completionMode"]) != "Indexed" {
        check::immutable(&new["completions"], &old["completions"], &at, errors);
    } else if new["completions"] != old["completions"] && new["completions"] != new["parallelism"] {
        let detail = "can only be modified in tandem with spec.parallelism";
        errors.push(FieldError::invalid(&at, new["completions"].clone(), detail));
    }
    check::immutable_selector(&new["selector"], &old["selector"], &path.child("selector"), errors);
    template_update(new, old_job, &path.child("template"), errors);
    check::immutable(&new["completionMode"], &old["completionMode"], &path.child("completionMode"), errors);
    for (field, name) in [
        ("podFailurePolicy", "PodFailurePolicy"),
        ("backoffLimitPerIndex", ""),
        ("managedBy", ""),
        ("successPolicy", "SuccessPolicy"),
    ] {
        if !same(&new[field], &old[field]) {
            let shown = if new[field].is_null() { new[field].clone().into() } else { go::show(name, &new[field]) };
            errors.push(FieldError::invalid(&path.child(field), shown, check::IMMUTABLE));
        }
    }
}

/// The template stays, but a job that is suspended and has no pods may still get other scheduling rules.
fn template_update(new: &Value, old_job: &Value, path: &Path, errors: &mut Errors) {
    let mut old = old_job["spec"]["template"].clone();
    let template = &new["template"];
    let is_idle = is_empty(&old_job["status"]["startTime"])
        || items(&old_job["status"]["conditions"])
            .iter()
            .any(|it| text(&it["type"]) == "Suspended" && text(&it["status"]) == "True");
    let is_open = flag(&old_job["spec"]["suspend"]) && is_idle && number(&old_job["status"]["active"]) == 0;
    if is_open {
        if let Some(pod) = old.get_mut("spec") {
            for field in ["nodeSelector", "tolerations", "schedulingGates"] {
                copy(pod, &template["spec"], field);
            }
            let affinity = template["spec"]["affinity"]["nodeAffinity"].clone();
            with(pod, "affinity", |value| set(value, "nodeAffinity", affinity));
        }
        if let Some(metadata) = old.get_mut("metadata") {
            for field in ["annotations", "labels"] {
                copy(metadata, &template["metadata"], field);
            }
        }
    }
    if is_open {
        keep_resources(&template["spec"], &mut old);
        check::immutable_struct("PodSpec", &template["spec"], &old["spec"], &path.child("spec"), errors);
    } else {
        check::immutable_struct("PodTemplateSpec", template, &old, path, errors);
    }
}

/// A job that is suspended may also get other resources for its pods.
fn keep_resources(new: &Value, old: &mut Value) {
    for list in ["containers", "initContainers"] {
        let containers = items(&new[list]);
        let Some(before) = old.get_mut("spec").and_then(|spec| spec.get_mut(list)).and_then(Value::as_array_mut) else {
            continue;
        };
        if before.len() != containers.len() {
            continue;
        }
        for (before, container) in before.iter_mut().zip(containers) {
            if before["name"] == container["name"] {
                copy(before, container, "resources");
            }
        }
    }
}

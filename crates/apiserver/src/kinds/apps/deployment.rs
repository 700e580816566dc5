//! Deployments. Follows `pkg/apis/apps/v1/defaults.go` and `ValidateDeployment` of `pkg/apis/apps/validation/validation.go`.

use serde_json::Value;

use crate::field::{Errors, FieldError, Path};
use crate::kinds::core::pod::defaults::template;
use crate::kinds::core::pod::warnings;
use crate::kinds::shared::json::{default_to, default_zero_to, is_set, number, text, with};
use crate::kinds::shared::meta::validate_meta_update;
use crate::kinds::shared::workload::{
    self, CONTAINERS, IMAGES, READY_OF_REPLICAS, compiled, lasting_template, selector, template_labels,
};
use crate::kinds::shared::{check, go};
use crate::kinds::{NameRule, Rules};
use crate::registry::admission::Admission;
use crate::registry::strategy::{Generation, Strategy};
use crate::table::{Cell, labels};

/// The rules of Deployments.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .defaulted(default)
    .prepared(workload::prepare)
    .warned(warnings::workload)
    .admitted(Admission::of_template("/spec/template"))
    .validated(|new, old, errors| {
        spec(&new["spec"], &Path::new("spec"), errors);
        workload::lasting_selector(new, old, errors);
    })
    .status_validated(|new, old, errors| {
        validate_meta_update(new, old, errors);
        workload::status_counts(&new["status"], STATUS_COUNTS, errors);
        let parts = ["updatedReplicas", "readyReplicas", "availableReplicas"];
        workload::replica_counts(&new["status"], &parts, "readyReplicas", errors);
        workload::collision_count(new, old, errors);
    })
    .status_resets(&["metadata.labels", "spec"])
    .with_strategy(Strategy {
        generation: Generation::ContentOrAnnotations,
        status_keeps_metadata: &["labels"],
        ..Strategy::DEFAULT
    })
    .printed(&[
        Cell::Name,
        READY_OF_REPLICAS,
        Cell::Int("/status/updatedReplicas"),
        Cell::Int("/status/availableReplicas"),
        Cell::Age,
        CONTAINERS,
        IMAGES,
        Cell::Made(|row| labels::raw_selector(row.at("/spec/selector"))),
    ]);

const STATUS_COUNTS: &[&str] = &[
    "observedGeneration",
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
    "terminatingReplicas",
    "collisionCount",
];

fn default(object: &mut Value) {
    with(object, "spec", |spec| {
        default_to(spec, "replicas", 1);
        with(spec, "strategy", |strategy| {
            default_zero_to(strategy, "type", "RollingUpdate");
            if text(&strategy["type"]) == "RollingUpdate" {
                with(strategy, "rollingUpdate", |rolling| {
                    default_to(rolling, "maxUnavailable", "25%");
                    default_to(rolling, "maxSurge", "25%");
                });
            }
        });
        default_to(spec, "revisionHistoryLimit", 10);
        default_to(spec, "progressDeadlineSeconds", 600);
        template(spec);
    });
}

fn spec(spec: &Value, path: &Path, errors: &mut Errors) {
    check::non_negative(&spec["replicas"], &path.child("replicas"), errors);
    selector(spec, "deployment", path, errors);
    if let Some(selector) = compiled(spec) {
        template_labels(spec, &selector, path, errors);
        lasting_template(spec, "ReplicaSet", path, errors);
    } else {
        let shown = check::shown_selector(&spec["selector"]);
        errors.push(FieldError::invalid(&path.child("selector"), shown, "invalid label selector"));
    }
    strategy(&spec["strategy"], &path.child("strategy"), errors);
    check::non_negative(&spec["minReadySeconds"], &path.child("minReadySeconds"), errors);
    check::non_negative(&spec["revisionHistoryLimit"], &path.child("revisionHistoryLimit"), errors);
    if let Some(seconds) = spec["progressDeadlineSeconds"].as_i64() {
        let at = path.child("progressDeadlineSeconds");
        check::non_negative(&spec["progressDeadlineSeconds"], &at, errors);
        if seconds <= number(&spec["minReadySeconds"]) {
            errors.push(FieldError::invalid(&at, seconds, "must be greater than minReadySeconds"));
        }
    }
}

fn strategy(strategy: &Value, path: &Path, errors: &mut Errors) {
    let rolling = &strategy["rollingUpdate"];
    let at = path.child("rollingUpdate");
    match text(&strategy["type"]) {
        "Recreate" => {
            let detail = "may not be specified when strategy `type` is 'Recreate'";
            check::forbid_if(is_set(rolling), detail, &at, errors);
        }
        "RollingUpdate" if !is_set(rolling) => {
            errors.push(FieldError::required(&at, "this should be defaulted and never be nil"));
        }
        "RollingUpdate" => rolling_update(rolling, &at, errors),
        _ => {
            let shown = go::show("DeploymentStrategy", strategy);
            errors.push(FieldError::not_supported(path, shown, &["Recreate", "RollingUpdate"]));
        }
    }
}

fn rolling_update(rolling: &Value, path: &Path, errors: &mut Errors) {
    let unavailable = &rolling["maxUnavailable"];
    let surge = &rolling["maxSurge"];
    let at = path.child("maxUnavailable");
    check::number_or_percent(unavailable, &at, errors);
    check::number_or_percent(surge, &path.child("maxSurge"), errors);
    if check::number_of(unavailable) == 0 && check::number_of(surge) == 0 {
        errors.push(FieldError::invalid(&at, unavailable.clone(), "may not be 0 when `maxSurge` is 0"));
    }
    check::percent_at_most_100(unavailable, &at, errors);
}

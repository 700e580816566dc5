//! DaemonSets. Follows `pkg/apis/apps/v1/defaults.go`, `pkg/registry/apps/daemonset/strategy.go` and `ValidateDaemonSet` of
//! `pkg/apis/apps/validation/validation.go`.

use serde_json::Value;

use crate::field::{Errors, FieldError, Path};
use crate::kinds::core::pod::defaults::template;
use crate::kinds::core::pod::warnings;
use crate::kinds::shared::json::{default_to, default_zero_to, is_set, same, set, text, with};
use crate::kinds::shared::meta::validate_meta_update;
use crate::kinds::shared::workload::{self, CONTAINERS, IMAGES, SELECTOR, compiled, lasting_template};
use crate::kinds::shared::{check, go};
use crate::kinds::{NameRule, Rules};
use crate::registry::admission::Admission;
use crate::registry::strategy::Strategy;
use crate::table::{Cell, labels};

/// The rules of DaemonSets.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .defaulted(default)
    .warned(|new, old, warnings| warnings::template_at("spec.template", &new["spec"]["template"], (new, old), warnings))
    .admitted(Admission::of_template("/spec/template"))
    .converted(|object| note(object, generation_of(object)))
    .prepared(prepare)
    .validated(|new, old, errors| {
        workload::lasting_selector(new, old, errors);
        spec(&new["spec"], &Path::new("spec"), errors);
    })
    // A write of the status keeps the generation of the template.
    .status_prepared(|new, old, _| note(new, generation_of(old)))
    .status_validated(|new, old, errors| {
        validate_meta_update(new, old, errors);
        workload::status_counts(&new["status"], STATUS_COUNTS, errors);
        workload::collision_count(new, old, errors);
    })
    .with_strategy(Strategy::GENERATION)
    .printed(&[
        Cell::Name,
        Cell::Int("/status/desiredNumberScheduled"),
        Cell::Int("/status/currentNumberScheduled"),
        Cell::Int("/status/numberReady"),
        Cell::Int("/status/updatedNumberScheduled"),
        Cell::Int("/status/numberAvailable"),
        Cell::Made(|row| labels::labels(row.at("/spec/template/spec/nodeSelector"))),
        Cell::Age,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ])
    // Upstream makes this annotation when it stores a DaemonSet, and its tables are made before.
    .hiding_annotation(TEMPLATE_GENERATION);

const STATUS_COUNTS: &[&str] = &[
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "observedGeneration",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "collisionCount",
];

fn default(object: &mut Value) {
    with(object, "spec", |spec| {
        with(spec, "updateStrategy", |strategy| {
            default_zero_to(strategy, "type", "RollingUpdate");
            if text(&strategy["type"]) == "RollingUpdate" {
                with(strategy, "rollingUpdate", |rolling| {
                    default_to(rolling, "maxUnavailable", 1);
                    default_to(rolling, "maxSurge", 0);
                });
            }
        });
        default_to(spec, "revisionHistoryLimit", 10);
        template(spec);
    });
}

/// Counts the changes of the template; long out of use, but still shown.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn generation_of(object: &Value) -> i64 {
    text(&object["metadata"]["annotations"][TEMPLATE_GENERATION]).parse().unwrap_or_default()
}

fn note(object: &mut Value, generation: i64) {
    with(object, "metadata", |metadata| {
        with(metadata, "annotations", |annotations| set(annotations, TEMPLATE_GENERATION, generation.to_string()));
    });
}

fn prepare(new: &mut Value, old: Option<&Value>) {
    workload::prepare(new, old);
    let generation = match old {
        None => generation_of(new).max(1),
        Some(old) => {
            let changed = !same(&new["spec"]["template"], &old["spec"]["template"]);
            generation_of(old).saturating_add(i64::from(changed))
        }
    };
    note(new, generation);
}

fn spec(spec: &Value, path: &Path, errors: &mut Errors) {
    let selector = &spec["selector"];
    let at = path.child("selector");
    check::label_selector(selector, &at, errors);
    let labels = &spec["template"]["metadata"]["labels"];
    if compiled(spec).is_some_and(|selector| !check::matches(&selector, labels)) {
        let at = path.child("template").child("metadata").child("labels");
        errors.push(FieldError::invalid(&at, labels.clone(), "`selector` does not match template `labels`"));
    }
    if is_set(selector) && check::selects_everything(selector) {
        let detail = "empty selector is invalid for daemonset";
        errors.push(FieldError::invalid(&at, check::shown_selector(selector), detail));
    }
    lasting_template(spec, "DaemonSet", path, errors);
    check::non_negative(&spec["minReadySeconds"], &path.child("minReadySeconds"), errors);
    update_strategy(&spec["updateStrategy"], &path.child("updateStrategy"), errors);
    check::non_negative(&spec["revisionHistoryLimit"], &path.child("revisionHistoryLimit"), errors);
}

fn update_strategy(strategy: &Value, path: &Path, errors: &mut Errors) {
    let rolling = &strategy["rollingUpdate"];
    let at = path.child("rollingUpdate");
    match text(&strategy["type"]) {
        "OnDelete" => {}
        "RollingUpdate" if !is_set(rolling) => errors.push(FieldError::required(&at, "")),
        "RollingUpdate" => rolling_update(rolling, &at, errors),
        _ => {
            let shown = go::show("DaemonSetUpdateStrategy", strategy);
            errors.push(FieldError::not_supported(path, shown, &["RollingUpdate", "OnDelete"]));
        }
    }
}

fn rolling_update(rolling: &Value, path: &Path, errors: &mut Errors) {
    let unavailable = &rolling["maxUnavailable"];
    let surge = &rolling["maxSurge"];
    let unavailable_path = path.child("maxUnavailable");
    let surge_path = path.child("maxSurge");
    check::number_or_percent(unavailable, &unavailable_path, errors);
    check::number_or_percent(surge, &surge_path, errors);
    check::percent_at_most_100(unavailable, &unavailable_path, errors);
    check::percent_at_most_100(surge, &surge_path, errors);
    match (check::number_of(unavailable) != 0, check::number_of(surge) != 0) {
        (true, true) => {
            let detail = "may not be set when maxUnavailable is non-zero";
            errors.push(FieldError::invalid(&surge_path, surge.clone(), detail));
        }
        (false, false) => {
            errors.push(FieldError::required(&unavailable_path, "cannot be 0 when maxSurge is 0"));
        }
        _ => {}
    }
}

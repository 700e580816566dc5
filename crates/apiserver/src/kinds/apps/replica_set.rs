//! ReplicaSets. Follows `pkg/apis/apps/v1/defaults.go` and `ValidateReplicaSet` of `pkg/apis/apps/validation/validation.go`.

use serde_json::Value;

use crate::field::{Errors, FieldError, Path};
use crate::kinds::core::pod::defaults::template;
use crate::kinds::core::pod::warnings;
use crate::kinds::shared::check;
use crate::kinds::shared::json::{default_to, with};
use crate::kinds::shared::meta::validate_meta_update;
use crate::kinds::shared::workload::{
    self, CONTAINERS, IMAGES, SELECTOR, compiled, lasting_template, selector, template_labels,
};
use crate::kinds::{NameRule, Rules};
use crate::registry::admission::Admission;
use crate::registry::strategy::{SelectableField, Strategy};
use crate::table::Cell;

/// The rules of ReplicaSets.
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
        let counts = [
            "replicas",
            "fullyLabeledReplicas",
            "readyReplicas",
            "availableReplicas",
            "observedGeneration",
            "terminatingReplicas",
        ];
        workload::status_counts(&new["status"], &counts, errors);
        let parts = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
        workload::replica_counts(&new["status"], &parts, "readyReplicas", errors);
    })
    .with_strategy(Strategy {
        selectable_fields: &[SelectableField::at("status.replicas").or("0")],
        ..Strategy::GENERATION
    })
    .printed(&[
        Cell::Name,
        Cell::Int("/spec/replicas"),
        Cell::Int("/status/replicas"),
        Cell::Int("/status/readyReplicas"),
        Cell::Age,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ]);

fn default(object: &mut Value) {
    with(object, "spec", |spec| {
        default_to(spec, "replicas", 1);
        template(spec);
    });
}

fn spec(spec: &Value, path: &Path, errors: &mut Errors) {
    check::non_negative(&spec["replicas"], &path.child("replicas"), errors);
    check::non_negative(&spec["minReadySeconds"], &path.child("minReadySeconds"), errors);
    // The name of the kind is upstream's slip.
    selector(spec, "deployment", path, errors);
    if let Some(selector) = compiled(spec) {
        template_labels(spec, &selector, path, errors);
        lasting_template(spec, "ReplicaSet", path, errors);
    } else {
        let shown = check::shown_selector(&spec["selector"]);
        errors.push(FieldError::invalid(&path.child("selector"), shown, "invalid label selector"));
    }
}

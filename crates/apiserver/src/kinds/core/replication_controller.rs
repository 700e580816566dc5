//! ReplicationControllers. Follows `pkg/apis/core/v1/defaults.go` and `ValidateReplicationController` of
//! `pkg/apis/core/validation/validation.go`.

use serde_json::Value;
use steersman_base::Selector;

use super::pod::defaults::optional_template;
use crate::field::{Errors, FieldError, Path};
use crate::kinds::core::pod::warnings;
use crate::kinds::shared::check;
use crate::kinds::shared::json::{default_to, default_zero_to, is_set, with};
use crate::kinds::shared::meta::validate_meta_update;
use crate::kinds::shared::workload::{self, CONTAINERS, IMAGES, lasting_template, template_labels};
use crate::kinds::{NameRule, Rules};
use crate::registry::admission::Admission;
use crate::registry::strategy::{Dependents, SelectableField, Strategy};
use crate::table::{Cell, labels};

/// The rules of ReplicationControllers.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .defaulted(default)
    .prepared(workload::prepare)
    .warned(warnings::workload)
    .admitted(Admission::of_template("/spec/template"))
    .validated(|new, _, errors| spec(&new["spec"], &Path::new("spec"), errors))
    .status_validated(|new, old, errors| {
        validate_meta_update(new, old, errors);
        let counts = ["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"];
        workload::status_counts(&new["status"], &counts, errors);
        let parts = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
        workload::replica_counts(&new["status"], &parts, "readyReplicas", errors);
    })
    .with_strategy(Strategy {
        dependents: Dependents::Orphan,
        selectable_fields: &[SelectableField::at("status.replicas").or("0")],
        ..Strategy::GENERATION
    })
    .etcd_prefix("controllers")
    .printed(&[
        Cell::Name,
        Cell::Int("/spec/replicas"),
        Cell::Int("/status/replicas"),
        Cell::Int("/status/readyReplicas"),
        Cell::Age,
        CONTAINERS,
        IMAGES,
        Cell::Made(|row| labels::labels(row.at("/spec/selector"))),
    ]);

fn default(object: &mut Value) {
    let labels = object["spec"]["template"]["metadata"]["labels"].clone();
    with(object, "spec", |spec| {
        default_to(spec, "replicas", 1);
        if labels.is_object() {
            default_zero_to(spec, "selector", labels.clone());
        }
        optional_template(spec);
    });
    if labels.is_object() {
        with(object, "metadata", |metadata| default_zero_to(metadata, "labels", labels));
    }
}

fn spec(spec: &Value, path: &Path, errors: &mut Errors) {
    let labels = check::string_map(&spec["selector"]);
    if labels.is_empty() {
        errors.push(FieldError::required(&path.child("selector"), ""));
    }
    if is_set(&spec["template"]) {
        template_labels(spec, &Selector::from_labels(&labels), path, errors);
        lasting_template(spec, "ReplicationController", path, errors);
    } else {
        errors.push(FieldError::required(&path.child("template"), ""));
    }
    // Checked declaratively upstream, after what is checked by hand.
    check::non_negative(&spec["replicas"], &path.child("replicas"), errors);
    check::non_negative(&spec["minReadySeconds"], &path.child("minReadySeconds"), errors);
}

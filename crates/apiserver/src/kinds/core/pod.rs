//! Pods, and the templates of pods that workloads hold.

mod admission;
pub(crate) mod affinity;
pub(crate) mod binding;
mod containers;
pub(crate) mod defaults;
mod deletion;
mod env;
mod ephemeral_containers;
mod eviction;
pub(crate) mod gated;
mod handlers;
mod log;
mod prepare;
mod resize;
pub(crate) mod resources;
mod restarts;
mod runtime_class;
mod security;
pub(crate) mod standards;
mod table;
mod topology;
mod update;
pub(crate) mod validation;
pub(crate) mod volumes;
pub(crate) mod warnings;

use serde_json::{Value, json};

use crate::kinds::shared::limits;
use crate::kinds::shared::meta::validate_meta_update;
use crate::kinds::{Handler, NameRule, Rules};
use crate::registry::admission::Admission;
use crate::registry::admission::pod_security::Subject;
use crate::registry::strategy::{SelectableField, Strategy};

/// The rules of Pods.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .rechecked()
    .defaulted(defaults::pod)
    .prepared(prepare::pod)
    .validated(|new, old, errors| match old {
        None => validation::create(new, errors),
        Some(old) => update::pod(new, old, errors),
    })
    .warned(warnings::pod)
    .validated_when_composed(validation::pod_spec_of)
    .status_prepared(prepare::status)
    .status_validated(|new, old, errors| {
        validate_meta_update(new, old, errors);
        update::status(new, old, errors);
    })
    .admitted(Admission {
        mutate: admission::mutate,
        validate: |registry, call, new, old| {
            limits::check_pod(registry, call, new, old)?;
            match old {
                Some(old) if call.subresource == "resize" => resize::fits_node(registry, new, old),
                _ => Ok(()),
            }
        },
        is_counted: admission::is_counted,
        pod_security: Subject::Pod,
        ..Admission::NONE
    })
    .status_resets(&["metadata.deletionTimestamp", "metadata.ownerReferences", "spec"])
    .with_strategy(Strategy {
        returns_deleted: true,
        begin_deletion: deletion::begin,
        status_keeps_metadata: &["ownerReferences"],
        selectable_fields: &[
            SelectableField::at("spec.nodeName"),
            SelectableField::at("spec.restartPolicy"),
            SelectableField::at("spec.schedulerName"),
            SelectableField::at("spec.serviceAccountName"),
            SelectableField::at("spec.hostNetwork").or("false"),
            SelectableField::at("status.phase"),
            SelectableField::at("status.podIP"),
            SelectableField::at("status.nominatedNodeName"),
        ],
        field_aliases: &[("spec.host", "spec.nodeName")],
        ..Strategy::GENERATION
    })
    .with_subresources(&[
        ("binding", Handler::Create(binding::create)),
        ("ephemeralcontainers", Handler::Part(&ephemeral_containers::RULES)),
        ("eviction", Handler::Create(eviction::create)),
        ("log", Handler::Get(log::get)),
        ("resize", Handler::Part(&resize::RULES)),
    ])
    .printed(table::CELLS)
    .row_conditions(table::row_conditions);

/// Sets a condition of a pod, unless it has that status already.
fn set_condition(pod: &mut Value, condition: Value) {
    if !pod["status"].is_object() {
        pod["status"] = json!({});
    }
    if !pod["status"]["conditions"].is_array() {
        pod["status"]["conditions"] = json!([]);
    }
    let Some(conditions) = pod["status"]["conditions"].as_array_mut() else { return };
    match conditions.iter_mut().find(|stored| stored["type"] == condition["type"]) {
        Some(stored) if stored["status"] == condition["status"] => {}
        Some(stored) => *stored = condition,
        None => conditions.push(condition),
    }
}

//! Namespaces. Follows `pkg/registry/core/namespace/strategy.go` and `ValidateNamespace` of
//! `pkg/apis/core/validation/validation.go`.

mod deletion;

use serde_json::{Value, json};
use steersman_base::validation::qualified_name;

use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::check::problems;
use crate::kinds::shared::json::{copy, default_to, default_zero_to, each, items, set, text, with};
use crate::kinds::shared::meta::validate_meta_update;
use crate::kinds::{Handler, NameRule, PartRules, Resets, Rules};
use crate::registry::admission::Admission;
use crate::registry::admission::pod_security::Subject;
use crate::registry::object_meta::metadata;
use crate::registry::strategy::{SelectableField, Strategy};
use crate::table::Cell;

/// The rules of Namespaces.
pub(crate) static RULES: Rules = Rules::named(NameRule::Label)
    .defaulted(default)
    .prepared(prepare)
    .rechecked()
    .validated(|new, old, errors| {
        if old.is_none() {
            finalizers(&new["spec"]["finalizers"], &Path::new("spec").child("finalizers"), errors);
        }
    })
    .validated_when_composed(validate_finalizers)
    .admitted(Admission { delete: deletion::may_delete, pod_security: Subject::Namespace, ..Admission::NONE })
    .with_strategy(Strategy {
        selectable_fields: &[SelectableField::at(PHASE)],
        begin_deletion: deletion::begin,
        has_other_finalizers: |namespace| !items(&namespace["spec"]["finalizers"]).is_empty(),
        is_namespace: true,
        ..Strategy::RETURNS_DELETED
    })
    .with_subresources(&[("finalize", Handler::Part(&FINALIZE))])
    .printed(&[Cell::Name, Cell::Text("/status/phase"), Cell::Age]);

/// The selectable field that says whether a namespace is terminating.
pub(crate) const PHASE: &str = "status.phase";

/// The rules of a write of `finalize`.
static FINALIZE: PartRules = PartRules {
    prepare: |new, old, _| *new = with_finalizers_of(new, old),
    validate: |new, old, errors| {
        validate_meta_update(new, old, errors);
        validate_finalizers(new, errors);
    },
    raises_generation: false,
    resets: Resets::These(&["status"]),
};

const FINALIZER: &str = "kubernetes";

const LABEL_NAME: &str = "kubernetes.io/metadata.name";

fn default(object: &mut Value) {
    label_with_name(object);
    with(object, "status", |status| default_zero_to(status, "phase", "Active"));
}

/// Every namespace can be selected by its name.
fn label_with_name(object: &mut Value) {
    let name = text(&object["metadata"]["name"]).to_owned();
    if !name.is_empty() {
        with(object, "metadata", |metadata| with(metadata, "labels", |labels| set(labels, LABEL_NAME, name)));
    }
}

fn prepare(new: &mut Value, old: Option<&Value>) {
    if let Some(old) = old {
        copy(new, old, "status");
        with(new, "spec", |spec| copy(spec, &old["spec"], "finalizers"));
    } else {
        set(new, "status", json!({"phase": "Active"}));
        with(new, "spec", |spec| {
            default_to(spec, "finalizers", json!([]));
            let has = items(&spec["finalizers"]).iter().any(|finalizer| text(finalizer) == FINALIZER);
            if let Some(finalizers) = spec.get_mut("finalizers").and_then(Value::as_array_mut).filter(|_| !has) {
                finalizers.push(FINALIZER.into());
            }
        });
    }
    // A generated name is known only now.
    label_with_name(new);
}

/// Checks the finalizers in the spec.
pub(crate) fn validate_finalizers(namespace: &Value, errors: &mut Errors) {
    finalizers(&namespace["spec"]["finalizers"], &Path::new("spec").child("finalizers"), errors);
}

fn finalizers(finalizers: &Value, path: &Path, errors: &mut Errors) {
    each(finalizers, path, |finalizer, _| {
        let name = text(finalizer);
        problems(name, qualified_name(name), path, errors);
        if !name.contains('/') && !matches!(name, FINALIZER | "orphan" | "foregroundDeletion") {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(path, name, detail));
        }
    });
}

/// Returns the stored namespace with the finalizers of the spec and the metadata of the body.
fn with_finalizers_of(body: &Value, old: &Value) -> Value {
    let mut namespace = old.clone();
    for field in ["annotations", "finalizers", "labels", "ownerReferences", "resourceVersion", "uid"] {
        let sent = body["metadata"].get(field).cloned();
        let meta = metadata(&mut namespace);
        match sent {
            Some(value) => meta.insert(field.to_owned(), value),
            None if field == "uid" => None,
            None => meta.remove(field),
        };
    }
    with(&mut namespace, "spec", |spec| copy(spec, &body["spec"], "finalizers"));
    namespace
}

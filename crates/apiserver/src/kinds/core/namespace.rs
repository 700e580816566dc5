//! Namespaces. Follows `pkg/registry/core/namespace/strategy.go` and `ValidateNamespace` of
//! `pkg/apis/core/validation/validation.go`.

use serde_json::{Value, json};
use steersman_base::validation::qualified_name;

use crate::field::{FieldError, Path};
use crate::kinds::check::{Errors, problems};
use crate::kinds::json::{copy, default_to, default_zero_to, each, items, object_mut, set, text, with};
use crate::kinds::{NameRule, Rules};

const FINALIZER: &str = "kubernetes";
const LABEL_NAME: &str = "kubernetes.io/metadata.name";

pub(super) static NAMESPACE: Rules =
    Rules::named(NameRule::Label).defaulted(default).prepared(prepare).validated(|new, old, errors| {
        if old.is_none() {
            finalizers(&new["spec"]["finalizers"], &Path::new("spec").child("finalizers"), errors);
        }
    });

fn default(object: &mut Value) {
    label_with_name(object);
    if let Some(status) = object_mut(object, "status") {
        default_zero_to(status, "phase", "Active");
    }
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

/// What is wrong with the finalizers in the spec.
pub(in crate::kinds) fn validate_finalizers(namespace: &Value, errors: &mut Errors) {
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

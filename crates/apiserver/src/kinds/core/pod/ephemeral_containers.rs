//! `pods/ephemeralcontainers`: a write of that list and of nothing else.

use serde_json::Value;

use super::update;
use crate::kinds::shared::json::{copy, with};
use crate::kinds::shared::meta::validate_meta_update;
use crate::kinds::{PartRules, Resets};
use crate::registry::object_meta::metadata;

/// The rules of a write of the ephemeral containers.
pub(crate) static RULES: PartRules = PartRules {
    prepare: |new, old, _| {
        let mut pod = with_preconditions_of(new, old);
        with(&mut pod, "spec", |spec| copy(spec, &new["spec"], "ephemeralContainers"));
        *new = pod;
    },
    validate: |new, old, errors| {
        validate_meta_update(new, old, errors);
        update::ephemeral_containers(new, old, errors);
    },
    raises_generation: true,
    resets: Resets::AllBut(&["spec.ephemeralContainers"]),
};

/// Returns the stored pod with the uid and the resource version that the body names. A body that names none means this pod.
pub(crate) fn with_preconditions_of(body: &Value, old: &Value) -> Value {
    let mut pod = old.clone();
    for field in ["resourceVersion", "uid"] {
        if let Some(sent) = body["metadata"].get(field) {
            metadata(&mut pod).insert(field.to_owned(), sent.clone());
        }
    }
    pod
}

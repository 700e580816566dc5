//! JSON patch: operations one after the other, on a copy.

use json_patch::{CopyOperation, PatchOperation};
use serde_json::Value;

use super::PatchError;
use crate::decode::{Decoded, type_name};

/// Upstream's bound on operations.
const OPERATIONS_MAX: usize = 10_000;
/// Upstream's bound on what `copy` copies: without it, a few operations double a value again and again.
const COPIED_BYTES_MAX: usize = 3 * 1024 * 1024;
/// As deep as a body can be: many small operations must not build what cannot be walked by recursion.
const DEPTH_MAX: usize = 128;
/// The fields that upstream decodes an operation into.
const FIELDS: [&str; 4] = ["from", "op", "path", "value"];

pub(super) fn apply(original: &Value, patch: Value) -> Result<Value, PatchError> {
    let operations = operations(patch)?;
    if operations.len() > OPERATIONS_MAX {
        let message =
            format!("The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {}", operations.len());
        return Err(PatchError::too_large(&message));
    }
    let mut patched = original.clone();
    let mut copied_bytes = 0;
    for operation in operations {
        let operation: PatchOperation = serde_json::from_value(operation).map_err(|_| PatchError::unprocessable())?;
        if let PatchOperation::Copy(CopyOperation { from, .. }) = &operation {
            copied_bytes += patched.pointer(from.as_str()).map_or(0, |source| source.to_string().len());
        }
        if copied_bytes > COPIED_BYTES_MAX || depth_after(&patched, &operation) > DEPTH_MAX {
            return Err(PatchError::unprocessable());
        }
        // We own the copy, so there is nothing to roll back.
        json_patch::patch_unsafe(&mut patched, &[operation]).map_err(|_| PatchError::unprocessable())?;
    }
    Ok(patched)
}

/// How deep the place is that an operation writes to, with what it writes there.
fn depth_after(object: &Value, operation: &PatchOperation) -> usize {
    let written = match operation {
        PatchOperation::Add(add) => Some(&add.value),
        PatchOperation::Replace(replace) => Some(&replace.value),
        PatchOperation::Copy(copy) => object.pointer(copy.from.as_str()),
        PatchOperation::Move(from) => object.pointer(from.from.as_str()),
        PatchOperation::Remove(_) | PatchOperation::Test(_) => None,
    };
    written.map_or(0, |written| operation.path().count() + depth(written))
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(elements) => 1 + elements.iter().map(depth).max().unwrap_or(0),
        Value::Object(entries) => 1 + entries.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// The operations, with the types of their fields checked as upstream does before it looks at them.
fn operations(patch: Value) -> Result<Vec<Value>, PatchError> {
    let decoding = |sentence: String| PatchError::bad_request(format!("error decoding patch: {sentence}"));
    let mut operations = match patch {
        Value::Array(operations) => operations,
        Value::Null => Vec::new(),
        other => {
            let found = type_name(&other);
            return Err(decoding(format!(
                "json: cannot unmarshal {found} into Go value of type []handlers.jsonPatchOp"
            )));
        }
    };
    for operation in &mut operations {
        let Some(fields) = operation.as_object_mut() else {
            let found = type_name(operation);
            return Err(decoding(format!("json: cannot unmarshal {found} into Go value of type handlers.jsonPatchOp")));
        };
        for name in ["op", "path", "from"] {
            if let Some(other) = fields.get(name).filter(|value| !value.is_string() && !value.is_null()) {
                let found = type_name(other);
                return Err(decoding(format!(
                    "json: cannot unmarshal {found} into Go struct field jsonPatchOp.{name} of type string"
                )));
            }
        }
        // A value that is not written is null.
        fields.entry("value").or_insert(Value::Null);
    }
    Ok(operations)
}

pub(super) fn findings(patch: &Decoded) -> Vec<String> {
    let unknown = patch.value.as_array().into_iter().flatten().enumerate().flat_map(|(index, operation)| {
        let fields = operation.as_object().into_iter().flatten();
        fields
            .filter(|(name, _)| !FIELDS.contains(&name.as_str()))
            .map(move |(name, _)| format!("unknown field {:?}", format!("[{index}].{name}")))
    });
    patch.duplicates.iter().cloned().chain(unknown).map(|finding| format!("json patch {finding}")).collect()
}

//! JSON patch: operations one after the other, on a copy.

use json_patch::{AddOperation, CopyOperation, PatchOperation, ReplaceOperation};
use serde_json::Value;

use super::PatchError;
use super::work::Work;
use crate::decode::{Decoded, type_name};
use crate::findings::{Findings, shown_path, unknown_field};

/// Upstream's bound on operations.
const OPERATIONS_MAX: usize = 10_000;
/// Upstream's bound on what `copy` copies: without it, a few operations double a value again and again.
const COPIED_BYTES_MAX: usize = 3 * 1024 * 1024;
/// As deep as a body can be: many small operations must not build what cannot be walked by recursion.
const DEPTH_MAX: usize = 128;
/// The fields that upstream decodes an operation into.
const FIELDS: [&str; 4] = ["from", "op", "path", "value"];

/// Applies a patch that was not sent by a client: an error says why an operation does not apply, in the words of upstream's
/// library (`evanphx/json-patch`).
pub(super) fn apply_explained(original: Value, patch: &Value, work: &Work) -> Result<Value, String> {
    let list = operations(patch).map_err(|error| error.message)?;
    let mut patched = original;
    for operation in list {
        let before = patched.clone();
        let one = Value::Array(vec![operation.clone()]);
        patched = apply(patched, &one, work).map_err(|_| why_not(&before, operation))?;
    }
    Ok(patched)
}

/// Returns why an operation does not apply to an object.
fn why_not(object: &Value, operation: &Value) -> String {
    let word = |field: &str| operation[field].as_str().unwrap_or_default();
    let path = word("path");
    let from = word("from");
    let parent = |path: &str| path.rfind('/').and_then(|end| object.pointer(&path[..end]));
    let has_parent = |path: &str| parent(path).is_some_and(|parent| parent.is_object() || parent.is_array());
    let key = |path: &str| path.rsplit('/').next().unwrap_or_default().replace("~1", "/").replace("~0", "~");
    let beneath = |path: &str, is_removal: bool| match parent(path) {
        Some(Value::Array(_)) => match key(path).parse::<i64>() {
            Ok(index) => format!("Unable to access invalid index: {index}: invalid index referenced"),
            Err(_) => format!(
                "value was not a proper array index: '{0}': strconv.Atoi: parsing {0:?}: invalid syntax",
                key(path)
            ),
        },
        _ if is_removal => format!("Unable to remove nonexistent key: {}: missing value", key(path)),
        _ => "missing value".to_owned(),
    };
    match word("op") {
        "add" if !has_parent(path) => {
            format!("add operation does not apply: doc is missing path: \"{path}\": missing value")
        }
        "add" => format!("error in add for path: '{path}': {}", beneath(path, false)),
        "remove" if !has_parent(path) => {
            format!("remove operation does not apply: doc is missing path: \"{path}\": missing value")
        }
        "remove" => format!("error in remove for path: '{path}': {}", beneath(path, true)),
        "replace" if !has_parent(path) => {
            format!("replace operation does not apply: doc is missing path: {path}: missing value")
        }
        "replace" => format!("replace operation does not apply: doc is missing key: {path}: missing value"),
        "test" if !has_parent(path) && !path.is_empty() => {
            format!("test operation does not apply: is missing path: {path}: missing value")
        }
        "test" => format!("testing value {path} failed: test failed"),
        "move" | "copy" if !has_parent(from) => {
            format!("{} operation does not apply: doc is missing from path: {from}: missing value", word("op"))
        }
        "move" | "copy" if object.pointer(from).is_some() && !has_parent(path) => {
            format!("{} operation does not apply: doc is missing destination path: {path}: missing value", word("op"))
        }
        "move" => format!("error in move for path: '{}': {}", key(from), beneath(from, true)),
        "copy" => format!("error in copy for from: '{from}': {}", beneath(from, false)),
        other => format!("Unexpected kind: {other}"),
    }
}

pub(super) fn apply(original: Value, patch: &Value, work: &Work) -> Result<Value, PatchError> {
    let operations = operations(patch)?;
    if operations.len() > OPERATIONS_MAX {
        let message =
            format!("The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {}", operations.len());
        return Err(PatchError::too_large(&message));
    }
    let mut patched = original;
    let mut copied_bytes = 0;
    for operation in operations {
        let operation: PatchOperation =
            serde_json::from_value(with_value(operation)).map_err(|_| PatchError::unprocessable())?;
        let operation = or_added(&patched, operation);
        if let PatchOperation::Copy(CopyOperation { from, .. }) = &operation {
            copied_bytes += patched.pointer(from.as_str()).map_or(0, |source| source.to_string().len());
        }
        if copied_bytes > COPIED_BYTES_MAX || depth_after(&patched, &operation, work)? > DEPTH_MAX {
            return Err(PatchError::unprocessable());
        }
        work.spend(shifted(&patched, &operation))?;
        // We own the copy, so there is nothing to roll back.
        json_patch::patch_unsafe(&mut patched, &[operation]).map_err(|_| PatchError::unprocessable())?;
    }
    Ok(patched)
}

/// Replacing a key that an object does not have adds it: upstream's library looks only into lists.
fn or_added(object: &Value, operation: PatchOperation) -> PatchOperation {
    match operation {
        PatchOperation::Replace(ReplaceOperation { path, value }) => {
            let text = path.as_str();
            let parent = text.rfind('/').and_then(|end| object.pointer(&text[..end]));
            if parent.is_some_and(Value::is_object) {
                PatchOperation::Add(AddOperation { path, value })
            } else {
                PatchOperation::Replace(ReplaceOperation { path, value })
            }
        }
        other => other,
    }
}

/// Returns the depth of the object at the place that an operation writes to, with what it writes there.
fn depth_after(object: &Value, operation: &PatchOperation, work: &Work) -> Result<usize, PatchError> {
    let written = match operation {
        PatchOperation::Add(add) => Some(&add.value),
        PatchOperation::Replace(replace) => Some(&replace.value),
        PatchOperation::Copy(copy) => object.pointer(copy.from.as_str()),
        PatchOperation::Move(from) => object.pointer(from.from.as_str()),
        PatchOperation::Remove(_) | PatchOperation::Test(_) => None,
    };
    match written {
        None => Ok(0),
        Some(written) => Ok(operation.path().count() + depth(written, work)?),
    }
}

fn depth(value: &Value, work: &Work) -> Result<usize, PatchError> {
    /// A node costs more than an element that is moved.
    const STEPS_PER_NODE: usize = 4;
    let mut deepest = 0;
    match value {
        Value::Array(elements) => {
            work.spend(elements.len() * STEPS_PER_NODE)?;
            for element in elements {
                deepest = deepest.max(depth(element, work)?);
            }
        }
        Value::Object(entries) => {
            work.spend(entries.len() * STEPS_PER_NODE)?;
            for entry in entries.values() {
                deepest = deepest.max(depth(entry, work)?);
            }
        }
        _ => return Ok(0),
    }
    Ok(1 + deepest)
}

/// Returns the maximum number of list elements that an operation shifts.
fn shifted(object: &Value, operation: &PatchOperation) -> usize {
    let elements_beside = |pointer: &str| {
        let list = pointer.rfind('/').and_then(|end| object.pointer(&pointer[..end]));
        list.and_then(Value::as_array).map_or(0, Vec::len)
    };
    let to = elements_beside(operation.path().as_str());
    match operation {
        PatchOperation::Move(from) => to + elements_beside(from.from.as_str()),
        _ => to,
    }
}

/// The operation with its value: one that is not written is null.
fn with_value(operation: &Value) -> Value {
    let mut operation = operation.clone();
    if let Some(fields) = operation.as_object_mut() {
        fields.entry("value").or_insert(Value::Null);
    }
    operation
}

/// The operations, with the types of their fields checked as upstream does before it looks at them.
fn operations(patch: &Value) -> Result<&[Value], PatchError> {
    let decoding = |sentence: String| PatchError::bad_request(format!("error decoding patch: {sentence}"));
    let operations = match patch {
        Value::Array(operations) => operations.as_slice(),
        Value::Null => &[],
        other => {
            let found = type_name(other);
            return Err(decoding(format!(
                "json: cannot unmarshal {found} into Go value of type []handlers.jsonPatchOp"
            )));
        }
    };
    for operation in operations {
        let Some(fields) = operation.as_object() else {
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
    }
    Ok(operations)
}

pub(super) fn findings(patch: &Decoded) -> Vec<String> {
    let mut findings = Findings::default();
    for duplicate in &patch.duplicates {
        findings.add(|| format!("json patch {duplicate}"));
    }
    for (index, operation) in patch.value.as_array().into_iter().flatten().enumerate() {
        for (name, _) in operation.as_object().into_iter().flatten() {
            if !FIELDS.contains(&name.as_str()) {
                findings.add(|| format!("json patch {}", unknown_field(&format!("[{index}].{}", shown_path(name)))));
            }
        }
    }
    findings.into_sentences()
}

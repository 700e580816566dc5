//! Patched objects and problems with them, as upstream's messages show them.

use std::collections::HashSet;

use serde_json::Value;

/// The pointers of what a patch has changed.
#[derive(Debug, Default)]
pub(crate) struct Reached {
    /// Objects that it reaches into.
    pub(crate) objects: HashSet<String>,
    /// Values that are its own.
    pub(crate) sent: HashSet<String>,
}

/// Returns the part of an object that a merge patch reaches.
pub(super) fn merged(original: &Value, patch: &Value) -> Reached {
    let mut reached = Reached::default();
    reach(original, patch, String::new(), &mut reached);
    reached
}

fn reach(original: &Value, patch: &Value, pointer: String, reached: &mut Reached) {
    let (Value::Object(original), Value::Object(patch)) = (original, patch) else {
        reached.sent.insert(pointer);
        return;
    };
    for (name, patch) in patch {
        let original = original.get(name).unwrap_or(&Value::Null);
        let escaped = name.replace('~', "~0").replace('/', "~1");
        reach(original, patch, format!("{pointer}/{escaped}"), reached);
    }
    reached.objects.insert(pointer);
}

/// Returns the part of an object that the operations of a JSON patch go through.
pub(super) fn traversed(patch: &Value) -> Reached {
    let mut objects = HashSet::from([String::new()]);
    let mut sent = HashSet::new();
    for operation in patch.as_array().into_iter().flatten() {
        sent.extend(operation["path"].as_str().map(str::to_owned));
        for field in ["path", "from"] {
            let mut pointer = operation[field].as_str().unwrap_or_default();
            while let Some((parent, _)) = pointer.rsplit_once('/') {
                objects.insert(parent.to_owned());
                pointer = parent;
            }
        }
    }
    Reached { objects, sent }
}

/// Returns upstream's error for a value of the wrong type in the result of a strategic merge patch, which it does not
/// decode from JSON: `fromUnstructured` of `apimachinery/pkg/runtime/converter.go`.
pub(super) fn converted(problem: &str) -> String {
    let parts = problem.strip_prefix("json: cannot unmarshal ").and_then(|rest| {
        let (found, rest) = rest.split_once(" into Go ")?;
        Some((found, rest.rsplit_once(" of type ")?.1))
    });
    let Some((found, wanted)) = parts else { return problem.to_owned() };
    let kind = match found {
        "string" => "string",
        "bool" => "bool",
        "object" => "map",
        "array" => "slice",
        number if number.trim_start_matches("number").contains(['.', 'e']) => "float64",
        _ => "int64",
    };
    let is_struct = wanted.rsplit_once('.').is_some_and(|(_, short)| crate::schema::has_struct(short));
    if wanted.starts_with("[]") {
        format!("cannot restore slice from {kind}")
    } else if wanted.starts_with("map[") || wanted.ends_with(".ResourceList") {
        format!("cannot restore map from {kind}")
    } else if is_struct {
        format!("cannot restore struct from: {kind}")
    } else {
        let is_text = wanted == "string" || wanted.contains('.');
        let is_number = wanted.starts_with("int") || wanted.starts_with("float");
        match kind {
            "int64" if is_text => format!("cannot convert {kind} to {wanted}"),
            "float64" if is_number => format!("cannot convert {kind} to {wanted}"),
            _ => format!("unrecognized type: {}", if is_text { "string" } else { wanted }),
        }
    }
}

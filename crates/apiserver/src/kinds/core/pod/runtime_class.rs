//! What the class of a runtime adds to new pods: the plug-in RuntimeClass of `plugin/pkg/admission/runtimeclass`.

use serde_json::{Map, Value};

use crate::kinds::shared::json::{entries, is_empty, is_set, items, number, object_mut, same, set, text};
use crate::registry::admission::{Lookup, Refused};

/// Sets the overhead of the class, and adds its node selector and tolerations.
pub(super) fn admit(lookup: &dyn Lookup, pod: &mut Value) -> Result<(), Refused> {
    let Some(spec) = object_mut(pod, "spec") else { return Ok(()) };
    let class = match spec["runtimeClassName"].as_str() {
        Some(name) => lookup
            .get("node.k8s.io", "runtimeclasses", "", name)
            .ok_or_else(|| Refused::because(format!("pod rejected: RuntimeClass {name:?} not found")))?,
        None => Value::Null,
    };
    overhead(&class["overhead"], spec)?;
    if is_set(&class["scheduling"]) {
        scheduling(&class["scheduling"], spec)?;
    }
    Ok(())
}

fn overhead(of_class: &Value, spec: &mut Value) -> Result<(), Refused> {
    let given = &spec["overhead"];
    if !is_set(of_class) {
        let problem = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
        return if is_empty(given) { Ok(()) } else { Err(Refused::because(problem.to_owned())) };
    }
    let fixed = &of_class["podFixed"];
    if !is_empty(given) && !same(given, fixed) {
        let problem = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
        return Err(Refused::because(problem.to_owned()));
    }
    if !is_empty(fixed) {
        set(spec, "overhead", fixed.clone());
    }
    Ok(())
}

fn scheduling(of_class: &Value, spec: &mut Value) -> Result<(), Refused> {
    let mut selector: Map<String, Value> = spec["nodeSelector"].as_object().cloned().unwrap_or_default();
    for (key, wanted) in entries(&of_class["nodeSelector"]) {
        if let Some(given) = selector.insert(key.to_owned(), wanted.clone()).filter(|given| given != wanted) {
            return Err(Refused::because(format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; pod.spec.nodeSelector[{key}] = {}",
                text(wanted),
                text(&given)
            )));
        }
    }
    if !selector.is_empty() {
        set(spec, "nodeSelector", selector);
    }
    let tolerations = merged(&[items(&spec["tolerations"]), items(&of_class["tolerations"])].concat());
    if !tolerations.is_empty() {
        set(spec, "tolerations", tolerations);
    }
    Ok(())
}

/// Returns tolerations without those that another one covers; the first of equal ones stays.
fn merged(all: &[Value]) -> Vec<Value> {
    let mut merged: Vec<Value> = Vec::new();
    for (index, one) in all.iter().enumerate() {
        let is_kept = merged.iter().any(|kept| covers(kept, one));
        let comes_later = all[index + 1..].iter().any(|later| !same(one, later) && covers(later, one));
        if !is_kept && !comes_later {
            merged.push(one.clone());
        }
    }
    merged
}

/// Whether a toleration tolerates all that the other one does.
fn covers(wide: &Value, narrow: &Value) -> bool {
    if same(wide, narrow) {
        return true;
    }
    let is = |field: &str| text(&wide[field]) == text(&narrow[field]);
    let operator = text(&wide["operator"]);
    let any_key = is_empty(&wide["key"]) && operator == "Exists";
    let is_short = text(&wide["effect"]) == "NoExecute"
        && is_set(&wide["tolerationSeconds"])
        && (!is_set(&narrow["tolerationSeconds"])
            || number(&narrow["tolerationSeconds"]) > number(&wide["tolerationSeconds"]));
    if !(is("key") || any_key) || !(is("effect") || is_empty(&wide["effect"])) || is_short {
        return false;
    }
    match operator {
        "Equal" | "" => text(&narrow["operator"]) == "Equal" && is("value"),
        "Exists" => true,
        _ => false,
    }
}

//! What default admission adds to pods: the plug-ins LimitRanger, Priority, DefaultTolerationSeconds, RuntimeClass and PodTopologyLabels of
//! `plugin/pkg/admission`.

use serde_json::{Value, json};

use super::{runtime_class, topology};
use crate::kinds::scheduling::{SYSTEM_CLASSES, global_default};
use crate::kinds::shared::json::{
    default_to, each_mut, entries, is_empty, is_set, items, number, object_mut, set, text, with,
};
use crate::registry::admission::{Lookup, Refused};

/// Adds defaults of LimitRanges, the priority of the pod's class, tolerations of lost nodes, what its runtime needs, and the zone
/// of its node.
pub(crate) fn mutate(lookup: &dyn Lookup, pod: &mut Value, old: Option<&Value>) -> Result<(), Refused> {
    if old.is_none() {
        limits(lookup, pod);
    }
    priority(lookup, pod, old)?;
    tolerations(pod);
    match old {
        Some(_) => Ok(()),
        None => {
            runtime_class::admit(lookup, pod)?;
            if let Some(node) = pod["spec"]["nodeName"].as_str().filter(|node| !node.is_empty())
                && let Some(node) = lookup.get("", "nodes", "", node)
            {
                topology::label(pod, |label| node["metadata"]["labels"][label].as_str().map(str::to_owned));
            }
            Ok(())
        }
    }
}

/// Whether a write may count for quotas: a new pod, one that gets or loses a deadline, and a resize.
pub(crate) fn is_counted(subresource: &str, new: &Value, old: Option<&Value>) -> bool {
    let has_deadline = |pod: &Value| pod["spec"]["activeDeadlineSeconds"].as_i64().is_some_and(|seconds| seconds >= 0);
    match (subresource, old) {
        ("", None) | ("resize", Some(_)) => true,
        ("", Some(old)) => has_deadline(new) != has_deadline(old),
        _ => false,
    }
}

fn system_priority(name: &str) -> Option<i64> {
    SYSTEM_CLASSES.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

fn priority(lookup: &dyn Lookup, pod: &mut Value, old: Option<&Value>) -> Result<(), Refused> {
    let Some(spec) = object_mut(pod, "spec") else { return Ok(()) };
    if let Some(old) = old {
        for field in ["priority", "preemptionPolicy"] {
            if is_set(&old["spec"][field]) {
                default_to(spec, field, old["spec"][field].clone());
            }
        }
        return Ok(());
    }
    let mut name = text(&spec["priorityClassName"]).to_owned();
    let class = if name.is_empty() {
        let class = global_default(lookup);
        if let Some(class) = &class {
            text(&class["metadata"]["name"]).clone_into(&mut name);
        }
        class
    } else {
        let class = lookup.get("scheduling.k8s.io", "priorityclasses", "", &name);
        let class = class.or_else(|| system_priority(&name).map(|value| json!({ "value": value })));
        Some(class.ok_or_else(|| Refused::because(format!("no PriorityClass with name {name} was found")))?)
    };
    let value = class.as_ref().map_or(0, |class| number(&class["value"]));
    let policy = class.as_ref().map_or("", |class| text(&class["preemptionPolicy"]));
    let policy = if policy.is_empty() { "PreemptLowerPriority" } else { policy };
    if let Some(given) = spec["priority"].as_i64().filter(|given| *given != value) {
        return Err(Refused::because(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller \
             computed {value} from the given PriorityClass name"
        )));
    }
    if let Some(given) = spec["preemptionPolicy"].as_str().filter(|given| *given != policy) {
        return Err(Refused::because(format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission \
             controller computed {policy} from the given PriorityClass name"
        )));
    }
    if !name.is_empty() {
        set(spec, "priorityClassName", name);
    }
    set(spec, "priority", value);
    set(spec, "preemptionPolicy", policy);
    Ok(())
}

/// A pod stays five minutes on a node that is lost, unless it says otherwise.
fn tolerations(pod: &mut Value) {
    const SECONDS: i64 = 300;
    let Some(spec) = object_mut(pod, "spec") else { return };
    let mut tolerations = items(&spec["tolerations"]).to_vec();
    let given = tolerations.len();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerates = |it: &Value| {
            matches!(text(&it["effect"]), "" | "NoExecute") && (text(&it["key"]) == key || is_empty(&it["key"]))
        };
        if !tolerations[..given].iter().any(tolerates) {
            tolerations.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": SECONDS,
            }));
        }
    }
    if tolerations.len() > given {
        set(spec, "tolerations", tolerations);
    }
}

/// Sets the resources of containers that set none, from the limit ranges of the namespace.
fn limits(lookup: &dyn Lookup, pod: &mut Value) {
    const ANNOTATION: &str = "kubernetes.io/limit-ranger";
    let namespace = text(&pod["metadata"]["namespace"]).to_owned();
    let ranges = lookup.list("", "limitranges", &namespace);
    for range in ranges {
        let mut done = Vec::new();
        let Some(spec) = object_mut(pod, "spec") else { return };
        for (list, name) in [("containers", "container"), ("initContainers", "init container")] {
            each_mut(spec, list, |container| {
                let of = text(&container["name"]).to_owned();
                for (from, to, what) in [("defaultRequest", "requests", "request"), ("default", "limits", "limit")] {
                    let mut filled = Vec::new();
                    for limit in items(&range["spec"]["limits"]).iter().filter(|it| text(&it["type"]) == "Container") {
                        for (resource, amount) in entries(&limit[from]) {
                            if container["resources"][to][resource].is_null() {
                                with(container, "resources", |resources| {
                                    with(resources, to, |amounts| set(amounts, resource, amount.clone()));
                                });
                                filled.push(resource);
                            }
                        }
                    }
                    if !filled.is_empty() {
                        done.push(format!("{} {what} for {name} {of}", filled.join(", ")));
                    }
                }
            });
        }
        if !done.is_empty() {
            let note = format!("LimitRanger plugin set: {}", done.join("; "));
            with(pod, "metadata", |metadata| {
                with(metadata, "annotations", |annotations| set(annotations, ANNOTATION, note));
            });
        }
    }
}

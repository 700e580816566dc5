//! What upstream's default admission adds to objects.
//!
//! 1. [`admit`] runs after defaults and before [`prepare`](super::prepare), on creates and on updates, as upstream's
//!    mutating plug-ins do: a pod's quality of service counts what a LimitRange has added.
//! 2. It reads other objects through [`Lookup`] and changes only the one it is given.
//!
//! Follows the plug-ins Priority, DefaultTolerationSeconds, LimitRanger, TaintNodesByCondition, DefaultStorageClass,
//! StorageObjectInUseProtection and DefaultIngressClass of `plugin/pkg/admission`. ServiceAccount, quotas and webhooks are
//! not here yet.

use serde_json::{Value, json};

use super::json::{default_to, each_mut, entries, flag, is_empty, is_set, items, number, object_mut, set, text, with};

/// What admission needs to know of other objects.
pub trait Lookup {
    /// The object of this name; the namespace is empty if it has none.
    fn get(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Value>;
    /// All objects of a namespace, or of the cluster, in the order of their names.
    fn list(&self, group: &str, resource: &str, namespace: &str) -> Vec<Value>;
    /// Whether claims and volumes get the finalizers that protect them while they are in use.
    fn protects_storage(&self) -> bool {
        true
    }
}

/// Why an object is refused: 403 `Forbidden`, with this as the end of the message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// Adds to an object what default admission adds.
///
/// # Errors
/// The object asks for something that is not there or not its own to decide.
pub fn admit(
    lookup: &dyn Lookup,
    group: &str,
    kind: &str,
    new: &mut Value,
    old: Option<&Value>,
) -> Result<(), Refused> {
    match (group, kind, old) {
        ("", "Pod", _) => {
            if old.is_none() {
                limits(lookup, new);
            }
            priority(lookup, new, old)?;
            tolerations(new);
        }
        ("", "Node", None) => not_ready_taint(new),
        ("", "PersistentVolumeClaim", None) => {
            storage_class(lookup, new);
            if lookup.protects_storage() {
                finalizer(new, "kubernetes.io/pvc-protection");
            }
        }
        ("", "PersistentVolume", None) if lookup.protects_storage() => finalizer(new, "kubernetes.io/pv-protection"),
        ("networking.k8s.io", "Ingress", None) => ingress_class(lookup, new),
        _ => {}
    }
    Ok(())
}

/// The classes that are always there.
fn system_priority(name: &str) -> Option<i64> {
    match name {
        "system-cluster-critical" => Some(2_000_000_000),
        "system-node-critical" => Some(2_000_001_000),
        _ => None,
    }
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
        let classes = lookup.list("scheduling.k8s.io", "priorityclasses", "").into_iter();
        let class = classes.filter(|class| flag(&class["globalDefault"])).min_by_key(|class| number(&class["value"]));
        if let Some(class) = &class {
            text(&class["metadata"]["name"]).clone_into(&mut name);
        }
        class
    } else {
        let class = lookup.get("scheduling.k8s.io", "priorityclasses", "", &name);
        let class = class.or_else(|| system_priority(&name).map(|value| json!({ "value": value })));
        Some(class.ok_or_else(|| Refused(format!("no PriorityClass with name {name} was found")))?)
    };
    let value = class.as_ref().map_or(0, |class| number(&class["value"]));
    let policy = class.as_ref().map_or("", |class| text(&class["preemptionPolicy"]));
    let policy = if policy.is_empty() { "PreemptLowerPriority" } else { policy };
    if let Some(given) = spec["priority"].as_i64().filter(|given| *given != value) {
        return Err(Refused(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller \
             computed {value} from the given PriorityClass name"
        )));
    }
    if let Some(given) = spec["preemptionPolicy"].as_str().filter(|given| *given != policy) {
        return Err(Refused(format!(
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

/// What containers of this namespace ask for if they do not say.
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

/// A new node takes no pods until its controller finds it ready.
fn not_ready_taint(node: &mut Value) {
    let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    with(node, "spec", |spec| {
        let mut taints = items(&spec["taints"]).to_vec();
        let is_there = |it: &Value| it["key"] == taint["key"] && it["effect"] == taint["effect"];
        if !taints.iter().any(is_there) {
            taints.push(taint.clone());
            set(spec, "taints", taints);
        }
    });
}

fn finalizer(object: &mut Value, finalizer: &str) {
    with(object, "metadata", |metadata| {
        let mut finalizers = items(&metadata["finalizers"]).to_vec();
        if !finalizers.iter().any(|it| text(it) == finalizer) {
            finalizers.push(finalizer.into());
            set(metadata, "finalizers", finalizers);
        }
    });
}

/// The newest of the classes that are marked as default.
fn default_class(lookup: &dyn Lookup, group: &str, resource: &str, annotations: &[&str]) -> Option<String> {
    let is_default = |class: &Value| {
        annotations.iter().any(|annotation| text(&class["metadata"]["annotations"][*annotation]) == "true")
    };
    let classes = lookup.list(group, resource, "").into_iter().filter(is_default);
    let time = |class: &Value| text(&class["metadata"]["creationTimestamp"]).to_owned();
    // Of those made in the same second, the first by name.
    let newest = classes.reduce(|best, class| if time(&class) > time(&best) { class } else { best });
    newest.map(|class| text(&class["metadata"]["name"]).to_owned())
}

fn storage_class(lookup: &dyn Lookup, claim: &mut Value) {
    const BETA: &str = "volume.beta.kubernetes.io/storage-class";
    let marks = ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
    if is_set(&claim["spec"]["storageClassName"]) || is_set(&claim["metadata"]["annotations"][BETA]) {
        return;
    }
    if let Some(class) = default_class(lookup, "storage.k8s.io", "storageclasses", &marks) {
        with(claim, "spec", |spec| set(spec, "storageClassName", class));
    }
}

fn ingress_class(lookup: &dyn Lookup, ingress: &mut Value) {
    const LEGACY: &str = "kubernetes.io/ingress.class";
    if is_set(&ingress["spec"]["ingressClassName"]) || is_set(&ingress["metadata"]["annotations"][LEGACY]) {
        return;
    }
    let marks = ["ingressclass.kubernetes.io/is-default-class"];
    if let Some(class) = default_class(lookup, "networking.k8s.io", "ingressclasses", &marks) {
        with(ingress, "spec", |spec| set(spec, "ingressClassName", class));
    }
}

#[cfg(test)]
mod tests;

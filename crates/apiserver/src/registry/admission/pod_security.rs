//! The plug-in PodSecurity: the labels `pod-security.kubernetes.io/…` of a namespace act on its pods, and warn about workloads.
//!
//! 1. A pod that is worse than the enforced level is refused, when it is created and when an update changes its images or adds
//!    containers; who writes one that is worse than the level of warnings is warned, and so is who writes the template of one.
//! 2. Unknown levels and versions in labels are refused in new namespaces and in changed labels.
//! 3. Who raises the enforced level hears which pods would not have been let in: at most [`PODS_MAX`] are looked at.
//! 4. There is no audit log, hence no `audit`.
//!
//! Follows `admission/admission.go` of `k8s.io/pod-security-admission` 0.37 without a configuration: all is allowed by default, and
//! nobody is exempt.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;
use steersman_base::ObjectKey;

use crate::kinds::core::pod::standards::level::{Level, LevelVersion, Policy, policy_of};
use crate::kinds::core::pod::standards::{Findings, Pod, evaluate};
use crate::kinds::shared::json::{flag, items, text};
use crate::registry::list::list_all;
use crate::registry::object_meta::meta_text;
use crate::registry::{Call, Registry};
use crate::status::Status;

/// The maximum number of pods that are looked at when the level of a namespace changes.
const PODS_MAX: usize = 3000;
/// The subresources of pods that change what the standards are about.
const PARTS: [&str; 3] = ["", "ephemeralcontainers", "resize"];

/// The part of the objects of a kind that the plug-in looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// Nothing.
    None,
    /// The object is a namespace: its labels.
    Namespace,
    /// The object is a pod.
    Pod,
    /// The object has the template of pods, at this JSON pointer.
    Template(&'static str),
}

/// Refuses a write that the standards forbid, and adds warnings.
pub(in crate::registry) fn check(
    registry: &Registry,
    call: &Call,
    new: &Value,
    old: Option<&Value>,
    warnings: &mut Vec<String>,
) -> Result<(), Status> {
    match call.row.rules.admission.pod_security {
        Subject::None => Ok(()),
        Subject::Namespace if call.subresource.is_empty() => check_namespace(registry, call, new, old, warnings),
        Subject::Pod if PARTS.contains(&&*call.subresource) => {
            let Some(policy) = policy_in(registry, &call.namespace) else { return Ok(()) };
            if old.is_some_and(|old| !is_significant(new, old)) {
                return Ok(());
            }
            check_pod(call, policy, new, warnings)
        }
        Subject::Template(pointer) if call.subresource.is_empty() => {
            let Some(template) = new.pointer(pointer).filter(|template| template.is_object()) else { return Ok(()) };
            let Some(policy) = policy_in(registry, &call.namespace) else { return Ok(()) };
            warnings.extend(warning(policy.warn, &judged(policy.warn, template)));
            Ok(())
        }
        Subject::Namespace | Subject::Pod | Subject::Template(_) => Ok(()),
    }
}

fn check_pod(call: &Call, policy: Policy, pod: &Value, warnings: &mut Vec<String>) -> Result<(), Status> {
    let Policy { enforce, warn } = policy;
    let findings = judged(enforce, pod);
    if !findings.is_empty() {
        let why = format!("violates PodSecurity \"{enforce}\": {}", findings.details());
        return Err(Status::forbidden(call.row.target(), meta_text(pod, "name"), &why));
    }
    if warn != enforce {
        warnings.extend(warning(warn, &judged(warn, pod)));
    }
    Ok(())
}

fn check_namespace(
    registry: &Registry,
    call: &Call,
    new: &Value,
    old: Option<&Value>,
    warnings: &mut Vec<String>,
) -> Result<(), Status> {
    let policy_of =
        |namespace: &Value| policy_of(|label| namespace["metadata"]["labels"].get(label)?.as_str().map(str::to_owned));
    let (policy, errors) = policy_of(new);
    let before = old.map(policy_of);
    let is_known = before.as_ref().is_some_and(|(_, before)| *before == errors);
    if !errors.is_empty() && !is_known {
        return Err(Status::invalid(call.row.kind(), meta_text(new, "name"), &errors));
    }
    if let Some((before, _)) = before
        && is_stricter(policy.enforce, before.enforce)
    {
        warnings.extend(about_existing(registry, meta_text(new, "name"), policy.enforce));
    }
    Ok(())
}

/// Whether pods that one level has let in may not be let in by another.
fn is_stricter(new: LevelVersion, old: LevelVersion) -> bool {
    new != old && new.level != Level::Privileged && (new.version != old.version || new.level > old.level)
}

/// Returns what the pods of a namespace have that a level forbids.
fn about_existing(registry: &Registry, namespace: &str, level: LevelVersion) -> Vec<String> {
    let Some(row) = registry.row("", "v1", "pods") else { return Vec::new() };
    let pods = list_all(registry, &row, namespace);
    let pods: Vec<Value> = pods.iter().filter_map(|pod| pod.parse().ok()).collect();
    warnings_about(namespace, level, &pods)
}

fn warnings_about(namespace: &str, level: LevelVersion, pods: &[Value]) -> Vec<String> {
    // One pod of each owner comes before the others, which are alike.
    let mut owners = HashSet::new();
    let (first, others): (Vec<&Value>, Vec<&Value>) = pods.iter().partition(|pod| {
        let owner = items(&pod["metadata"]["ownerReferences"]).iter().find(|owner| flag(&owner["controller"]));
        owner.is_none_or(|owner| owners.insert(text(&owner["uid"])))
    });
    let mut found: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for pod in first.into_iter().chain(others).take(PODS_MAX) {
        let findings = judged(level, pod);
        if !findings.is_empty() {
            found.entry(findings.reasons()).or_default().push(meta_text(pod, "name"));
        }
    }
    let mut warnings = Vec::new();
    if pods.len() > PODS_MAX {
        let of = pods.len();
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {PODS_MAX} of {of} existing pods"
        ));
    }
    if !found.is_empty() {
        warnings.push(format!(
            "existing pods in namespace {namespace:?} violate the new PodSecurity enforce level \"{level}\""
        ));
    }
    let mut shown: Vec<String> = found
        .into_iter()
        .map(|(reasons, mut names)| {
            names.sort_unstable();
            match &names[..] {
                [] => reasons,
                [name] => format!("{name}: {reasons}"),
                [name, _] => format!("{name} (and 1 other pod): {reasons}"),
                [name, others @ ..] => format!("{name} (and {} other pods): {reasons}", others.len()),
            }
        })
        .collect();
    shown.sort();
    warnings.append(&mut shown);
    warnings
}

fn judged(level: LevelVersion, pod: &Value) -> Findings {
    evaluate(level, Pod { annotations: &pod["metadata"]["annotations"], spec: &pod["spec"] })
}

fn warning(level: LevelVersion, findings: &Findings) -> Option<String> {
    (!findings.is_empty()).then(|| format!("would violate PodSecurity \"{level}\": {}", findings.details()))
}

/// Returns the policy of a namespace; none if all is allowed. The labels are at hand, so the object is not parsed.
fn policy_in(registry: &Registry, namespace: &str) -> Option<Policy> {
    let row = registry.row("", "v1", "namespaces")?;
    let namespace = registry.store.get(&row.collection, &ObjectKey::cluster(namespace))?;
    let (policy, _) = policy_of(|label| namespace.labels.get(label).map(ToString::to_string));
    let is_free = |level: LevelVersion| level.level == Level::Privileged;
    (!is_free(policy.enforce) || !is_free(policy.warn)).then_some(policy)
}

/// Whether an update of a pod changes what the standards are about: of what can change, images and the containers there are.
fn is_significant(new: &Value, old: &Value) -> bool {
    let of = |pod: &Value, list: &str| -> Vec<Value> {
        items(&pod["spec"][list]).iter().map(|container| container["image"].clone()).collect()
    };
    if ["containers", "initContainers"].iter().any(|list| of(new, list) != of(old, list)) {
        return true;
    }
    let known = items(&old["spec"]["ephemeralContainers"]);
    items(&new["spec"]["ephemeralContainers"]).iter().any(|container| {
        let known = known.iter().find(|known| known["name"] == container["name"]);
        known.is_none_or(|known| known["image"] != container["image"])
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_images_and_further_containers_have_a_pod_looked_at_again() {
        let pod = |image: &str, ephemeral: &[(&str, &str)]| {
            let ephemeral: Vec<Value> =
                ephemeral.iter().map(|(name, image)| json!({"name": name, "image": image})).collect();
            json!({"spec": {"containers": [{"name": "a", "image": image}], "ephemeralContainers": ephemeral}})
        };
        let mut relabelled = pod("i", &[]);
        relabelled["metadata"] = json!({"labels": {"a": "b"}});
        let rows = [
            (pod("i", &[]), pod("i", &[]), false),
            (pod("i", &[]), relabelled, false),
            (pod("i", &[]), pod("j", &[]), true),
            (pod("i", &[]), pod("i", &[("e", "i")]), true),
            (pod("i", &[("e", "i")]), pod("i", &[("e", "i")]), false),
            (pod("i", &[("e", "i")]), pod("i", &[("e", "j")]), true),
        ];
        for (old, new, want) in rows {
            assert_eq!(is_significant(&new, &old), want, "{old} -> {new}");
        }
    }

    #[test]
    fn pods_are_looked_at_again_only_if_the_new_level_may_forbid_more() {
        let rows = [
            ("privileged:latest", "baseline:latest", true),
            ("baseline:latest", "privileged:latest", false),
            ("restricted:latest", "baseline:latest", false),
            ("restricted:v1.20", "baseline:latest", true),
            ("baseline:latest", "baseline:latest", false),
            ("baseline:v1.20", "baseline:v1.21", true),
            ("privileged:v1.20", "privileged:v1.21", false),
        ];
        for (old, new, want) in rows {
            assert_eq!(is_stricter(LevelVersion::of(new), LevelVersion::of(old)), want, "{old} -> {new}");
        }
    }

    #[test]
    fn pods_that_are_wrong_in_the_same_way_are_named_together() {
        let pod = |name: &str, owner: Option<&str>, host: &str| {
            let owners: Vec<Value> = owner.iter().map(|uid| json!({"uid": uid, "controller": true})).collect();
            json!({"metadata": {"name": name, "ownerReferences": owners}, "spec": {host: true}})
        };
        let pods = [
            pod("d", None, "hostPID"),
            pod("c", Some("1"), "hostNetwork"),
            pod("b", Some("1"), "hostNetwork"),
            pod("a", None, "other"),
        ];
        let level = LevelVersion::of("baseline:v1.3");
        let first = "existing pods in namespace \"n\" violate the new PodSecurity enforce level \"baseline:v1.3\"";
        assert_eq!(warnings_about("n", level, &pods), [first, "b (and 2 other pods): host namespaces"]);
        let many: Vec<Value> = (0..3002).map(|at| pod(&format!("p{at:04}"), Some("1"), "hostIPC")).collect();
        assert_eq!(
            warnings_about("n", level, &many),
            [
                "new PodSecurity enforce level only checked against the first 3000 of 3002 existing pods",
                first,
                "p0000 (and 2999 other pods): host namespaces",
            ]
        );
        assert!(warnings_about("n", level, &pods[3..]).is_empty());
    }
}

//! Warnings about pods and the templates of pods: `pkg/api/pod/warnings.go`. They are sent to the client that writes an object that is
//! valid, and does not do what it seems to.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use steersman_base::validation::dns1123_label;

use crate::kinds::shared::check;
use crate::kinds::shared::json::{entries, is_empty, is_set, items, number, text};

const NODE_LABELS: [(&str, &str); 8] = [
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    ("failure-domain.beta.kubernetes.io/zone", "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"),
    ("beta.kubernetes.io/instance-type", "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    ("scheduler.alpha.kubernetes.io/preferAvoidPods", "deprecated since v1.22; use Taints and Tolerations instead"),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
];

const VOLUMES: [(&str, &str); 9] = [
    ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

const ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    ("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
    ("security.alpha.kubernetes.io/unsafe-sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
];

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Warns about a new pod. Nobody is warned about the change of one.
pub(crate) fn pod(new: &Value, old: Option<&Value>, warnings: &mut Vec<String>) {
    if old.is_none() {
        name(new, "the Pod's hostname", warnings);
        spec_and_meta("", new, warnings);
    }
}

/// Warns about a new workload, or about one whose specification changes: about its name, and its template.
pub(crate) fn workload(new: &Value, old: Option<&Value>, warnings: &mut Vec<String>) {
    if old.is_none() {
        name(new, "Pod names and hostnames", warnings);
    }
    template_at("spec.template", &new["spec"]["template"], (new, old), warnings);
}

/// Warns about a template of a new object, or of one whose specification changes.
pub(crate) fn template_at(
    path: &str,
    template: &Value,
    (new, old): (&Value, Option<&Value>),
    warnings: &mut Vec<String>,
) {
    let generation = |object: &Value| number(&object["metadata"]["generation"]);
    if old.is_none_or(|old| generation(old) != generation(new)) {
        spec_and_meta(&format!("{path}."), template, warnings);
    }
}

/// Warns about a name from which hostnames are made.
pub(crate) fn name(object: &Value, used_in: &str, warnings: &mut Vec<String>) {
    let problems = dns1123_label(text(&object["metadata"]["name"]));
    if !problems.is_empty() {
        warnings.push(format!(
            "metadata.name: this is used in {used_in}, which can result in surprising behavior; a DNS label is \
             recommended: [{}]",
            problems.join(" ")
        ));
    }
}

fn node_label(key: &str) -> Option<&'static str> {
    NODE_LABELS.iter().find(|(known, _)| *known == key).map(|(_, message)| *message)
}

fn spec_and_meta(at: &str, template: &Value, warnings: &mut Vec<String>) {
    let spec = &template["spec"];
    for (key, _) in entries(&spec["nodeSelector"]) {
        if let Some(message) = node_label(key) {
            warnings.push(format!("{at}spec.nodeSelector[{key}]: {message}"));
        }
    }
    for (index, constraint) in items(&spec["topologySpreadConstraints"]).iter().enumerate() {
        let at = format!("{at}spec.topologySpreadConstraints[{index}]");
        let key = text(&constraint["topologyKey"]);
        if let Some(message) = node_label(key) {
            warnings.push(format!("{at}.topologyKey: {key} is {message}"));
        }
        null_selector(constraint, &at, warnings);
    }
    for (key, message) in ANNOTATIONS {
        if is_set(&template["metadata"]["annotations"][key]) {
            warnings.push(format!("{at}metadata.annotations[{key}]: {message}"));
        }
    }
    for (index, volume) in items(&spec["volumes"]).iter().enumerate() {
        for (kind, message) in VOLUMES.iter().filter(|(kind, _)| is_set(&volume[*kind])) {
            // Upstream names the field of its Go struct.
            let kind = if *kind == "storageos" { "storageOS" } else { kind };
            warnings.push(format!("{at}spec.volumes[{index}].{kind}: {message}"));
        }
    }
    duplicates(&spec["hostAliases"], "ip", &format!("{at}spec.hostAliases"), warnings);
    duplicates(&spec["imagePullSecrets"], "name", &format!("{at}spec.imagePullSecrets"), warnings);
    for (index, _) in items(&spec["imagePullSecrets"]).iter().enumerate().filter(|(_, it)| is_empty(&it["name"])) {
        warnings.push(format!("{at}spec.imagePullSecrets[{index}].name: invalid empty name \"\""));
    }
    fractions(&spec["overhead"], &["memory", "ephemeral-storage"], &format!("{at}spec.overhead"), warnings);

    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let containers: Vec<(String, &Value)> = lists
        .iter()
        .flat_map(|list| {
            let path = move |index: usize| format!("{at}spec.{list}[{index}]");
            items(&spec[list]).iter().enumerate().map(move |(index, container)| (path(index), container))
        })
        .collect();
    for (at, container) in &containers {
        for resource in ["memory", "ephemeral-storage"] {
            for list in ["limits", "requests"] {
                fractions(&container["resources"][list], &[resource], &format!("{at}.resources.{list}"), warnings);
            }
        }
        variables(&container["env"], at, warnings);
    }
    ports(&containers, warnings);
    if number(&spec["terminationGracePeriodSeconds"]) < 0 {
        warnings.push(format!(
            "{at}spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"
        ));
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let terms = &spec["affinity"][kind];
        let at = format!("{at}spec.affinity.{kind}");
        for (index, term) in items(&terms[REQUIRED]).iter().enumerate() {
            null_selector(term, &format!("{at}.{REQUIRED}[{index}]"), warnings);
        }
        for (index, term) in items(&terms[PREFERRED]).iter().enumerate() {
            null_selector(&term["podAffinityTerm"], &format!("{at}.{PREFERRED}[{index}].podAffinityTerm"), warnings);
        }
    }
}

fn null_selector(term: &Value, at: &str, warnings: &mut Vec<String>) {
    if !is_set(&term["labelSelector"]) {
        warnings.push(format!("{at}.labelSelector: a null labelSelector results in matching no pod"));
    }
}

fn duplicates(list: &Value, field: &str, at: &str, warnings: &mut Vec<String>) {
    let mut seen = Vec::new();
    for (index, value) in items(list).iter().map(|item| text(&item[field])).enumerate() {
        if seen.contains(&value) {
            warnings.push(format!("{at}[{index}].{field}: duplicate {field} {value:?}"));
        } else {
            seen.push(value);
        }
    }
}

/// Nobody has a part of a byte.
fn fractions(amounts: &Value, resources: &[&str], at: &str, warnings: &mut Vec<String>) {
    for resource in resources {
        if let Some(amount) = check::quantity(&amounts[*resource]).filter(|amount| amount.milli_value() % 1000 != 0) {
            let shown = amount.to_string();
            warnings.push(format!("{at}[{resource}]: fractional byte value {shown:?} is invalid, must be an integer"));
        }
    }
}

/// A variable that is defined again hides the one before, unless it is made from it.
fn variables(list: &Value, at: &str, warnings: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for (index, variable) in items(list).iter().enumerate() {
        let name = text(&variable["name"]);
        if seen.insert(name) {
            continue;
        }
        let reference = format!("$({name})");
        let value = text(&variable["value"]);
        let is_made_from_it = !is_set(&variable["valueFrom"]) && value != reference && value.contains(&reference);
        if !is_made_from_it {
            warnings.push(format!(
                "{at}.env[{index}]: hides previous definition of {name:?}, which may be dropped when using apply"
            ));
        }
    }
}

fn ports(containers: &[(String, &Value)], warnings: &mut Vec<String>) {
    let all = || {
        containers.iter().flat_map(|(at, container)| {
            items(&container["ports"])
                .iter()
                .enumerate()
                .map(move |(index, port)| (format!("{at}.ports[{index}]"), port))
        })
    };
    let mut seen: BTreeMap<(i64, &str), Vec<(String, &Value)>> = BTreeMap::new();
    for (at, port) in all() {
        let others = seen.entry((number(&port["containerPort"]), text(&port["protocol"]))).or_default();
        for (other_at, other) in others.iter() {
            let host = |port: &Value| number(&port["hostPort"]);
            let ip = |port: &Value| text(&port["hostIP"]).to_owned();
            let problem = if ip(port) == ip(other) && host(port) == host(other) {
                "duplicate"
            } else if host(port) == 0 || host(other) == 0 {
                "overlapping"
            } else if host(port) == host(other) && (ip(port).is_empty() != ip(other).is_empty()) {
                "dangerously ambiguous"
            } else {
                continue;
            };
            warnings.push(format!("{at}: {problem} port definition with {other_at}"));
        }
        others.push((at, port));
    }
    let mut names: BTreeMap<&str, String> = BTreeMap::new();
    for (at, port) in all().filter(|(_, port)| !is_empty(&port["name"])) {
        let name = text(&port["name"]);
        match names.get(name) {
            Some(other) => warnings.push(format!(
                "{at}: duplicate port name {name:?} with {other}, services and probes that select ports by name will use \
                 {other}"
            )),
            None => drop(names.insert(name, at)),
        }
    }
}

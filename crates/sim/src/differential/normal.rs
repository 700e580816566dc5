//! Objects without what differs between any two clusters: uids, versions, times, addresses, keys, and generated parts of names.
//!
//! Pure. The API server and the controllers generate parts of names from an alphabet without vowels, so that they are recognised by
//! their form; names in the load have vowels.

use regex::Regex;
use serde_json::Value;

/// The rules that replace texts, in order.
#[derive(Debug)]
pub struct Normal(Vec<(Regex, &'static str)>);

/// The letters of generated names.
const LETTERS: &str = "[bcdfghjklmnpqrstvwxz2456789]";
/// Fields of `metadata` that say nothing about the work of a controller.
const META: [&str; 6] = ["uid", "resourceVersion", "managedFields", "creationTimestamp", "selfLink", "generation"];
/// Labels, and fields, whose values are hashes.
const HASHES: [&str; 4] =
    ["pod-template-hash", "controller-revision-hash", "controller.kubernetes.io/hash", "pod-template-generation"];
/// Fields, labels and annotations that follow from the scheduler's choices, or from versions.
const MASKED: [&str; 7] = [
    // Which of equal devices is given is the scheduler's choice.
    "device",
    "zone",
    "hostIP",
    "hostIPs",
    "topology.kubernetes.io/zone",
    "volume.kubernetes.io/selected-node",
    "resourceVersion",
];
/// Lists whose order means nothing.
const SETS: [&str; 16] = [
    "servedVersions",
    "decodableVersions",
    "conditions",
    "endpoints",
    "addresses",
    "notReadyAddresses",
    "ownerReferences",
    "finalizers",
    "taints",
    "volumesAttached",
    "volumesInUse",
    "active",
    "reservedFor",
    "subsets",
    "secrets",
    "ports",
];

// === impl Normal ===

impl Default for Normal {
    fn default() -> Self {
        Self::new()
    }
}

impl Normal {
    /// Compiles the rules.
    ///
    /// # Panics
    /// Never: the rules are constants.
    #[must_use]
    pub fn new() -> Self {
        let end = r"(?-u:\b)";
        let rules = [
            ("(?s)-----BEGIN .*-----END [A-Z ]*-----\n?".to_owned(), "<pem>"),
            (r"LS0tLS1CRUdJTi[A-Za-z0-9+/=]+".to_owned(), "<pem>"),
            (r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})".to_owned(), "<time>"),
            (r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)? [+-][0-9]{4} [A-Z]+( m=[+-][0-9.]+)?".to_owned(), "<time>"),
            ("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}".to_owned(), "<uid>"),
            ("apiserver-[a-z0-9]{20,}".to_owned(), "<apiserver>"),
            (format!("[0-9a-f]{{64}}{end}"), "<digest>"),
            (format!(":[0-9a-f]{{24}}{end}"), ":<digest>"),
            (r"\(combined from similar events\): ".to_owned(), ""),
            (r"10\.[0-9]+\.[0-9]+\.[0-9]+/[0-9]+".to_owned(), "<range>"),
            (r"10\.[0-9]+\.[0-9]+\.[0-9]+".to_owned(), "<ip>"),
            ("fd00:10:96:[0-9a-f:]+".to_owned(), "<ip>"),
            (format!("-[0-9]{{8}}{end}"), "-<minute>"),
            (format!("-{LETTERS}{{6,10}}{end}"), "-<hash>"),
            (format!("-{LETTERS}{{5}}{end}"), "-<random>"),
        ];
        Self(
            rules.into_iter().map(|(rule, with)| (Regex::new(&rule).expect("the rules are constants"), with)).collect(),
        )
    }

    /// Returns a text with placeholders.
    #[must_use]
    pub fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (rule, with) in &self.0 {
            if rule.is_match(&text) {
                text = rule.replace_all(&text, *with).into_owned();
            }
        }
        text
    }

    /// Returns an object of a resource with placeholders.
    #[must_use]
    pub fn object(&self, resource: &str, mut object: Value) -> Value {
        let is_daemon = object["metadata"]["ownerReferences"][0]["kind"] == "DaemonSet";
        if let (Some(seen), Some(generation)) =
            (object["status"]["observedGeneration"].as_i64(), object["metadata"]["generation"].as_i64())
        {
            object["status"]["observedGeneration"] = Value::from(if seen == generation { "current" } else { "old" });
        }
        if let Some(meta) = object["metadata"].as_object_mut() {
            for name in META {
                meta.remove(name);
            }
        }
        match resource {
            "pods" if is_daemon => {}
            "secrets" => mask_each(&mut object, "data", "<bytes>"),
            _ => mask_nodes(&mut object),
        }
        self.value("", object)
    }

    fn value(&self, key: &str, value: Value) -> Value {
        match value {
            Value::String(_) if HASHES.contains(&key) => Value::from("<hash>"),
            _ if MASKED.contains(&key) => Value::from("<masked>"),
            Value::Number(_) if matches!(key, "nodePort" | "healthCheckNodePort") => Value::from("<port>"),
            Value::Number(_) if key == "observedGeneration" => Value::from("<generation>"),
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(items) => {
                let mut items: Vec<Value> = items.into_iter().map(|item| self.value("", item)).collect();
                if SETS.contains(&key) {
                    items.sort_by_cached_key(ToString::to_string);
                }
                Value::Array(items)
            }
            Value::Object(fields) => {
                let fields = fields.into_iter().map(|(name, field)| {
                    let field = self.value(&name, field);
                    (self.text(&name), field)
                });
                Value::Object(fields.collect())
            }
            other => other,
        }
    }
}

/// Any node may run a pod that is not a daemon's.
fn mask_nodes(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(text) if name == "nodeName" => "<node>".clone_into(text),
                    field => mask_nodes(field),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask_nodes),
        _ => {}
    }
}

fn mask_each(object: &mut Value, name: &str, with: &str) {
    for value in object.get_mut(name).and_then(Value::as_object_mut).into_iter().flat_map(|fields| fields.values_mut())
    {
        *value = Value::from(with);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_lose_what_chance_and_time_put_into_them_and_nothing_else() {
        let normal = Normal::new();
        for (text, want) in [
            ("Created pod: web-5d4f8c7b9d-x2k4z", "Created pod: web-<hash>-<random>"),
            ("Created job minutely-29412345", "Created job minutely-<minute>"),
            ("Scaled up replica set web-6f7d8 from 0 to 3", "Scaled up replica set web-<random> from 0 to 3"),
            ("at 2026-01-02T03:04:05Z, 10.96.0.7 of 10.128.4.0/22", "at <time>, <ip> of <range>"),
            ("pvc-0c6ee2e5-7d6b-4e0c-9b3a-0123456789ab", "pvc-<uid>"),
            ("create Pod data-agent-0 in StatefulSet", "create Pod data-agent-0 in StatefulSet"),
        ] {
            assert_eq!(normal.text(text), want);
        }
    }

    #[test]
    fn an_object_keeps_its_content_and_lists_without_order_are_sorted() {
        let object = json!({
            "metadata": {"name": "web-5d4f8c7b9d-x2k4z", "uid": "u", "generation": 3,
                "labels": {"app": "web", "pod-template-hash": "5d4f8c7b9d"}},
            "spec": {"nodeName": "node-1", "replicas": 2},
            "status": {"observedGeneration": 3, "conditions": [{"type": "Ready"}, {"type": "Initialized"}]},
        });
        let want = json!({
            "metadata": {"name": "web-<hash>-<random>", "labels": {"app": "web", "pod-template-hash": "<hash>"}},
            "spec": {"nodeName": "<node>", "replicas": 2},
            "status": {"observedGeneration": "current", "conditions": [{"type": "Initialized"}, {"type": "Ready"}]},
        });
        assert_eq!(Normal::new().object("pods", object), want);
    }
}

//! What users do: a script for each family of controllers, with seeded changes. Both clusters get the same.
//!
//! Pure. Names have vowels, so that generated parts of names are recognised ([`super::normal`]).

mod batch;
mod cluster;
mod policy;
mod services;
mod storage;
mod workloads;

use fastrand::Rng;
use serde_json::{Value, json};

/// One request of a user, or a change to the simulated nodes.
#[derive(Clone, Debug)]
pub enum Act {
    /// Creates an object. `$uid:PATH` stands for the uid of another, `$node:N` for the name of a node.
    Create(Value),
    /// A merge patch to a path.
    Patch(String, Value),
    /// Posts a body to a path: an eviction, a token.
    Post(String, Value),
    /// Deletes a path, with options.
    Delete(String, Value),
    /// Deletes some of the pods with these labels.
    DeletePods {
        /// Their namespace.
        namespace: String,
        /// A label selector.
        selector: &'static str,
        /// How many.
        count: usize,
    },
    /// Sets an external metric.
    Metric {
        /// The namespace of the autoscaler.
        namespace: String,
        /// The value.
        value: String,
    },
    /// Stops the heartbeats of a node, or lets it send them again.
    Heartbeats {
        /// The number of the node.
        node: usize,
        /// Whether it sends them.
        are_sent: bool,
    },
}

/// What is done before both clusters are waited for.
pub type Step = Vec<Act>;

/// A family of controllers: its name, and its script in a namespace.
pub type Family = (&'static str, fn(&mut Rng, &str) -> Vec<Step>);

/// Every family.
pub const FAMILIES: [Family; 30] = [
    ("deployment", workloads::deployment),
    ("deployment-deadline", workloads::deadline),
    ("replicaset", workloads::replica_set),
    ("replicationcontroller", workloads::replication_controller),
    ("statefulset", workloads::stateful_set),
    ("daemonset", workloads::daemon_set),
    ("job", batch::jobs),
    ("job-policy", batch::policies),
    ("job-suspend", batch::suspended),
    ("cronjob", batch::cron_jobs),
    ("service", services::services),
    ("mirroring", services::mirrored),
    ("autoscaler", policy::autoscalers),
    ("budget", policy::budgets),
    ("quota", policy::quotas),
    ("admission-policy", policy::admission),
    ("volumes", storage::volumes),
    ("provisioned", storage::provisioned),
    ("attached", storage::attached),
    ("owners", cluster::owners),
    ("namespace", cluster::namespaces),
    ("accounts", cluster::accounts),
    ("roles", cluster::roles),
    ("certificates", cluster::certificates),
    ("nodes", cluster::nodes),
    ("lost-node", cluster::lost_node),
    ("service-cidr", cluster::service_cidrs),
    ("devices", cluster::devices),
    ("bootstrap", cluster::bootstrap),
    ("upkeep", cluster::upkeep),
];

/// Returns the steps of a sequence: those of all families at once, in the namespace `name` and in others that begin with it.
#[must_use]
pub fn sequence(seed: u64, name: &str, families: &[Family]) -> Vec<Step> {
    let reserved = json!({ "spec": { "taints": [{ "key": "reserved", "effect": "NoSchedule" }] } });
    let first = vec![
        of("v1", "Namespace", "", name, json!({ "metadata": { "labels": { "of": "the-load" } } })),
        Act::Patch("/api/v1/nodes/$node:2".to_owned(), reserved.clone()),
        Act::Patch("/api/v1/nodes/$node:3".to_owned(), reserved),
    ];
    let mut steps = vec![first];
    for (number, (_, script)) in families.iter().enumerate() {
        // A family behaves the same whichever others there are.
        let salt = FAMILIES.iter().position(|(other, _)| *other == families[number].0).unwrap_or(number);
        let mut random = Rng::with_seed(seed.wrapping_mul(1_000).wrapping_add(salt as u64));
        for (at, step) in script(&mut random, name).into_iter().enumerate() {
            while steps.len() <= at + 1 {
                steps.push(Step::new());
            }
            steps[at + 1].extend(step);
        }
    }
    steps
}

/// Returns the path of an object, or of a collection if the name is empty.
fn path(api: &str, namespace: &str, resource: &str, name: &str) -> String {
    let root = if api.contains('/') { format!("/apis/{api}") } else { format!("/api/{api}") };
    let place = if namespace.is_empty() { root } else { format!("{root}/namespaces/{namespace}") };
    if name.is_empty() { format!("{place}/{resource}") } else { format!("{place}/{resource}/{name}") }
}

/// Returns the path to which an object is posted.
#[must_use]
pub fn collection_of(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = text(&object["kind"]).to_lowercase();
    let resource = match kind.as_str() {
        "endpoints" => kind,
        kind if kind.ends_with('y') => format!("{}ies", &kind[..kind.len() - 1]),
        kind if kind.ends_with('s') => format!("{kind}es"),
        kind => format!("{kind}s"),
    };
    path(&text(&object["apiVersion"]), &text(&object["metadata"]["namespace"]), &resource, "")
}

fn of(api: &str, kind: &str, namespace: &str, name: &str, mut rest: Value) -> Act {
    rest["apiVersion"] = Value::from(api);
    rest["kind"] = Value::from(kind);
    rest["metadata"]["name"] = Value::from(name);
    if !namespace.is_empty() {
        rest["metadata"]["namespace"] = Value::from(namespace);
    }
    Act::Create(rest)
}

fn delete(path: String) -> Act {
    Act::Delete(path, json!({}))
}

fn delete_with(path: String, policy: &str) -> Act {
    Act::Delete(path, json!({ "propagationPolicy": policy }))
}

fn pick<T: Clone>(random: &mut Rng, among: &[T]) -> T {
    among[random.usize(..among.len())].clone()
}

/// A pod template with one container.
fn template(app: &str, image: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": app } },
        "spec": { "containers": [{ "name": "main", "image": image }], "terminationGracePeriodSeconds": 1 },
    })
}

/// A patch of the image of such a template.
fn with_image(image: &str) -> Value {
    json!({ "spec": { "template": { "spec": { "containers": [{ "name": "main", "image": image }] } } } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_one_sequence_and_every_family_a_script() {
        let shown = |seed| {
            let steps = sequence(seed, "seq-0", &FAMILIES);
            // Keys of certificates are random.
            let steps: Vec<Vec<String>> = steps
                .iter()
                .map(|step| step.iter().map(|act| format!("{act:?}")).filter(|act| !act.contains("request")).collect())
                .collect();
            steps
        };
        assert_eq!(shown(1), shown(1));
        assert_ne!(shown(1), shown(2));
        for (name, script) in FAMILIES {
            assert!(script(&mut Rng::with_seed(1), "seq-0").len() > 1, "{name}");
        }
    }

    #[test]
    fn collections_follow_from_kinds() {
        let of = |api: &str, kind: &str, namespace: &str| {
            collection_of(&json!({"apiVersion": api, "kind": kind, "metadata": {"namespace": namespace}}))
        };
        assert_eq!(of("v1", "Endpoints", "a"), "/api/v1/namespaces/a/endpoints");
        assert_eq!(of("storage.k8s.io/v1", "StorageClass", ""), "/apis/storage.k8s.io/v1/storageclasses");
        assert_eq!(
            of("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", ""),
            "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
        );
    }
}

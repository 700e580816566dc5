//! Ranges of Service addresses, tokens for joining, tainted devices, classes of volume attributes, admission policies and volumes
//! of single pods: what few controllers are about, as requests.
//!
//! They have randomness of their own, so that the rest of a world stays that of its seed.

use fastrand::Rng;
use serde_json::{Value, json};
use steersman_base::Time;

use super::{BEGINS, FIRST_PART, FIRST_TIME, LAST, NAMESPACES};
use crate::managers::EPOCH;
use crate::plan::{How, Millis, Operation, Options, Step, seconds};

/// What is mixed into the seed.
const SALT: u64 = 0xf0_47e4;
/// One such operation for so many others.
const ONE_IN: usize = 8;

/// The rules that taint devices.
pub(crate) const RULES: &str = "/apis/resource.k8s.io/v1/devicetaintrules";
/// The rule that there can be.
pub(crate) const RULE: &str = "broken";
const RANGES: &str = "/apis/networking.k8s.io/v1/servicecidrs";
const TOKENS: &str = "/api/v1/namespaces/kube-system/secrets";
const PUBLIC: &str = "/api/v1/namespaces/kube-public/configmaps";
const ATTRIBUTES: &str = "/apis/storage.k8s.io/v1/volumeattributesclasses";
const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";

/// An object that users make, change and delete.
struct Thing {
    collection: String,
    name: &'static str,
    /// The object, without its name.
    object: fn(&mut Rng, Millis) -> Value,
    /// A merge patch that changes it; none if nobody changes it.
    change: Option<fn(&mut Rng, Millis) -> Value>,
}

/// What users do with them.
pub(super) fn operations(seed: u64, options: &Options, count: usize) -> Vec<Step> {
    let mut random = Rng::with_seed(seed ^ SALT);
    let things = things();
    let mut steps = Vec::new();
    for thing in &things {
        let at = BEGINS + random.u64(..FIRST_TIME.min(options.ends / FIRST_PART));
        steps.push(Step { at, operation: thing.create(&mut random, options.ends) });
    }
    for _ in 0..count / ONE_IN {
        let at = random.u64(BEGINS + seconds(30)..options.ends - LAST);
        let thing = &things[random.usize(..things.len())];
        let operation = match (random.u32(..10), thing.change) {
            (0..5, Some(change)) => {
                let body = change(&mut random, options.ends);
                Operation::Request { how: How::Patch, path: thing.path(), body }
            }
            (5..8, _) => Operation::Request { how: How::Delete, path: thing.path(), body: Value::Null },
            _ => thing.create(&mut random, options.ends),
        };
        steps.push(Step { at, operation });
    }
    steps
}

// === impl Thing ===

impl Thing {
    fn path(&self) -> String {
        format!("{}/{}", self.collection, self.name)
    }

    fn create(&self, random: &mut Rng, ends: Millis) -> Operation {
        let mut body = (self.object)(random, ends);
        body["metadata"]["name"] = json!(self.name);
        Operation::Request { how: How::Create, path: self.collection.clone(), body }
    }
}

fn things() -> Vec<Thing> {
    let thing =
        |collection: &str, name, object, change| Thing { collection: collection.to_owned(), name, object, change };
    let here = |plural: &str| format!("/api/v1/namespaces/{}/{plural}", NAMESPACES[0]);
    let sets = |namespace: usize| format!("/apis/apps/v1/namespaces/{}/replicasets", NAMESPACES[namespace]);
    let change: fn(&mut Rng, Millis) -> Value = size;
    vec![
        // The second contains the first.
        thing(RANGES, "range-a", |_, _| json!({"spec": {"cidrs": ["10.250.0.0/24"]}}), None),
        thing(RANGES, "range-b", |_, _| json!({"spec": {"cidrs": ["10.250.0.0/23"]}}), None),
        thing(&here("services"), "in-a", |_, _| service("10.250.0.9"), None),
        thing(&here("services"), "in-b", |_, _| service("10.250.1.9"), None),
        thing(TOKENS, "bootstrap-token-abcdef", |random, ends| token("abcdef", random, ends), Some(expiration)),
        thing(TOKENS, "bootstrap-token-ghijkl", |random, ends| token("ghijkl", random, ends), Some(expiration)),
        thing(PUBLIC, "cluster-info", |_, _| json!({"data": {"kubeconfig": "of a world"}}), Some(information)),
        thing(RULES, RULE, |random, _| rule(random), Some(|random, _| json!({"spec": {"taint": taint(random)}}))),
        thing(ATTRIBUTES, "gold", |_, _| gold(), None),
        thing(&here("persistentvolumeclaims"), "golden", |_, _| golden(), None),
        thing(POLICIES, "sized", |random, _| policy(random), Some(|random, _| policy(random))),
        thing(&sets(0), "scratch", scratch, Some(change)),
        thing(&sets(1), "buffer", scratch, Some(change)),
    ]
}

fn service(address: &str) -> Value {
    json!({"spec": {"clusterIP": address, "ports": [{"port": 80}]}})
}

/// A time within the storm or, as often, long after it.
fn expires(random: &mut Rng, ends: Millis) -> String {
    let after = if random.bool() { ends / 1000 + 1_000_000 } else { random.u64(30..ends / 1000) };
    Time::from_unix(EPOCH).plus_seconds(i64::try_from(after).unwrap_or_default()).to_string()
}

fn token(id: &str, random: &mut Rng, ends: Millis) -> Value {
    let data = json!({
        "token-id": id, "token-secret": "0123456789abcdef", "usage-bootstrap-signing": "true",
        "expiration": expires(random, ends),
    });
    json!({"type": "bootstrap.kubernetes.io/token", "stringData": data})
}

fn expiration(random: &mut Rng, ends: Millis) -> Value {
    json!({"stringData": {"expiration": expires(random, ends)}})
}

/// A new text to sign, or a signature by somebody else.
fn information(random: &mut Rng, _: Millis) -> Value {
    match random.u8(..3) {
        0 => json!({"data": {"jws-kubeconfig-abcdef": "forged"}}),
        number => json!({"data": {"kubeconfig": format!("of a world, number {number}")}}),
    }
}

fn taint(random: &mut Rng) -> Value {
    let effect = if random.bool() { "NoExecute" } else { "NoSchedule" };
    json!({"key": "example.com/broken", "effect": effect})
}

fn rule(random: &mut Rng) -> Value {
    json!({"spec": {"deviceSelector": {"driver": "nodes.steersman.dev"}, "taint": taint(random)}})
}

fn gold() -> Value {
    json!({"driverName": "csi.example.com", "parameters": {"iops": "100"}})
}

/// A claim that uses the class.
fn golden() -> Value {
    json!({"spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "static",
        "volumeAttributesClassName": "gold",
    }})
}

/// A policy whose expression has the right type, or not.
fn policy(random: &mut Rng) -> Value {
    let field = ["replicas", "replica", "paused"][random.usize(..3)];
    let rule = json!({
        "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"],
    });
    json!({"spec": {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": format!("object.spec.{field} > 1")}],
    }})
}

fn size(random: &mut Rng, _: Millis) -> Value {
    json!({"spec": {"replicas": random.u32(..4)}})
}

/// A ReplicaSet whose pods each have a volume of their own.
fn scratch(random: &mut Rng, _: Millis) -> Value {
    let claim = json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    let labels = json!({"uses": "scratch"});
    json!({"spec": {
        "replicas": random.u32(..4), "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {
                "containers": [{"name": "main", "image": "image:0"}],
                "volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": claim}}],
            },
        },
    }})
}

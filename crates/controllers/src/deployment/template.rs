//! Pure: the ReplicaSet of a template: its hash, its name, and the object.
//!
//! 1. The hash is the same for the same template, and rarely the same for another: an existing ReplicaSet is found by
//!    comparing templates, never by the hash. So a ReplicaSet of another controller, with another hash, is kept.
//! 2. The hash is stable: the order of fields and absent or empty fields do not count, and no version of this program
//!    changes it.
//! 3. If a name is taken by a ReplicaSet of another owner, the collision count is incremented, which changes the hash.

use serde_json::Value;
use steersman_base::meta::Owners;
use steersman_base::names::labels;
use steersman_base::{Istr, LabelSelector, Meta, StringMap};
use steersman_model::View;
use steersman_model::apps::{DeploymentView, ReplicaSetSpec, ReplicaSetView};
use steersman_model::template::Template;

use crate::claim::owner_ref;

/// Letters and digits that form no words: upstream's.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// The maximum length of upstream's hash. 27 to the tenth are 2·10¹⁴ hashes.
const HASH_LENGTH: usize = 10;
/// The maximum length of the name of an object.
const NAME_MAX: usize = 253;

/// Returns the new ReplicaSet of a Deployment, with `replicas` pods.
pub(super) fn new_set(deployment: &DeploymentView, annotations: StringMap, replicas: i32) -> ReplicaSetView {
    let spec = &deployment.spec;
    let hash = hash(&spec.template, deployment.status.collision_count);
    let hash_label = || (Istr::interned(labels::POD_TEMPLATE_HASH), Istr::new(&hash));
    let with_hash = |labels: &StringMap| -> StringMap {
        let pairs = labels.iter().map(|(key, value)| (key.clone(), value.clone()));
        pairs.chain([hash_label()]).collect()
    };
    let template = spec.template.with_labels(with_hash(spec.template.labels()));
    let selector = spec.selector.clone().unwrap_or_default();
    let selector = LabelSelector { match_labels: with_hash(&selector.match_labels), ..selector };
    ReplicaSetView {
        metadata: Meta {
            name: Istr::new(&set_name(&deployment.meta().name, &hash)),
            namespace: deployment.meta().namespace.clone(),
            labels: template.labels().clone(),
            annotations,
            owner_references: Owners::new(vec![owner_ref(deployment)]),
            ..Meta::default()
        },
        spec: ReplicaSetSpec {
            replicas: Some(replicas),
            selector: Some(selector),
            template,
            min_ready_seconds: spec.min_ready_seconds,
        },
        ..ReplicaSetView::default()
    }
}

/// Returns the name of the ReplicaSet with this hash; the Deployment's name is truncated if it would get too long.
fn set_name(deployment: &str, hash: &str) -> String {
    let room = NAME_MAX.saturating_sub(hash.len() + 1);
    let prefix = deployment.get(..room).unwrap_or(deployment);
    format!("{prefix}-{hash}")
}

/// Returns the hash of a template.
pub(crate) fn hash(template: &Template, collisions: Option<i32>) -> String {
    let mut hash = Fnv::default();
    let maps = [template.labels(), template.annotations()];
    for map in maps {
        for (key, value) in map.iter().filter(|(key, _)| **key != labels::POD_TEMPLATE_HASH) {
            hash.text(key);
            hash.text(value);
        }
        hash.mark(b'|');
    }
    template.finalizers().iter().for_each(|finalizer| hash.text(finalizer));
    // What the API server has accepted is JSON.
    hash.value(&serde_json::from_str(template.spec().as_str()).unwrap_or(Value::Null));
    if let Some(collisions) = collisions {
        hash.text(&collisions.to_string());
    }
    let mut rest = hash.0;
    let letters = (0..HASH_LENGTH).map(|_| {
        let letter = ALPHABET[(rest % 27) as usize];
        rest /= 27;
        char::from(letter)
    });
    letters.collect()
}

/// FNV-1a of 64 bits: small and stable.
struct Fnv(u64);

// === impl Fnv ===

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn mark(&mut self, byte: u8) {
        self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }

    /// Hashes a text and its end, so that two texts are not taken for one.
    fn text(&mut self, text: &str) {
        text.bytes().for_each(|byte| self.mark(byte));
        self.mark(0);
    }

    /// Hashes a value by its sorted fields, without absent or empty ones.
    fn value(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                self.mark(b'{');
                for (name, value) in fields.iter().filter(|(_, value)| !is_empty(value)) {
                    self.text(name);
                    self.value(value);
                }
                self.mark(b'}');
            }
            Value::Array(items) => {
                self.mark(b'[');
                items.iter().for_each(|item| self.value(item));
                self.mark(b']');
            }
            other => self.text(&other.to_string()),
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Object(_) | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether this ReplicaSet, which has the name of the new one, is the new one.
pub(super) fn is_the_wanted_one(deployment: &DeploymentView, found: &ReplicaSetView) -> bool {
    found.meta().is_controlled_by(deployment.meta())
        && found.spec.template.equals_but_for_hash(&deployment.spec.template)
}

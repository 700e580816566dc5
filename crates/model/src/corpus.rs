//! Bodies to measure and test with: pods and ReplicaSets as a real cluster has them, by the thousand.
//!
//! 1. The same seed gives the same bytes, on every machine.
//! 2. There are [`TEMPLATES`] templates. A pod is about 7 KB of JSON, a ReplicaSet about 3.6 KB, `managedFields` included.
//! 3. Of a pod's six labels two are its own; so are its name, uid, addresses and container ids.

mod every_field;
mod objects;
pub mod protobuf;

pub use every_field::every_field;
use serde_json::Value;

use self::protobuf::put_bytes;

/// The number of different templates.
pub const TEMPLATES: usize = 300;

/// The source of bodies.
#[derive(Clone, Copy, Debug)]
pub struct Corpus {
    seed: u64,
}

/// A stream of pseudo-random numbers (SplitMix64).
#[derive(Clone, Debug)]
struct Numbers(u64);

// === impl Corpus ===

impl Corpus {
    /// The corpus of this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The JSON of the pod of this number.
    #[must_use]
    pub fn pod(self, index: usize) -> String {
        objects::pod(&mut self.numbers("pod", index), index)
    }

    /// The JSON of the ReplicaSet of this number. Templates repeat over them.
    #[must_use]
    pub fn replica_set(self, index: usize) -> String {
        objects::replica_set(&mut self.numbers("replicaset", index), index)
    }

    /// The protobuf of the pod of this number, without envelope.
    #[must_use]
    pub fn pod_protobuf(self, index: usize) -> Vec<u8> {
        to_protobuf("core.v1.Pod", &self.pod(index))
    }

    /// The JSON of the metadata of the pod of this number, as a metadata-only read gets it.
    #[must_use]
    pub fn pod_metadata(self, index: usize) -> String {
        let metadata = metadata_of(&self.pod(index));
        format!(r#"{{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{metadata}}}"#)
    }

    /// The protobuf of the metadata of the pod of this number, without envelope.
    #[must_use]
    pub fn pod_metadata_protobuf(self, index: usize) -> Vec<u8> {
        to_protobuf("meta.v1.PartialObjectMetadata", &self.pod_metadata(index))
    }

    /// A list of the first `count` pods, as a server sends it.
    #[must_use]
    pub fn pod_list(self, count: usize) -> Vec<u8> {
        list("v1", "PodList", (0..count).map(|index| self.pod(index)))
    }

    /// A list of the first `count` ReplicaSets, as a server sends it.
    #[must_use]
    pub fn replica_set_list(self, count: usize) -> Vec<u8> {
        list("apps/v1", "ReplicaSetList", (0..count).map(|index| self.replica_set(index)))
    }

    /// A list of the metadata of the first `count` pods, as a server sends it.
    #[must_use]
    pub fn pod_metadata_list(self, count: usize) -> Vec<u8> {
        let items = (0..count).map(|index| format!(r#"{{"metadata":{}}}"#, metadata_of(&self.pod(index))));
        list("meta.k8s.io/v1", "PartialObjectMetadataList", items)
    }

    /// A list of the first `count` pods in protobuf, with envelope, as a server sends it.
    #[must_use]
    pub fn pod_list_protobuf(self, count: usize) -> Vec<u8> {
        list_protobuf("v1", "PodList", (0..count).map(|index| self.pod_protobuf(index)))
    }

    /// A list of the metadata of the first `count` pods in protobuf, with envelope, as a server sends it.
    #[must_use]
    pub fn pod_metadata_list_protobuf(self, count: usize) -> Vec<u8> {
        let items = (0..count).map(|index| self.pod_metadata_protobuf(index));
        list_protobuf("meta.k8s.io/v1", "PartialObjectMetadataList", items)
    }

    fn numbers(self, kind: &str, index: usize) -> Numbers {
        let kind = kind.bytes().fold(0, |hash: u64, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
        let mut numbers = Numbers(self.seed ^ kind.rotate_left(32) ^ index as u64);
        numbers.next();
        numbers
    }
}

/// Encodes the JSON of an object as the message of this name, such as `core.v1.Pod`.
///
/// # Panics
/// The text is not a JSON object of that type.
#[must_use]
pub fn to_protobuf(message: &str, json: &str) -> Vec<u8> {
    let value: Value = serde_json::from_str(json).unwrap_or_else(|error| panic!("{message}: {error}"));
    protobuf::encode(message, &value)
}

/// The resource version of every list.
const LIST_VERSION: &str = "9000000";

fn list(api_version: &str, kind: &str, items: impl Iterator<Item = String>) -> Vec<u8> {
    let mut body = format!(
        r#"{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{{"resourceVersion":"{LIST_VERSION}"}},"items":["#
    );
    for (at, item) in items.enumerate() {
        if at > 0 {
            body.push(',');
        }
        body.push_str(&item);
    }
    body.push_str("]}\n");
    body.into_bytes()
}

fn list_protobuf(api_version: &str, kind: &str, items: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut metadata = Vec::new();
    put_bytes(&mut metadata, 2, LIST_VERSION.as_bytes());
    let mut message = Vec::new();
    put_bytes(&mut message, 1, &metadata);
    for item in items {
        put_bytes(&mut message, 2, &item);
    }
    protobuf::envelope(api_version, kind, &message)
}

fn metadata_of(object: &str) -> String {
    let object: Value = serde_json::from_str(object).unwrap_or_default();
    object["metadata"].to_string()
}

// === impl Numbers ===

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Hexadecimal digits, such as a container id has.
    fn hex(&mut self, digits: usize) -> String {
        let mut text = String::with_capacity(digits + 16);
        while text.len() < digits {
            text.push_str(&format!("{:016x}", self.next()));
        }
        text.truncate(digits);
        text
    }

    /// The characters that Kubernetes appends to a name.
    fn suffix(&mut self, length: usize) -> String {
        const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        (0..length).map(|_| char::from(ALPHABET[self.below(ALPHABET.len() as u64) as usize])).collect()
    }

    fn uid(&mut self) -> String {
        let hex = self.hex(32);
        format!("{}-{}-4{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
    }

    /// A time of 2026.
    fn time(&mut self) -> String {
        let month = self.below(12) + 1;
        let day = self.below(28) + 1;
        let hour = self.below(24);
        let minute = self.below(60);
        let second = self.below(60);
        format!("2026-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

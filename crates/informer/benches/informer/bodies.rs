//! Lists as a server sends them: in the order of keys.

use bytes::Bytes;
use steersman_base::{Meta, ObjectKey};
use steersman_model::corpus::protobuf::{envelope, put_bytes};
use steersman_model::corpus::{Corpus, to_protobuf};
use steersman_model::{Encoded, View};

const SEED: u64 = 1;
const VERSION: &str = "9000000";

#[derive(Clone, Copy)]
pub(crate) enum Encoding {
    Json,
    Protobuf,
}

/// The body of a list.
pub(crate) struct ListBody {
    pub(crate) bytes: Bytes,
    pub(crate) content_type: &'static str,
    pub(crate) count: usize,
}

impl ListBody {
    pub(crate) fn pods(count: usize, encoding: Encoding) -> Self {
        let make = |index| Corpus::new(SEED).pod(index);
        Self::new("v1", "Pod", "core.v1.Pod", (count, make), encoding)
    }

    pub(crate) fn pod_metadata(count: usize, encoding: Encoding) -> Self {
        let make = |index| Corpus::new(SEED).pod_metadata(index);
        let version = "meta.k8s.io/v1";
        let kind = "PartialObjectMetadata";
        Self::new(version, kind, "meta.v1.PartialObjectMetadata", (count, make), encoding)
    }

    pub(crate) fn replica_sets(count: usize) -> Self {
        let make = |index| Corpus::new(SEED).replica_set(index);
        Self::new("apps/v1", "ReplicaSet", "apps.v1.ReplicaSet", (count, make), Encoding::Json)
    }

    /// Made in a thread of its own, so that the allocator of this one starts out tidy.
    fn new(
        api_version: &'static str,
        kind: &'static str,
        message: &'static str,
        (count, make): (usize, fn(usize) -> String),
        encoding: Encoding,
    ) -> Self {
        let made = std::thread::spawn(move || {
            let items = sorted(count, make);
            match encoding {
                Encoding::Json => (json(api_version, kind, &items), "application/json"),
                Encoding::Protobuf => {
                    (protobuf(api_version, kind, message, items), "application/vnd.kubernetes.protobuf")
                }
            }
        });
        let (bytes, content_type) = made.join().expect("the corpus");
        Self { bytes: bytes.into(), content_type, count }
    }
}

/// The objects in the order of etcd's keys, in which servers list them.
fn sorted(count: usize, make: impl Fn(usize) -> String) -> Vec<String> {
    let key = |json: &str| -> ObjectKey { Meta::decode(Encoded::Json(json.as_bytes())).expect("metadata").key() };
    let mut objects: Vec<_> = (0..count).map(make).map(|json| (key(&json).to_string(), json)).collect();
    objects.sort();
    objects.into_iter().map(|(_, json)| json).collect()
}

fn json(api_version: &str, kind: &str, items: &[String]) -> Vec<u8> {
    let head = format!(
        r#"{{"kind":"{kind}List","apiVersion":"{api_version}","metadata":{{"resourceVersion":"{VERSION}"}},"items":["#
    );
    let mut body = head.into_bytes();
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            body.push(b',');
        }
        body.extend_from_slice(item.as_bytes());
    }
    body.extend_from_slice(b"]}\n");
    body
}

fn protobuf(api_version: &str, kind: &str, message: &str, items: Vec<String>) -> Vec<u8> {
    let mut metadata = Vec::new();
    put_bytes(&mut metadata, 2, VERSION.as_bytes());
    let mut list = Vec::new();
    put_bytes(&mut list, 1, &metadata);
    for item in items {
        put_bytes(&mut list, 2, &to_protobuf(message, &item));
    }
    envelope(api_version, &format!("{kind}List"), &list)
}

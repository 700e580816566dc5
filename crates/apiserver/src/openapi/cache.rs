//! The documents as they are sent, made once.
//!
//! 1. A document is made when it is first asked for, and kept until a definition that it describes comes, changes or goes.
//! 2. Its tag is the `hash` of its address in `/openapi/v3`: clients that have it get 304.
//! 3. What is kept is bounded by what is served: documents of definitions that are gone are dropped with the next one made.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::Mutex;

use super::{document_of, hash, protobuf, tag, v2, v3_document, v3_index, with_custom};
use crate::registry::Row;

/// The document that is asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Name {
    /// `/openapi/v2`
    V2,
    /// `/openapi/v2`, as protobuf.
    V2Protobuf,
    /// `/openapi/v3`
    V3Index,
    /// `/openapi/v3/<path>`
    V3(String),
}

/// A document as it is sent.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) bytes: Bytes,
    pub(crate) tag: String,
    /// The definitions that it describes.
    customs: Vec<Arc<Row>>,
    packed: OnceLock<Option<Bytes>>,
}

/// The documents that have been asked for.
#[derive(Debug, Default)]
pub(crate) struct Documents(Mutex<BTreeMap<Name, Arc<Document>>>);

// === impl Documents ===

impl Documents {
    /// Returns a document that describes what is built in and these definitions; none if there is no such document.
    pub(crate) fn get(&self, name: &Name, customs: &[Arc<Row>]) -> Option<Arc<Document>> {
        let described: Vec<Arc<Row>> = customs.iter().filter(|row| name.describes(row)).cloned().collect();
        let held = self.0.lock().get(name).cloned();
        if let Some(document) = held.filter(|document| is_same(&document.customs, &described)) {
            return Some(document);
        }
        let document = Arc::new(Document::new(name, described)?);
        let is_served = |row: &Arc<Row>| customs.iter().any(|served| Arc::ptr_eq(served, row));
        let mut held = self.0.lock();
        held.retain(|_, document| document.customs.iter().all(is_served));
        held.insert(name.clone(), Arc::clone(&document));
        Some(document)
    }
}

fn is_same(one: &[Arc<Row>], other: &[Arc<Row>]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| Arc::ptr_eq(one, other))
}

// === impl Name ===

impl Name {
    fn describes(&self, row: &Row) -> bool {
        match self {
            Self::V3(path) => document_of(row) == *path,
            Self::V2 | Self::V2Protobuf | Self::V3Index => true,
        }
    }
}

// === impl Document ===

impl Document {
    fn new(name: &Name, customs: Vec<Arc<Row>>) -> Option<Self> {
        let bytes: Bytes = match name {
            Name::V2 => v2(&customs).to_string().into(),
            Name::V2Protobuf => protobuf::encode(&v2(&customs)).into(),
            Name::V3Index => v3_index(&customs).to_string().into(),
            Name::V3(path) => v3_document(&customs, path)?.to_string().into(),
        };
        let tag = tag(customs.iter().fold(hash(), |hash, row| with_custom(hash, row)));
        Some(Self { bytes, tag, customs, packed: OnceLock::new() })
    }

    /// Returns the document compressed, which is done once.
    pub(crate) fn packed(&self, pack: impl FnOnce(&[u8]) -> Option<Bytes>) -> Option<Bytes> {
        self.packed.get_or_init(|| pack(&self.bytes)).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_made_once_and_its_tag_is_that_of_its_address() {
        let documents = Documents::default();
        let name = Name::V3("apis/apps/v1".to_owned());
        let first = documents.get(&name, &[]).expect("it is served");
        let again = documents.get(&name, &[]).expect("it is served");
        assert!(Arc::ptr_eq(&first, &again), "it is kept");
        let index = v3_index(&[]);
        let address = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().expect("an address");
        assert_eq!(address, crate::openapi::v3_address("apis/apps/v1", &first.tag));
        assert!(documents.get(&Name::V3("apis/nope/v1".to_owned()), &[]).is_none());
    }
}

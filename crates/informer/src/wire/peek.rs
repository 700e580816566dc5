//! The identity and version of an object, from its first few hundred bytes.
//!
//! A relist brings mostly known objects. To see that, the metadata is enough, and servers write it first.

use std::borrow::Cow;

use steersman_base::{Meta, ObjectKey, ResourceVersion, Uid};
use steersman_model::Encoded;

use super::json_walk::Fields as JsonFields;
use super::protobuf::{Fields, Value};

/// The identity of an object and the version of its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peeked {
    /// The key.
    pub key: ObjectKey,
    /// The uid.
    pub uid: Uid,
    /// The version of this state.
    pub resource_version: ResourceVersion,
}

impl Peeked {
    /// Whether these are the name and uid of this object. If the uid could not be read, the name decides.
    pub(crate) fn is_of(&self, known: &Meta) -> bool {
        self.uid.is_empty() || self.uid == known.uid
    }
}

/// Name, namespace, uid and version, as found.
#[derive(Default)]
struct Parts<'a> {
    name: Option<Cow<'a, str>>,
    namespace: Option<Cow<'a, str>>,
    uid: Option<Cow<'a, str>>,
    version: Option<Cow<'a, str>>,
    /// Whether all of the metadata is read.
    whole: bool,
}

/// Reads the metadata of an object, only as far as needed. `None` if that fails: the decoder will return the error.
#[must_use]
pub fn peek(object: Encoded<'_>) -> Option<Peeked> {
    let mut parts = Parts::default();
    match object {
        Encoded::Json(body) => parts.read_json(json_metadata(body)?)?,
        Encoded::Protobuf(message) => parts.read_protobuf(protobuf_metadata(message)?)?,
    }
    parts.whole()
}

/// Returns the identity of an object that cannot be decoded: all of its metadata is read, and only the name is
/// required. `None` if there is none, or if the bytes are neither JSON nor protobuf that far.
#[must_use]
pub fn identify(object: Encoded<'_>) -> Option<Peeked> {
    let mut parts = Parts { whole: true, ..Parts::default() };
    match object {
        Encoded::Json(body) => parts.read_json(json_metadata(body)?)?,
        Encoded::Protobuf(message) => parts.read_protobuf(protobuf_metadata(message)?)?,
    }
    parts.name.as_ref().filter(|name| !name.is_empty())?;
    parts.uid.get_or_insert_default();
    parts.version.get_or_insert_default();
    parts.whole()
}

/// Returns everything behind the name of the field `metadata`.
fn json_metadata(body: &[u8]) -> Option<&[u8]> {
    let mut fields = JsonFields::of(body).ok()?;
    while let Some(name) = fields.next_name().ok()? {
        if name == b"metadata" {
            return Some(fields.here());
        }
        fields.value().ok()?;
    }
    None
}

fn protobuf_metadata(message: &[u8]) -> Option<&[u8]> {
    Fields::of(message).find_map(|field| match field {
        Ok((1, Value::Bytes(metadata))) => Some(metadata),
        _ => None,
    })
}

/// Returns the text of a JSON string, borrowed where nothing is escaped.
fn json_text(value: &[u8]) -> Option<Cow<'_, str>> {
    let inner = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if memchr::memchr(b'\\', inner).is_none() {
        return std::str::from_utf8(inner).ok().map(Cow::Borrowed);
    }
    serde_json::from_slice::<String>(value).ok().map(Cow::Owned)
}

// === impl Parts ===

impl<'a> Parts<'a> {
    fn read_json(&mut self, metadata: &'a [u8]) -> Option<()> {
        let mut fields = JsonFields::of(metadata).ok()?;
        while !self.suffice()
            && let Some((name, value)) = fields.next().ok()?
        {
            let place = match name {
                b"name" => &mut self.name,
                b"namespace" => &mut self.namespace,
                b"uid" => &mut self.uid,
                b"resourceVersion" => &mut self.version,
                _ => continue,
            };
            match json_text(value) {
                Some(text) => *place = Some(text),
                // A value that is not a string counts as absent where it is not required.
                None if self.whole => {}
                None => return None,
            }
        }
        Some(())
    }

    /// `metadata 1 { name 1, namespace 3, uid 5, resourceVersion 6 }` of any object.
    fn read_protobuf(&mut self, metadata: &'a [u8]) -> Option<()> {
        let text = |bytes| std::str::from_utf8(bytes).ok().map(Cow::Borrowed);
        for field in Fields::of(metadata) {
            match field.ok()? {
                (1, Value::Bytes(name)) => self.name = text(name),
                (3, Value::Bytes(namespace)) => self.namespace = text(namespace),
                (5, Value::Bytes(uid)) => self.uid = text(uid),
                (6, Value::Bytes(version)) => self.version = text(version),
                _ => {}
            }
            if self.suffice() {
                break;
            }
        }
        Some(())
    }

    /// Whether the rest is not needed: typed objects have name and namespace first, and custom ones are sorted by
    /// field, so both put the namespace before uid and version. (Any other order gives an unknown key, which does no
    /// harm.)
    fn suffice(&self) -> bool {
        !self.whole && self.name.is_some() && self.uid.is_some() && self.version.is_some()
    }

    fn whole(self) -> Option<Peeked> {
        Some(Peeked {
            key: ObjectKey::new(self.namespace.as_deref().unwrap_or_default(), &self.name?),
            uid: Uid::new(&self.uid?),
            resource_version: ResourceVersion::new(&self.version?),
        })
    }
}

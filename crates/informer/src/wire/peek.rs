//! Which object, and in which version, told from its first few hundred bytes.
//!
//! A relist brings mostly what is known already. To see that, the metadata is enough, and servers write it first.

use std::borrow::Cow;

use steersman_base::{Meta, ObjectKey, ResourceVersion, Uid};
use steersman_model::Encoded;

use super::json_walk::Fields as JsonFields;
use super::protobuf::{Fields, Value};

/// The identity of an object and the version of its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peeked {
    /// Where it is found.
    pub key: ObjectKey,
    /// Identity over time.
    pub uid: Uid,
    /// Version of this state.
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
    /// Whether all of the metadata is looked at.
    whole: bool,
}

/// Looks at the metadata of an object, and only as far as needed. `None` if that does not work: the decoder will say why.
#[must_use]
pub fn peek(object: Encoded<'_>) -> Option<Peeked> {
    let mut parts = Parts::default();
    match object {
        Encoded::Json(body) => parts.read_json(json_metadata(body)?)?,
        Encoded::Protobuf(message) => parts.read_protobuf(protobuf_metadata(message)?)?,
    }
    parts.whole()
}

/// Which object it is, for one that cannot be decoded: all of its metadata is looked at, and only the name must be there.
/// `None` if there is none, or if the bytes are neither JSON nor protobuf that far.
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

/// All that follows the name of the field `metadata`.
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

/// The text of a JSON string, borrowed where nothing is escaped.
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
                // What is no text is as good as absent to who can do without.
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

    /// Whether looking on is of no use: typed objects say name and namespace first, and custom ones are sorted by field, so
    /// both put the namespace before uid and version. (Any other order makes a key that nobody knows: no harm.)
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

//! Which object, and in which version, told from its first few hundred bytes.
//!
//! A relist brings mostly what is known already. To see that, the metadata is enough, and servers write it first.

use std::borrow::Cow;

use steersman_base::{ObjectKey, ResourceVersion, Uid};
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

/// Name, namespace, uid and version, as found.
#[derive(Default)]
struct Parts<'a> {
    name: Option<Cow<'a, str>>,
    namespace: Option<Cow<'a, str>>,
    uid: Option<Cow<'a, str>>,
    version: Option<Cow<'a, str>>,
}

/// Looks at the metadata of an object, and only as far as needed. `None` if that does not work: the decoder will say why.
#[must_use]
pub fn peek(object: Encoded<'_>) -> Option<Peeked> {
    match object {
        Encoded::Json(body) => peek_json(body),
        Encoded::Protobuf(message) => peek_protobuf(message),
    }
}

fn peek_json(body: &[u8]) -> Option<Peeked> {
    let mut fields = JsonFields::of(body).ok()?;
    while let Some(name) = fields.next_name().ok()? {
        if name == b"metadata" {
            return peek_json_metadata(fields.here());
        }
        fields.value().ok()?;
    }
    None
}

fn peek_json_metadata(metadata: &[u8]) -> Option<Peeked> {
    let mut parts = Parts::default();
    let mut fields = JsonFields::of(metadata).ok()?;
    while !parts.suffice()
        && let Some((name, value)) = fields.next().ok()?
    {
        let place = match name {
            b"name" => &mut parts.name,
            b"namespace" => &mut parts.namespace,
            b"uid" => &mut parts.uid,
            b"resourceVersion" => &mut parts.version,
            _ => continue,
        };
        *place = Some(json_text(value)?);
    }
    parts.whole()
}

/// `metadata 1 { name 1, namespace 3, uid 5, resourceVersion 6 }` of any object.
fn peek_protobuf(message: &[u8]) -> Option<Peeked> {
    let text = |bytes| std::str::from_utf8(bytes).ok().map(Cow::Borrowed);
    let metadata = Fields::of(message).find_map(|field| match field {
        Ok((1, Value::Bytes(metadata))) => Some(metadata),
        _ => None,
    })?;
    let mut parts = Parts::default();
    for field in Fields::of(metadata) {
        match field.ok()? {
            (1, Value::Bytes(name)) => parts.name = text(name),
            (3, Value::Bytes(namespace)) => parts.namespace = text(namespace),
            (5, Value::Bytes(uid)) => parts.uid = text(uid),
            (6, Value::Bytes(version)) => parts.version = text(version),
            _ => {}
        }
        if parts.suffice() {
            break;
        }
    }
    parts.whole()
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

impl Parts<'_> {
    /// Whether looking on is of no use: typed objects say name and namespace first, and custom ones are sorted by field, so
    /// both put the namespace before uid and version. (Any other order makes a key that nobody knows: no harm.)
    fn suffice(&self) -> bool {
        self.name.is_some() && self.uid.is_some() && self.version.is_some()
    }

    fn whole(self) -> Option<Peeked> {
        Some(Peeked {
            key: ObjectKey::new(self.namespace.as_deref().unwrap_or_default(), &self.name?),
            uid: Uid::new(&self.uid?),
            resource_version: ResourceVersion::new(&self.version?),
        })
    }
}

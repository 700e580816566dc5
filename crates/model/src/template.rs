//! Pod templates: metadata is read, the pod's `spec` stays as it came.
//!
//! A controller that makes pods hardly looks into their spec; it copies it. So the bytes are kept, once for all that are
//! equal, and a new pod is made by putting them behind metadata of our own ([`Template::pod_body`]): nothing is
//! decoded and encoded again, and fields that are newer than this program survive. Only JSON is kept this way, because
//! writes are JSON.

mod compare;
mod fields;

use std::fmt;
use std::sync::{Arc, LazyLock};

use serde::de::{Deserialize, Deserializer};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use steersman_base::istr::Pool;
use steersman_base::meta::Owners;
use steersman_base::names::labels;
use steersman_base::{Istr, OwnerRef, StringMap};

use crate::shared::{Shared, pooled};
use crate::view;
use crate::wire::{Adapt, Fault, Parts, Value, Wire};

pub use fields::Fields;

/// The template of the pods of a ReplicaSet, Deployment or similar.
///
/// Two templates are equal if they ask for the same pods: the bytes are the same, or they differ only in what means
/// nothing (an absent list or an empty one, `1` CPU or `1000m`, the order of fields).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Template {
    metadata: Shared<TemplateMeta>,
    spec: RawJson,
}

view! {
    /// Metadata of a template: the labels and annotations of future pods.
    #[derive(Eq, Hash)]
    struct TemplateMeta: Serialize {
        name: Istr = 1,
        generate_name: Istr = 2,
        namespace: Istr = 3,
        labels: StringMap = 11,
        annotations: StringMap = 12,
        owner_references: Owners = 13,
        finalizers: Box<[Istr]> = 14,
    }
}
pooled!(TemplateMeta);

view! {
    struct TemplateFields {
        metadata: TemplateMeta = 1,
        spec: RawJson = 2,
    }
}

/// JSON that is kept as it came; equal texts are one allocation. Empty if there was none.
#[derive(Clone, Default)]
pub struct RawJson(Option<Arc<str>>);

static TEXTS: LazyLock<Pool<str>> = LazyLock::new(Pool::new);

/// Metadata of a pod that is to be made.
#[derive(Clone, Debug)]
pub struct NewPodMeta<'a> {
    /// Its name, or what it is made from.
    pub name: PodName<'a>,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its labels.
    pub labels: StringMap,
    /// Its annotations.
    pub annotations: StringMap,
    /// Its finalizers.
    pub finalizers: Box<[Istr]>,
    /// Its owners.
    pub owners: Owners,
}

/// The source of a new pod's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodName<'a> {
    /// This is the name.
    Exactly(&'a str),
    /// The server appends five characters of its choice to this.
    Prefix(&'a str),
    /// This is the name, made of the prefix as the server would; the pod shows both, as if the server had chosen.
    Chosen {
        /// The name.
        name: &'a str,
        /// The prefix that it was generated from.
        prefix: &'a str,
    },
}

// === impl Template ===

impl Template {
    /// A template of these parts; `spec` is the JSON of a pod's spec.
    ///
    /// # Errors
    /// `spec` is not JSON.
    pub fn new(labels: StringMap, annotations: StringMap, spec: &str) -> Result<Self, serde_json::Error> {
        let metadata = TemplateMeta { labels, annotations, ..TemplateMeta::default() };
        let spec = serde_json::from_str::<&RawValue>(spec)?;
        Ok(Self { metadata: Shared::new(metadata), spec: RawJson::new(spec.get()) })
    }

    /// Labels of the pods.
    #[must_use]
    pub fn labels(&self) -> &StringMap {
        &self.metadata.labels
    }

    /// Annotations of the pods.
    #[must_use]
    pub fn annotations(&self) -> &StringMap {
        &self.metadata.annotations
    }

    /// Finalizers of the pods.
    #[must_use]
    pub fn finalizers(&self) -> &[Istr] {
        &self.metadata.finalizers
    }

    /// The metadata as JSON: names, labels, annotations, owners and finalizers.
    #[must_use]
    pub fn metadata_json(&self) -> serde_json::Value {
        // Maps of texts have a JSON form.
        serde_json::to_value(&*self.metadata).unwrap_or_default()
    }

    /// The JSON of the pods' spec, as it came.
    #[must_use]
    pub fn spec(&self) -> &RawJson {
        &self.spec
    }

    /// Whether both are one allocation, as equal templates that were received are. Unlike `==`, this costs nothing.
    #[must_use]
    pub fn same_allocation(&self, other: &Self) -> bool {
        Shared::same_allocation(&self.metadata, &other.metadata) && self.spec.same_allocation(&other.spec)
    }

    /// The same template with other labels.
    #[must_use]
    pub fn with_labels(&self, labels: StringMap) -> Self {
        let metadata = TemplateMeta { labels, ..TemplateMeta::clone(&self.metadata) };
        Self { metadata: Shared::new(metadata), spec: self.spec.clone() }
    }

    /// Whether both describe the same pods, except for the label with the template's hash, which only a ReplicaSet's
    /// has.
    #[must_use]
    pub fn equals_but_for_hash(&self, other: &Self) -> bool {
        let without_hash = |template: &Self| {
            let labels = template.labels();
            if !labels.contains_key(labels::POD_TEMPLATE_HASH) {
                return labels.clone();
            }
            let others = labels.iter().filter(|(key, _)| **key != labels::POD_TEMPLATE_HASH);
            others.map(|(key, value)| (key.clone(), value.clone())).collect()
        };
        let left = &*self.metadata;
        let right = &*other.metadata;
        without_hash(self) == without_hash(other)
            && TemplateMeta { labels: StringMap::default(), ..left.clone() }
                == TemplateMeta { labels: StringMap::default(), ..right.clone() }
            && self.spec == other.spec
    }

    /// Metadata of a new pod of this template: its labels, annotations and finalizers, owned by `owner`.
    #[must_use]
    pub fn new_pod<'a>(&self, name: PodName<'a>, namespace: &'a str, owner: &OwnerRef) -> NewPodMeta<'a> {
        NewPodMeta {
            name,
            namespace,
            labels: self.labels().clone(),
            annotations: self.annotations().clone(),
            finalizers: self.finalizers().into(),
            owners: Owners::new(vec![owner.clone()]),
        }
    }

    /// The body that creates a pod: this metadata, and behind it the untouched bytes of the spec.
    #[must_use]
    pub fn pod_body(&self, metadata: &NewPodMeta<'_>) -> Vec<u8> {
        let spec = if self.spec.is_empty() { "{}" } else { self.spec.as_str() };
        raw_body("v1", "Pod", metadata, spec)
    }
}

/// The body that creates an object of a template: this metadata, and behind it the JSON of the spec as it is.
#[must_use]
pub fn raw_body(api_version: &str, kind: &str, metadata: &NewPodMeta<'_>, spec: &str) -> Vec<u8> {
    let metadata = crate::body::json(metadata);
    let mut body = Vec::with_capacity(metadata.len() + spec.len() + 64);
    for part in [r#"{"apiVersion":""#, api_version, r#"","kind":""#, kind, r#"","metadata":"#] {
        body.extend_from_slice(part.as_bytes());
    }
    body.extend_from_slice(&metadata);
    body.extend_from_slice(br#","spec":"#);
    body.extend_from_slice(spec.as_bytes());
    body.push(b'}');
    body
}

impl Adapt<Template> for TemplateFields {
    fn adapt(self) -> Template {
        Template { metadata: Shared::new(self.metadata), spec: self.spec }
    }
}

impl Wire for Template {
    const PROTOBUF: bool = false;
    type Building<'a> = Parts<'a>;
    fn read_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        TemplateFields::read_json(deserializer).map(Adapt::adapt)
    }
    fn take<'a>(building: &mut Parts<'a>, value: Value<'_, 'a>) -> Result<(), Fault> {
        TemplateFields::take(building, value)
    }
    fn finish(building: Parts<'_>) -> Result<Self, Fault> {
        TemplateFields::finish(building).map(Adapt::adapt)
    }
}

impl Serialize for Template {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("metadata", &*self.metadata)?;
        if !self.spec.is_empty() {
            map.serialize_entry("spec", &self.spec)?;
        }
        map.end()
    }
}

// === impl NewPodMeta ===

impl<'a> NewPodMeta<'a> {
    /// The same under another name.
    #[must_use]
    pub fn under<'b>(&self, name: PodName<'b>) -> NewPodMeta<'b>
    where
        'a: 'b,
    {
        NewPodMeta { name, ..self.clone() }
    }
}

impl Serialize for NewPodMeta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self.name {
            PodName::Exactly(name) => map.serialize_entry("name", name)?,
            PodName::Prefix(prefix) => map.serialize_entry("generateName", prefix)?,
            PodName::Chosen { name, prefix } => {
                map.serialize_entry("name", name)?;
                map.serialize_entry("generateName", prefix)?;
            }
        }
        map.serialize_entry("namespace", self.namespace)?;
        crate::__private::write_field(&mut map, "labels", &self.labels)?;
        crate::__private::write_field(&mut map, "annotations", &self.annotations)?;
        crate::__private::write_field(&mut map, "ownerReferences", &self.owners)?;
        crate::__private::write_field(&mut map, "finalizers", &self.finalizers)?;
        map.end()
    }
}

// === impl RawJson ===

impl RawJson {
    fn new(text: &str) -> Self {
        Self(Some(TEXTS.share_ref(text, || Arc::from(text))))
    }

    /// Keeps a text that is JSON. A text that is none cannot be serialized.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        Self::new(text)
    }

    /// The JSON text; empty if there was none.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// Whether there was none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The fields of an object; there are none in an absent one.
    ///
    /// # Errors
    /// It is no object.
    pub fn fields(&self) -> Result<Fields<'_>, serde_json::Error> {
        Fields::of(if self.is_empty() { "{}" } else { self.as_str() })
    }

    /// Whether both are one allocation.
    #[must_use]
    pub fn same_allocation(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(left), Some(right)) => Arc::ptr_eq(left, right),
            (left, right) => left.is_none() && right.is_none(),
        }
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.same_allocation(other) || compare::same_spec(self.as_str(), other.as_str())
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "none" } else { self.as_str() })
    }
}

impl Wire for RawJson {
    const PROTOBUF: bool = false;
    type Building<'a> = Self;
    fn read_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(|raw| Self::new(raw.get()))
    }
    fn take<'a>(_: &mut Self, value: Value<'_, 'a>) -> Result<(), Fault> {
        Err(value.slice()?.fault("a field that is read as JSON only"))
    }
    fn finish(building: Self) -> Result<Self, Fault> {
        Ok(building)
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = if self.is_empty() { "null" } else { self.as_str() };
        serde_json::from_str::<&RawValue>(text).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

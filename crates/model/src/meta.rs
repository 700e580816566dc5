//! Metadata: as a part of every view, and as a view of any kind.

use std::fmt;

use serde::de::{self, Deserializer, IgnoredAny, MapAccess};
use steersman_base::meta::{Owners, RareMeta};
use steersman_base::names::annotations;
use steersman_base::selector::LabelSelectorRequirement;
use steersman_base::{Istr, LabelSelector, Meta, OwnerRef, ResourceVersion, StringMap, Time, Uid};

use crate::wire::{self, Adapt, Fault, Ignored, Message, Parts, Unique, Value, Wire};
use crate::{DecodeError, Encoded, Projection, View, message, view};

/// The annotations of a pod that a controller reads; pods carry large ones that none does.
const POD_ANNOTATIONS: [&str; 4] = [
    annotations::POD_DELETION_COST,
    annotations::JOB_COMPLETION_INDEX,
    annotations::JOB_INDEX_FAILURE_COUNT,
    annotations::JOB_INDEX_IGNORED_FAILURE_COUNT,
];

/// Reads annotations and keeps those a controller reads.
#[derive(Default)]
struct PodAnnotations(StringMap);

/// `metadata` as received. Pods and other objects differ in two fields.
macro_rules! metadata {
    ($(#[$doc:meta])* $name:ident, annotations: $annotations:ty, generate_name: $generate_name:ty) => {
        view! {
            $(#[$doc])*
            pub(crate) struct $name {
                name: Istr as Unique = 1,
                generate_name: Istr as $generate_name = 2,
                namespace: Istr = 3,
                uid: Uid = 5,
                resource_version: ResourceVersion = 6,
                generation: i64 = 7,
                creation_timestamp: Option<Time> = 8,
                deletion_timestamp: Option<Time> = 9,
                deletion_grace_period_seconds: Option<i64> = 10,
                labels: StringMap = 11,
                annotations: StringMap as $annotations = 12,
                owner_references: Owners = 13,
                finalizers: Box<[Istr]> = 14,
            }
        }

        impl From<$name> for Meta {
            fn from(mut read: $name) -> Self {
                read.labels.reuse(&read.name);
                let rare = RareMeta {
                    generate_name: read.generate_name,
                    deletion_timestamp: read.deletion_timestamp,
                    deletion_grace_period_seconds: read.deletion_grace_period_seconds,
                    finalizers: read.finalizers,
                };
                Self {
                    name: read.name,
                    namespace: read.namespace,
                    uid: read.uid,
                    resource_version: read.resource_version,
                    generation: read.generation,
                    creation_timestamp: read.creation_timestamp,
                    labels: read.labels,
                    annotations: read.annotations,
                    owner_references: read.owner_references,
                    rare: is_rare(&rare).then(|| Box::new(rare)),
                }
            }
        }
    };
}

metadata!(
    /// `metadata`, whole but for what the server keeps by itself.
    WholeMeta, annotations: StringMap, generate_name: Istr);
metadata!(
    /// `metadata` without the name's prefix.
    BareMeta, annotations: StringMap, generate_name: Ignored);
metadata!(
    /// `metadata` of a pod: without the name's prefix, and without annotations that are not read.
    PodMeta, annotations: PodAnnotations, generate_name: Ignored);

view! {
    /// Any object, of which only the metadata is read.
    struct PartialObject {
        metadata: Meta as BareMeta = 1,
    }
}

message! {
    OwnerRef {
        kind: Istr = 1,
        name: Istr = 3,
        uid: Uid = 4,
        api_version: Istr = 5,
        controller: Option<bool> = 6,
        block_owner_deletion: Option<bool> = 7,
    }
}

message! {
    LabelSelector {
        match_labels: StringMap = 1,
        match_expressions: Box<[LabelSelectorRequirement]> = 2,
    }
}

message! {
    LabelSelectorRequirement {
        key: Istr = 1,
        operator: Istr = 2,
        values: Box<[Istr]> = 3,
    }
}

fn is_rare(rare: &RareMeta) -> bool {
    !rare.finalizers.is_empty()
        || !rare.generate_name.is_empty()
        || rare.deletion_timestamp.is_some()
        || rare.deletion_grace_period_seconds.is_some()
}

// === impl Meta ===

impl Wire for Meta {
    type Building<'a> = Parts<'a>;
    fn read_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        WholeMeta::read_json(deserializer).map(Self::from)
    }
    fn take<'a>(building: &mut Parts<'a>, value: Value<'_, 'a>) -> Result<(), Fault> {
        WholeMeta::take(building, value)
    }
    fn finish(building: Parts<'_>) -> Result<Self, Fault> {
        WholeMeta::merge(&building).map(Self::from)
    }
}

/// The metadata of an object of any kind, read from `PartialObjectMetadata` or from the whole object.
///
/// The prefix of the name is not kept: no controller reads it, and no such view is written back.
impl View for Meta {
    const PROJECTION: Projection = Projection::Metadata;
    const PROTOBUF: bool = true;

    fn meta(&self) -> &Meta {
        self
    }

    fn decode(body: Encoded<'_>) -> Result<Self, DecodeError> {
        wire::decode::<PartialObject>(body, "metadata").map(|object| object.metadata)
    }
}

impl Adapt<Meta> for BareMeta {
    fn adapt(self) -> Meta {
        self.into()
    }
}

impl Adapt<Meta> for PodMeta {
    fn adapt(self) -> Meta {
        self.into()
    }
}

// === impl PodAnnotations ===

impl Wire for PodAnnotations {
    type Building<'a> = Vec<(Istr, Istr)>;
    fn read_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Kept;
        impl<'de> de::Visitor<'de> for Kept {
            type Value = Vec<(Istr, Istr)>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of strings")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut kept = Vec::new();
                while let Some(KeptName(name)) = map.next_key()? {
                    match name {
                        None => drop(map.next_value::<IgnoredAny>()?),
                        Some(name) => {
                            let value = map.next_value::<wire::Json<Istr>>();
                            let value = value.map_err(|problem| wire::in_field(name, &problem))?;
                            kept.push((Istr::interned(name), value.0));
                        }
                    }
                }
                Ok(kept)
            }
        }
        deserializer.deserialize_map(Kept).map(|pairs| Self(StringMap::new(pairs)))
    }
    fn take<'a>(building: &mut Self::Building<'a>, value: Value<'_, 'a>) -> Result<(), Fault> {
        let mut reader = value.slice()?.reader();
        let mut name = None;
        let mut text = Istr::default();
        while let Some((number, part)) = reader.field()? {
            match number {
                1 => name = kept_name(part.slice()?.bytes()),
                2 if name.is_some() => Istr::take(&mut text, part)?,
                _ => part.skip()?,
            }
        }
        building.extend(name.map(|name| (Istr::interned(name), text)));
        Ok(())
    }
    fn finish(building: Self::Building<'_>) -> Result<Self, Fault> {
        Ok(Self(StringMap::new(building)))
    }
}

struct KeptName(Option<&'static str>);

fn kept_name(name: &[u8]) -> Option<&'static str> {
    POD_ANNOTATIONS.into_iter().find(|kept| kept.as_bytes() == name)
}

impl<'de> de::Deserialize<'de> for KeptName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;
        impl de::Visitor<'_> for Name {
            type Value = KeptName;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of an annotation")
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<KeptName, E> {
                Ok(KeptName(kept_name(name.as_bytes())))
            }
        }
        deserializer.deserialize_identifier(Name)
    }
}

impl Adapt<StringMap> for PodAnnotations {
    fn adapt(self) -> StringMap {
        self.0
    }
}

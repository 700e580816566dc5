//! Objects in which every field is set, encoded by an encoder that knows only the table of field numbers, and held
//! against what the views have of them.

use serde_json::{Value, json};
use steersman_base::{Istr, Meta, Time};
use steersman_model::corpus::protobuf;
use steersman_model::{Encoded, View};

/// Decodes an object from both encodings and asserts that the views are equal.
pub(crate) fn both<V: View + PartialEq + std::fmt::Debug>(message: &str, object: &Value) -> V {
    let from_json = V::decode(Encoded::Json(object.to_string().as_bytes())).unwrap();
    let from_protobuf = V::decode(Encoded::Protobuf(&protobuf::encode(message, object))).unwrap();
    assert_eq!(from_json, from_protobuf, "{message}: JSON on the left, protobuf on the right");
    from_json
}

/// One field: where it is in the object, and what the view has of it.
pub(crate) type Row<V> = (&'static str, fn(&V) -> Value);

/// Asserts that each field of the view is what the object has there.
pub(crate) fn check<V>(object: &Value, view: &V, rows: &[Row<V>]) {
    for (path, of_view) in rows {
        let want = object.pointer(path).unwrap_or_else(|| panic!("the object has nothing at {path}"));
        let got = of_view(view);
        assert_ne!(got, Value::Null, "{path} is not in the view");
        assert_eq!(&got, want, "{path}: the view on the left, the object on the right");
    }
}

pub(crate) fn text(text: &str) -> Value {
    json!(text)
}

pub(crate) fn list<'a, T: 'a>(values: impl IntoIterator<Item = &'a T>, each: impl Fn(&T) -> Value) -> Value {
    values.into_iter().map(each).collect()
}

pub(crate) fn texts(values: &[Istr]) -> Value {
    list(values, |value| text(value))
}

pub(crate) fn time(time: Option<Time>) -> Value {
    json!(time)
}

pub(crate) const META: &[Row<Meta>] = &[
    ("/metadata/name", |meta| text(&meta.name)),
    ("/metadata/namespace", |meta| text(&meta.namespace)),
    ("/metadata/uid", |meta| json!(meta.uid)),
    ("/metadata/resourceVersion", |meta| json!(meta.resource_version)),
    ("/metadata/generation", |meta| json!(meta.generation)),
    ("/metadata/creationTimestamp", |meta| time(meta.creation_timestamp)),
    ("/metadata/deletionTimestamp", |meta| time(meta.deletion_timestamp())),
    ("/metadata/deletionGracePeriodSeconds", |meta| json!(meta.deletion_grace_period_seconds())),
    ("/metadata/labels", |meta| json!(meta.labels)),
    ("/metadata/ownerReferences", |meta| json!(meta.owner_references)),
    ("/metadata/finalizers", |meta| json!(meta.finalizers())),
];

/// The object without these fields.
pub(crate) fn without(object: &Value, names: &[&str]) -> Value {
    let mut object = object.clone();
    for name in names {
        object.as_object_mut().unwrap().remove(*name).unwrap_or_else(|| panic!("no {name}"));
    }
    object
}

//! Bodies of writes.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use steersman_base::Meta;

use crate::Kind;

/// The body of a PUT to the `status` of an object of kind `K`: its metadata as it was read, and the new status.
///
/// The server keeps the spec, but takes labels, annotations and finalizers from here, so the metadata must be whole.
#[must_use]
pub fn status_body<K: Kind>(metadata: &Meta, status: &impl Serialize) -> Vec<u8> {
    struct Body<'a, K, S>(&'a Meta, &'a S, std::marker::PhantomData<K>);
    impl<K: Kind, S: Serialize> Serialize for Body<'_, K, S> {
        fn serialize<R: Serializer>(&self, serializer: R) -> Result<R::Ok, R::Error> {
            let mut map = serializer.serialize_map(None)?;
            crate::__private::write_type(&mut map, &K::RESOURCE)?;
            map.serialize_entry("metadata", self.0)?;
            map.serialize_entry("status", self.1)?;
            map.end()
        }
    }
    json(&Body::<K, _>(metadata, status, std::marker::PhantomData))
}

/// The body of a POST or PUT of an object that is held whole.
#[must_use]
pub fn object_body<K: Kind + Serialize>(object: &K) -> Vec<u8> {
    json(object)
}

/// The JSON of a value that is made of strings, numbers, lists and maps of strings.
pub(crate) fn json(value: &impl Serialize) -> Vec<u8> {
    match serde_json::to_vec(value) {
        Ok(body) => body,
        Err(error) => unreachable!("a value of strings and numbers has a JSON form: {error}"),
    }
}

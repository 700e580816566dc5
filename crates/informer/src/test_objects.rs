//! Objects for tests: metadata is a view too, so no other kind is needed.

use std::sync::Arc;

use steersman_base::meta::{Owners, RareMeta};
use steersman_base::{Meta, ObjectKey, OwnerRef, Resource, StringMap, Time};

use crate::target::Target;

/// `name#uid@version` in namespace `ns`; the uid is `u-name` if it is left out, and a namespace may precede the name.
pub(crate) fn object(text: &str) -> Arc<Meta> {
    Arc::new(meta(text))
}

/// As [`object`], not shared yet.
pub(crate) fn meta(text: &str) -> Meta {
    let (rest, version) = text.split_once('@').unwrap_or((text, "1"));
    let (path, uid) = rest.split_once('#').map_or((rest, None), |(path, uid)| (path, Some(uid)));
    let key = key(path);
    let uid = uid.map_or_else(|| format!("u-{}", key.name), ToOwned::to_owned);
    Meta {
        name: key.name,
        namespace: key.namespace,
        uid: uid.as_str().into(),
        resource_version: version.into(),
        ..Meta::default()
    }
}

pub(crate) fn objects(texts: &[&str]) -> Vec<Arc<Meta>> {
    texts.iter().map(|text| object(text)).collect()
}

/// `name` in namespace `ns`, or `namespace/name`.
pub(crate) fn key(path: &str) -> ObjectKey {
    let (namespace, name) = path.split_once('/').unwrap_or(("ns", path));
    ObjectKey::new(namespace, name)
}

pub(crate) fn labelled(text: &str, labels: &[(&str, &str)]) -> Arc<Meta> {
    Arc::new(Meta { labels: labels.iter().copied().collect::<StringMap>(), ..meta(text) })
}

pub(crate) fn owned(text: &str, owner_uid: &str) -> Arc<Meta> {
    let owner = OwnerRef { uid: owner_uid.into(), controller: Some(true), ..OwnerRef::default() };
    Arc::new(Meta { owner_references: Owners::new(vec![owner]), ..meta(text) })
}

pub(crate) fn terminating(text: &str) -> Arc<Meta> {
    let rare = RareMeta { deletion_timestamp: Some(Time::from_unix(1)), ..RareMeta::default() };
    Arc::new(Meta { rare: Some(Box::new(rare)), ..meta(text) })
}

pub(crate) fn things() -> Resource {
    Resource::namespaced("", "v1", "things", "Thing")
}

pub(crate) fn target() -> Target {
    Target::all(things())
}

/// As [`object`] reads it.
pub(crate) fn show(object: &Meta) -> String {
    format!("{}#{}@{}", object.name, object.uid, object.resource_version)
}

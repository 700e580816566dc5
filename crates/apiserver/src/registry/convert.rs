//! Conversion between the stored form of a kind and the form that a row serves.
//!
//! Most kinds have one form. The others say so in their rules ([`StoredAs`](crate::kinds::StoredAs)): Events are stored as
//! `v1` and served by `events.k8s.io/v1` under other names, autoscalers are stored as `autoscaling/v2`. All versions of a
//! custom resource have one form, in which only `apiVersion` differs, but each version shows what its own schema knows; or a
//! webhook converts between them ([`conversion`](super::conversion)).

use std::borrow::Cow;

use serde_json::Value;
use steersman_base::ObjectKey;

use super::Row;
use super::conversion::Conversion;
use super::custom::Custom;
use super::object_meta::metadata;
use crate::status::Status;

/// Returns the group, version and kind of the stored form.
pub(crate) fn storage_kind(row: &Row) -> (&str, &str, &str) {
    let resource = &row.resource;
    match &row.rules.stored_as {
        Some(form) => (form.group, form.version, &resource.kind),
        None => (&resource.group, &resource.version, &resource.kind),
    }
}

/// Returns the key that upstream's etcd has for an object; some errors show it.
pub(crate) fn storage_key(row: &Row, key: &ObjectKey) -> String {
    let resource = &row.resource;
    let prefix = match (row.rules.etcd_prefix, &row.custom) {
        (Some(prefix), _) => Cow::Borrowed(prefix),
        (None, Some(_)) => Cow::Owned(format!("{}/{}", resource.group, resource.plural)),
        (None, None) => Cow::Borrowed(&*resource.plural),
    };
    let within = if key.namespace.is_empty() { String::new() } else { format!("{}/", key.namespace) };
    format!("/registry/{prefix}/{within}{}", key.name)
}

/// Whether the row serves objects in their stored form.
pub(crate) fn is_storage_version(row: &Row) -> bool {
    let (group, version, _) = storage_kind(row);
    match &row.custom {
        Some(custom) => custom.storage_version == row.resource.version && !custom.is_reshaped,
        None => group == row.resource.group && version == row.resource.version,
    }
}

/// Changes an object to its stored form.
///
/// # Errors
/// A webhook that converts it fails.
pub(crate) fn to_storage(row: &Row, object: &mut Value) -> Result<(), Status> {
    if is_storage_version(row) {
        return Ok(());
    }
    if let Some((custom, conversion)) = conversion_of(row) {
        let to = format!("{}/{}", row.resource.group, custom.storage_version);
        *object = conversion.convert(object.take(), &to)?;
        return Ok(());
    }
    let (group, version, _) = storage_kind(row);
    let version = row.custom.as_ref().map_or(version, |custom| &custom.storage_version);
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let Some(map) = object.as_object_mut() else { return Ok(()) };
    map.insert("apiVersion".into(), api_version.into());
    if let Some(form) = &row.rules.stored_as {
        (form.to_storage)(map);
    }
    Ok(())
}

fn conversion_of(row: &Row) -> Option<(&Custom, &Conversion)> {
    let custom = row.custom.as_ref()?;
    Some((custom, custom.conversion.as_deref()?))
}

/// Returns stored objects in the form that the row serves.
///
/// # Errors
/// A webhook that converts them fails.
pub(crate) fn all_to_version(row: &Row, objects: Vec<Value>) -> Result<Vec<Value>, Status> {
    let Some((custom, conversion)) = conversion_of(row) else {
        return objects.into_iter().map(|object| to_version(row, object)).collect();
    };
    let mut converted = conversion.convert_all(&row.list_kind, objects, &row.resource.api_version())?;
    converted.iter_mut().for_each(|object| custom.reshape(object));
    Ok(converted)
}

/// Returns a stored object in the form that the row serves.
///
/// # Errors
/// A webhook that converts it fails.
pub(crate) fn to_version(row: &Row, mut object: Value) -> Result<Value, Status> {
    if is_storage_version(row) {
        return Ok(object);
    }
    if let Some((custom, conversion)) = conversion_of(row) {
        let mut converted = conversion.convert(object, &row.resource.api_version())?;
        custom.reshape(&mut converted);
        return Ok(converted);
    }
    let api_version = row.resource.api_version().into_owned();
    metadata(&mut object);
    let Some(map) = object.as_object_mut() else { return Ok(object) };
    map.insert("apiVersion".into(), api_version.into());
    if let Some(form) = &row.rules.stored_as {
        (form.to_version)(map);
    }
    if let Some(custom) = &row.custom {
        custom.reshape(&mut object);
    }
    Ok(object)
}

/// Returns the name of a selectable field in the stored form; none if the row does not serve it under this name.
pub(crate) fn stored_field<'a>(row: &Row, field: &'a str) -> Option<Cow<'a, str>> {
    match &row.rules.stored_as {
        Some(form) => (form.field)(field),
        None => Some(Cow::Borrowed(field)),
    }
}

//! Checks that a body matches its request: kind, name, namespace, resource version and uid.

use serde_json::Value;

use super::checked::Checked;
use super::object_meta::meta_text;
use super::{Call, Row, convert};
use crate::field::{FieldError, Path};
use crate::status::{GroupResource, Status};
use crate::store::Object;

/// Refuses a body whose resource version is not the stored one. A body without one is accepted if the strategy allows it.
pub(super) fn check_version(call: &Call, object: &mut Checked, stored: &Object) -> Result<(), Status> {
    let row = &*call.row;
    let named = meta_text(object, "resourceVersion").to_owned();
    let version = stored.revision.to_string();
    if named.is_empty() || named == "0" {
        if !row.rules.strategy.unconditional_update {
            let path = Path::new("metadata").child("resourceVersion");
            let error = FieldError::invalid(&path, 0, "must be specified for an update");
            return Err(Status::invalid(row.target(), &call.name, &[error]));
        }
        object.set_metadata("resourceVersion", &version);
        return Ok(());
    }
    if named.parse::<u64>().is_err() {
        return Err(Status::plain(format!("strconv.ParseUint: parsing {named:?}: invalid syntax")));
    }
    if named != version {
        return Err(Status::modified(row.target(), &call.name));
    }
    Ok(())
}

/// Refuses a body of another kind. A body may leave its kind out, unless it is a custom resource.
pub(super) fn check_kind(row: &Row, object: &Value) -> Result<(), Status> {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let version = text("apiVersion");
    let kind = text("kind");
    let want_version = row.resource.api_version();
    let want_kind = &*row.resource.kind;
    if !object.is_object() {
        return Ok(());
    }
    if row.custom.is_some() && (version.is_empty() || kind.is_empty()) {
        let missing = if kind.is_empty() { "Kind" } else { "apiVersion" };
        let message = format!(
            "the object provided is unrecognized (must be of type {want_kind}): Object '{missing}' is missing in \
             '{object}' ({object})"
        );
        return Err(Status::bad_request(message));
    }
    if !version.is_empty() && version != want_version {
        let message =
            format!("the API version in the data ({version}) does not match the expected API version ({want_version})");
        return Err(Status::bad_request(message));
    }
    if !kind.is_empty() && kind != want_kind && row.custom.is_some() {
        let error = FieldError::invalid(&Path::new("kind"), kind, format!("must be {want_kind}"));
        let sent = GroupResource { group: &row.resource.group, resource: kind };
        return Err(Status::invalid(sent, meta_text(object, "name"), &[error]));
    }
    if !kind.is_empty() && kind != want_kind {
        let message = wrong_kind(&row.resource.group, &row.resource.version, want_kind, kind);
        return Err(Status::bad_request(message));
    }
    Ok(())
}

/// Returns the kind and the API version of a body, if the row is built in and they are not.
pub(super) fn unregistered(row: &Row, object: &Value) -> Option<(String, String)> {
    let want_version = row.resource.api_version();
    let sent = |field: &str, want: &str| match object[field].as_str() {
        Some("") | None => want.to_owned(),
        Some(text) => text.to_owned(),
    };
    let version = sent("apiVersion", &want_version);
    let kind = sent("kind", &row.resource.kind);
    let (group, short) = version.split_once('/').unwrap_or(("", &version));
    if row.custom.is_some() || !object.is_object() {
        return None;
    }
    // Almost all are; to know which versions there are takes longer.
    if crate::schema::is_known(group, short, &kind) {
        return None;
    }
    let is_served = crate::schema::names_in(group, short).next().is_some();
    // Upstream knows older versions of its groups, too.
    let is_known = !is_served && group == row.resource.group;
    (!is_known).then_some((kind, version))
}

/// Returns upstream's message about a body of another kind: its decoder reads what the body says, then fails to convert it.
pub(crate) fn wrong_kind(group: &str, version: &str, want: &str, kind: &str) -> String {
    let problem = unknown_conversion(group, version, want, kind);
    format!("{kind} in version {version:?} cannot be handled as a {want}: {problem}")
}

/// Returns upstream's words about a kind that is not the one that is wanted.
pub(super) fn unknown_conversion(group: &str, version: &str, want: &str, kind: &str) -> String {
    let group = match group.split('.').next() {
        Some("") | None => "core",
        Some(group) => group,
    };
    format!("converting ({version}.{kind}) to ({group}.{want}): unknown conversion")
}

/// Refuses a body with another name than the request.
pub(crate) fn check_name(call: &Call, object: &Value) -> Result<(), Status> {
    let name = meta_text(object, "name");
    if name.is_empty() {
        let message =
            format!("the name of the object ({} based on URL) was undeterminable: name must be provided", call.name);
        return Err(Status::bad_request(message));
    }
    if name != call.name {
        let message = format!("the name of the object ({name}) does not match the name on the URL ({})", call.name);
        return Err(Status::bad_request(message));
    }
    Ok(())
}

/// Refuses a body with another namespace than the request; a body without one gets it.
pub(crate) fn check_namespace(call: &Call, object: &mut Checked) -> Result<(), Status> {
    let namespace = meta_text(object, "namespace");
    if call.row.is_namespaced() && namespace.is_empty() {
        object.set_metadata("namespace", &call.namespace);
    } else if !call.row.is_namespaced() {
        object.unset_metadata("namespace");
    } else if namespace != call.namespace {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Status::bad_request(message));
    }
    Ok(())
}

/// Returns the conflict with an object of the same name and another uid.
pub(crate) fn uid_conflict(call: &Call, named: &str, stored: &str) -> Status {
    precondition_failed(call, &format!("UID in precondition: {named}, UID in object meta: {stored}"))
}

/// Returns the conflict with an object at another resource version.
pub(crate) fn version_conflict(call: &Call, named: &str, stored: &str) -> Status {
    precondition_failed(
        call,
        &format!("ResourceVersion in precondition: {named}, ResourceVersion in object meta: {stored}"),
    )
}

/// Returns the conflict with a precondition of the storage.
fn precondition_failed(call: &Call, why: &str) -> Status {
    let row = &call.row;
    let key = convert::storage_key(row, &call.key());
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: \
         {why}"
    );
    Status::conflict(row.target(), &call.name, &why)
}

//! Whether a body is meant for the request it came with: its kind, its name, its version and its uid.

use serde_json::Value;

use super::checked::Checked;
use super::life::meta_text;
use super::{Call, Row, convert};
use crate::field::{FieldError, Path};
use crate::status::{GroupResource, Status};
use crate::store::Object;

/// If the client names the version it saw, it must be the stored one.
pub(super) fn check_version(call: &Call, object: &mut Checked, stored: &Object) -> Result<(), Status> {
    let row = &*call.row;
    let named = meta_text(object, "resourceVersion").to_owned();
    let version = stored.revision.to_string();
    if named.is_empty() || named == "0" {
        if !row.traits.unconditional_update {
            let path = Path::new("metadata").child("resourceVersion");
            let error = FieldError::invalid(&path, 0, "must be specified for an update");
            return Err(Status::invalid(row.target(), &call.name, &[error]));
        }
        object.set_meta("resourceVersion", &version);
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

/// A body may leave its kind out, but not be of another; that of a custom resource says all.
pub(super) fn fit_kind(row: &Row, object: &Value) -> Result<(), Status> {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    let (want_version, want_kind) = (row.resource.api_version(), &*row.resource.kind);
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
        let (group, version) = (&*row.resource.group, &*row.resource.version);
        return Err(Status::bad_request(wrong_kind(group, version, want_kind, kind)));
    }
    Ok(())
}

/// Upstream's decoder reads what the body says, then fails to convert it.
pub(crate) fn wrong_kind(group: &str, version: &str, want: &str, kind: &str) -> String {
    let group = match group.split('.').next() {
        Some("") | None => "core",
        Some(group) => group,
    };
    format!(
        "{kind} in version {version:?} cannot be handled as a {want}: converting ({version}.{kind}) to \
         ({group}.{want}): unknown conversion"
    )
}

/// The object must have the name of the request.
pub(crate) fn fit_name(call: &Call, object: &Value) -> Result<(), Status> {
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

/// The object of this name is another one by now.
pub(super) fn wrong_uid(call: &Call, named: &str, held: &str) -> Status {
    unmet(call, &format!("UID in precondition: {named}, UID in object meta: {held}"))
}

/// The object is at another version by now.
pub(super) fn wrong_version(call: &Call, named: &str, held: &str) -> Status {
    unmet(call, &format!("ResourceVersion in precondition: {named}, ResourceVersion in object meta: {held}"))
}

/// A precondition of the storage does not hold.
fn unmet(call: &Call, why: &str) -> Status {
    let row = &call.row;
    let key = convert::storage_key(row, &call.key());
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: \
         {why}"
    );
    Status::conflict(row.target(), &call.name, &why)
}

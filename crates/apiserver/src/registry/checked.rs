//! Objects that their schema has accepted, and the only ways to get them.
//!
//! 1. A [`Checked`] object has the kind of its row, all its fields are known and of the right type, and its defaults are set.
//!    It comes from the body of a request ([`Checked::body`]), or the server has composed it of a stored object and a part of
//!    a request ([`Checked::composed`]): a scale, a binding.
//! 2. [`Registry::process`](super::Registry::process) takes nothing else, and [`Processed`] objects are the only ones that
//!    requests store.
//! 3. A stored object is read in the same form ([`Checked::stored`]) before it is compared with a new one: a zero value that
//!    Go writes (`divisor: "0"`) and an absent one are the same.

use std::borrow::Cow;
use std::ops::Deref;

use serde_json::Value;
use steersman_base::Resource;

use super::custom::Nulls;
use super::object_meta::{self, meta_text, metadata};
use super::owners::without_managed_fields;
use super::request_match::{check_kind, unknown_conversion, unregistered};
use super::write::new_state;
use super::{Registry, Row, convert};
use crate::decode::Decoded;
use crate::field::FieldError;
use crate::kinds::core::service::Reservation;
use crate::schema::{self, FieldValidation};
use crate::status::{GroupResource, Status};
use crate::store::NewState;

/// An object of its row's kind, of the right types and with its defaults.
#[derive(Clone, Debug)]
pub(crate) struct Checked(Value);

/// An object that can be stored, and the addresses and ports that are reserved for it until then.
#[must_use]
pub(crate) struct Processed<'a> {
    pub(super) object: Value,
    pub(super) reservation: Option<Reservation<'a>>,
    /// The warnings about it.
    pub(super) warnings: Vec<String>,
}

/// Why a body is not an object of its resource.
pub(super) enum BodyError {
    /// A field does not fit the schema.
    Schema(String),
    /// The body is of a kind that there is not.
    Unregistered { kind: String, api_version: String },
    /// The body is of another kind: what upstream's decoder says of it, and the error of a body.
    OtherKind(String, Status),
    /// The body is of another kind than a definition has.
    Other(Status),
}

// === impl Checked ===

impl Checked {
    /// Checks a decoded body against the schema and sets its defaults; returns the warnings about it, too.
    pub(super) fn body(
        row: &Row,
        decoded: Decoded,
        validation: FieldValidation,
    ) -> Result<(Self, Vec<String>), BodyError> {
        Self::with(row, decoded, validation, Nulls::Drop)
    }

    /// Checks an object to which a configuration was applied.
    pub(super) fn applied(row: &Row, decoded: Decoded) -> Result<(Self, Vec<String>), BodyError> {
        Self::with(row, decoded, FieldValidation::Ignore, Nulls::Keep)
    }

    fn with(
        row: &Row,
        decoded: Decoded,
        validation: FieldValidation,
        nulls: Nulls,
    ) -> Result<(Self, Vec<String>), BodyError> {
        let Decoded { value: mut object, duplicates } = decoded;
        if let Some((kind, api_version)) = unregistered(row, &object) {
            return Err(BodyError::Unregistered { kind, api_version });
        }
        check_kind(row, &object).map_err(|status| match &row.custom {
            Some(_) => BodyError::Other(status),
            None => BodyError::OtherKind(not_decoded(row, &object), status),
        })?;
        // The one empty list that Go can distinguish from an absent one: all managers give up what they own.
        let gives_up = object["metadata"]["managedFields"].as_array().is_some_and(Vec::is_empty);
        let Resource { group, version, kind, .. } = &row.resource;
        if let Some(map) = object.as_object_mut() {
            map.insert("apiVersion".into(), row.resource.api_version().into());
            map.insert("kind".into(), kind.to_string().into());
        }
        let checked = match &row.custom {
            Some(custom) => {
                schema::check_metadata(&mut object, validation).map_err(|problem| problem.to_string()).and_then(
                    |warnings| Ok([warnings, custom.check(&mut object, duplicates, validation, nulls)?].concat()),
                )
            }
            None => schema::check_with(group, version, kind, &mut object, duplicates, validation)
                .map_err(|problem| problem.to_string()),
        };
        let warnings = checked.map_err(BodyError::Schema)?;
        (row.rules.default)(&mut object);
        object_meta::normalize(&mut object);
        if gives_up {
            metadata(&mut object).insert("managedFields".to_owned(), Value::Array(Vec::new()));
        }
        Ok((Self(object), warnings))
    }

    /// Checks an object that the server has composed, in the form that the row serves.
    pub(crate) fn composed(row: &Row, object: Value) -> Result<Self, Status> {
        let decoded = Decoded { value: object, duplicates: Vec::new() };
        let checked = Self::body(row, decoded, FieldValidation::Ignore);
        checked.map(|(checked, _)| checked).map_err(|error| error.of_body(row))
    }

    /// Returns a stored object in the form in which new ones are compared with it; who owns its fields is left out.
    pub(super) fn stored<'a>(row: &Row, stored: &'a Value) -> Result<Cow<'a, Value>, Status> {
        if row.custom.is_some() {
            if convert::is_storage_version(row) {
                return Ok(Cow::Borrowed(stored));
            }
            return Ok(Cow::Owned(convert::to_version(row, stored.clone())?));
        }
        let shown = convert::to_version(row, without_managed_fields(stored))?;
        // A stored object has been checked before. If an older server took what this one does not, it is compared as it is.
        Ok(Self::composed(row, shown).map_or(Cow::Borrowed(stored), |checked| Cow::Owned(checked.0)))
    }

    /// Sets a field of metadata.
    pub(super) fn set_metadata(&mut self, field: &str, text: &str) {
        metadata(&mut self.0).insert(field.to_owned(), text.into());
    }

    /// Removes a field of metadata.
    pub(super) fn unset_metadata(&mut self, field: &str) {
        metadata(&mut self.0).remove(field);
    }

    /// Removes duplicate owner references, and returns the warning about them.
    pub(super) fn dedup_owners(&mut self, is_patched: bool) -> Option<String> {
        object_meta::dedup_owners(&mut self.0, is_patched)
    }

    /// Returns the tree, for [`process`](super::Registry::process).
    pub(super) fn into_value(self) -> Value {
        self.0
    }
}

impl Deref for Checked {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0
    }
}

// === impl Processed ===

impl Processed<'_> {
    /// Returns the object as the store takes it.
    pub(super) fn state(&self, row: &Row) -> NewState {
        new_state(row, &self.object)
    }

    /// Keeps what is reserved, because the object has been stored.
    pub(super) fn keep_reservation(self, registry: &Registry) {
        if let Some(reservation) = self.reservation {
            reservation.commit().publish(registry, &self.object);
        }
    }
}

// === impl BodyError ===

impl BodyError {
    /// Returns the error of a body.
    pub(super) fn of_body(self, row: &Row) -> Status {
        let Resource { version, kind, .. } = &row.resource;
        match self {
            Self::Unregistered { kind: sent, api_version } => {
                let version = api_version.rsplit('/').next().unwrap_or_default();
                let problem = not_registered(&sent, &api_version);
                Status::bad_request(format!("{sent} in version {version:?} cannot be handled as a {kind}: {problem}"))
            }
            Self::Schema(problem) => {
                Status::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {problem}"))
            }
            Self::OtherKind(_, status) | Self::Other(status) => status,
        }
    }

    /// Returns the error of an object to which a configuration was applied that fits the types, but not the kind.
    pub(super) fn of_apply(self, row: &Row, config: &Value) -> Status {
        match self {
            Self::Unregistered { .. } => self.of_body(row),
            Self::Schema(problem) => {
                let Resource { group, version, kind, .. } = &row.resource;
                let namespace = meta_text(config, "namespace");
                let name = meta_text(config, "name");
                Status::plain(format!(
                    "failed to convert new object ({namespace}/{name}; {group}/{version}, Kind={kind}) to proper version: \
                     unable to convert unstructured object to {group}/{version}, Kind={kind}: {problem}"
                ))
            }
            Self::OtherKind(_, status) | Self::Other(status) => status,
        }
    }

    /// Returns the error of a patched object, for which upstream blames the patch.
    pub(super) fn of_patch(self, blamed: impl FnOnce(&str) -> FieldError) -> Status {
        match self {
            Self::Unregistered { kind, api_version } => {
                let problem = not_registered(&kind, &api_version);
                Status::invalid(GroupResource { group: "", resource: "" }, "", &[blamed(&problem)])
            }
            Self::Schema(problem) | Self::OtherKind(problem, _) => {
                Status::invalid(GroupResource { group: "", resource: "" }, "", &[blamed(&problem)])
            }
            Self::Other(status) => status,
        }
    }
}

/// Upstream's words about an object that it cannot decode as one of the row's kind.
fn not_decoded(row: &Row, object: &Value) -> String {
    let Resource { group, version, kind, .. } = &row.resource;
    let sent_version = object["apiVersion"].as_str().unwrap_or_default();
    let sent = object["kind"].as_str().unwrap_or_default();
    if sent_version != row.resource.api_version() {
        return not_registered(sent, sent_version);
    }
    unknown_conversion(group, version, kind, sent)
}

/// Upstream's words about a kind that its scheme does not have.
fn not_registered(kind: &str, api_version: &str) -> String {
    format!("no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:111\"")
}

//! Values that their schema has accepted, and the only way to get them.
//!
//! 1. A [`Checked`] object has the kind of its row, every field of it is known and has its type, and its defaults are in.
//!    It comes from the body of a request ([`Checked::body`]) or from what the server has composed of a stored object and a
//!    part of a request ([`Checked::composed`]): a scale, a binding, a mark.
//! 2. [`Registry::finish`](super::Registry::finish) takes nothing else, and [`Finished`] objects are the only ones that
//!    requests store.
//! 3. A stored object is read in the same form ([`Checked::stored`]) before it is compared with a new one: a zero value that
//!    Go writes (`divisor: "0"`) and one that nobody has written are the same.

use std::borrow::Cow;
use std::ops::Deref;

use serde_json::Value;

use super::fit::fit_kind;
use super::life::{self, metadata};
use super::write::{Claimed, new_state};
use super::{Row, convert};
use crate::decode::Decoded;
use crate::field::FieldError;
use crate::kinds;
use crate::schema::{self, FieldValidation};
use crate::status::{GroupResource, Status};
use crate::store::NewState;

/// An object of its row's kind, with its defaults; never ill-typed.
#[derive(Clone, Debug)]
pub(crate) struct Checked(Value);

/// An object that has been through everything and can be stored, and what it has taken of things there are few of.
#[must_use]
pub(crate) struct Finished<'a> {
    pub(super) object: Value,
    pub(super) claimed: Claimed<'a>,
}

/// Why a body is no object of its resource.
pub(super) enum Misfit {
    /// Its fields are not those of the kind.
    Schema(String),
    /// It is of another kind.
    Other(Status),
}

// === impl Checked ===

impl Checked {
    /// Checks a decoded body, and answers with the warnings about it.
    pub(super) fn body(
        row: &Row,
        decoded: Decoded,
        validation: FieldValidation,
    ) -> Result<(Self, Vec<String>), Misfit> {
        let Decoded { value: mut object, duplicates } = decoded;
        fit_kind(row, &object).map_err(Misfit::Other)?;
        let (group, version, kind) = (&*row.resource.group, &*row.resource.version, &*row.resource.kind);
        if let Some(map) = object.as_object_mut() {
            map.insert("apiVersion".into(), row.resource.api_version().into());
            map.insert("kind".into(), kind.into());
        }
        let checked = match &row.custom {
            Some(custom) => schema::check_metadata(&mut object, validation)
                .map_err(|problem| problem.to_string())
                .and_then(|warnings| Ok([warnings, custom.check(&mut object, duplicates, validation)?].concat())),
            None => schema::check_with(group, version, kind, &mut object, duplicates, validation)
                .map_err(|problem| problem.to_string()),
        };
        let warnings = checked.map_err(Misfit::Schema)?;
        let (group, kind) = row.rules();
        kinds::default(group, kind, &mut object);
        life::tidy(&mut object);
        Ok((Self(object), warnings))
    }

    /// Checks what the server has made of a stored object, as this row shows it.
    pub(crate) fn composed(row: &Row, object: Value) -> Result<Self, Status> {
        let decoded = Decoded { value: object, duplicates: Vec::new() };
        let checked = Self::body(row, decoded, FieldValidation::Ignore);
        checked.map(|(checked, _)| checked).map_err(|misfit| misfit.of_body(row))
    }

    /// A stored object in the form in which new ones are compared with it.
    pub(super) fn stored<'a>(row: &Row, stored: &'a Value) -> Cow<'a, Value> {
        if row.custom.is_some() {
            return Cow::Borrowed(stored);
        }
        let shown = convert::to_version(row, stored.clone());
        // What is stored was checked when it came. If an older server took what this one does not, it is compared as it is.
        Self::composed(row, shown).map_or(Cow::Borrowed(stored), |checked| Cow::Owned(checked.0))
    }

    /// Says for which object of which version it is meant.
    pub(super) fn set_meta(&mut self, field: &str, text: &str) {
        metadata(&mut self.0).insert(field.to_owned(), text.into());
    }

    pub(super) fn unset_meta(&mut self, field: &str) {
        metadata(&mut self.0).remove(field);
    }

    /// Drops owners that are there twice; answers the warning about it.
    pub(super) fn fold_owners(&mut self, is_patched: bool) -> Option<String> {
        life::fold_owners(&mut self.0, is_patched)
    }

    /// The tree, for [`finish`](super::Registry::finish).
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

// === impl Finished ===

impl Finished<'_> {
    /// The object as the store takes it.
    pub(super) fn state(&self, row: &Row) -> NewState {
        new_state(row, &self.object)
    }
}

// === impl Misfit ===

impl Misfit {
    pub(super) fn of_body(self, row: &Row) -> Status {
        let (version, kind) = (&*row.resource.version, &*row.resource.kind);
        match self {
            Self::Schema(problem) => {
                Status::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {problem}"))
            }
            Self::Other(status) => status,
        }
    }

    /// Upstream blames the patch.
    pub(super) fn of_patch(self, blamed: impl FnOnce(&str) -> FieldError) -> Status {
        match self {
            Self::Schema(problem) => {
                Status::invalid(GroupResource { group: "", resource: "" }, "", &[blamed(&problem)])
            }
            Self::Other(status) => status,
        }
    }
}

//! Creates, updates and patches: the order of a write.
//!
//! Every object that a request stores takes these steps, whichever path the request has:
//!
//! 1. **decode**: the body, or the patched object, becomes a tree ([`Registry::decode`], [`Registry::patch`]);
//! 2. **check** against the schema, and **default** ([`Checked`]);
//! 3. [`process`]: **record the owners** of the fields that change ([`owners`](super::owners)), **ask** mutating webhooks,
//!    **confirm** that the user may write this, **prepare** the part that is written, **admit** (mutating plug-ins), **validate**, **admit** (validating plug-ins, policies,
//!    webhooks), and change to the stored form;
//! 4. [`store`]: **store**, compared with the state from which the write was computed, together with what it adds to the quotas of
//!    its namespace.
//!
//! Guarantees:
//!
//! 1. An update is computed from the stored state and committed against it; if another write comes between, it is computed
//!    again, unless the client named the state it saw: then it is a conflict.
//! 2. An update that changes nothing writes nothing and keeps the resource version.
//! 3. The update that removes the last finalizer of a terminating object deletes it.
//!
//! Follows `apiserver/pkg/registry/generic/registry/store.go` of Kubernetes 1.37.

mod process;
mod store;

use serde_json::Value;
use steersman_base::Resource;

use super::checked::Checked;
use super::object_meta::meta_text;
use super::request_match::{check_name, check_namespace, uid_conflict};
use super::{Answer, Call, Content, Registry, Row, admission, convert};
use crate::decode::{self, ContentType, Decoded};
use crate::kinds::PartRules;
use crate::patch::{self, Patch, PatchType};
use crate::schema::FieldValidation;
use crate::status::Status;

pub(crate) use store::{content, new_state};

/// The part of an object that a write changes: it decides which fields are kept, and what is checked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    /// Everything but the status.
    Whole,
    /// The status.
    Status,
    /// The part of a subresource.
    Subresource(&'static PartRules),
    /// Fields that only the server changes, on behalf of a subresource: nothing is kept from the stored object.
    Composed,
}

/// The result of an update.
pub(crate) struct Updated {
    pub(crate) content: Content,
    pub(crate) is_new: bool,
    pub(crate) warnings: Vec<String>,
}

/// A changed object that has been computed from the stored one.
pub(crate) struct Computed {
    pub(crate) object: Checked,
    /// The warnings about it.
    pub(crate) warnings: Vec<String>,
    pub(crate) owners: Owners,
}

/// Whether the owners of an object's fields are still to be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owners {
    /// The manager of the request owns what it changes.
    Changes,
    /// The object has them already.
    Recorded,
}

/// Computes the changed object from the stored one.
pub(crate) type Compute<'a> = dyn FnMut(Option<&Value>) -> Result<Computed, Status> + 'a;

impl Registry {
    /// Answers the POST of an object.
    pub(crate) fn create(&self, call: &Call, body: &[u8], content_type: ContentType) -> Result<Answer, Status> {
        let (mut object, warnings) = self.decode(&call.row, body, content_type, call.field_validation)?;
        let created = check_namespace(call, &mut object).and_then(|()| self.create_object(call, object));
        let (content, of_kind) = created.map_err(|status| status.warning(&warnings))?;
        Ok(Answer::created(content).warning(warnings).warning(of_kind))
    }

    /// Creates an object that has been decoded. Returns it, and the warnings about it.
    pub(crate) fn create_object(&self, call: &Call, object: Checked) -> Result<(Content, Vec<String>), Status> {
        admission::check_namespace(self, call, &object)?;
        self.create_once(call, object, Owners::Changes)
    }

    /// Answers the PUT of an object or of a part of it.
    pub(crate) fn put(
        &self,
        call: &Call,
        part: Part,
        body: &[u8],
        content_type: ContentType,
    ) -> Result<Answer, Status> {
        let (mut object, warnings) = self.decode(&call.row, body, content_type, call.field_validation)?;
        let checked = check_name(call, &object).and_then(|()| check_namespace(call, &mut object));
        checked.map_err(|status| status.warning(&warnings))?;
        let uid = meta_text(&object, "uid").to_owned();
        let updated = self.update(call, part, &mut |old| {
            if let Some(old) = old
                && !uid.is_empty()
                && uid != meta_text(old, "uid")
            {
                return Err(uid_conflict(call, &uid, meta_text(old, "uid")));
            }
            Ok(Computed::from(object.clone()))
        });
        let mut updated = updated.map_err(|status| status.warning(&warnings))?;
        updated.warnings.splice(0..0, warnings);
        Ok(updated.into())
    }

    /// Answers the PATCH of an object or of a part of it.
    pub(crate) fn patch(&self, call: &Call, part: Part, kind: PatchType, body: &[u8]) -> Result<Answer, Status> {
        let row = &*call.row;
        let Resource { group, version, kind: of, .. } = &row.resource;
        let mut read: Option<Patch> = None;
        let updated = self.update(call, part, &mut |old| {
            let Some(old) = old else { return Err(Status::not_found(row.target(), &call.name)) };
            patch::accepts(kind, group, version, of).map_err(Status::from)?;
            // The patch is read once, however often the update is computed again.
            let patch = match &mut read {
                Some(patch) => patch,
                None => read.insert(Patch::read(kind, body).map_err(Status::from)?),
            };
            let patched = || {
                let shown = convert::to_version(row, old.clone())?;
                patch.apply(group, version, of, shown).map_err(Status::from)
            };
            let decoded = Decoded { value: patched()?, duplicates: patch.findings().to_vec() };
            let checked = Checked::body(row, decoded, call.field_validation);
            // An error shows the patched object; errors are so rare that it is computed again.
            let blamed = |problem: &str| {
                let kind = patch::Kind { group, version, kind: of };
                let shown = convert::to_version(row, old.clone()).unwrap_or_default();
                patch.refused_result(&kind, &shown, &patched().unwrap_or_default(), problem)
            };
            let (mut object, mut warnings) = checked.map_err(|error| error.of_patch(blamed))?;
            warnings.extend(object.dedup_owners(true));
            check_name(call, &object)?;
            check_namespace(call, &mut object)?;
            Ok(Computed { object, warnings, owners: Owners::Changes })
        })?;
        Ok(updated.into())
    }

    /// Changes one object: computes the change, processes it, and stores it if no other write has come between.
    pub(crate) fn update(&self, call: &Call, part: Part, compute: &mut Compute<'_>) -> Result<Updated, Status> {
        self.update_or_create(call, part, call.row.rules.strategy.create_on_update, compute)
    }

    /// Decodes a body that must be an object of this resource.
    pub(crate) fn decode(
        &self,
        row: &Row,
        body: &[u8],
        content_type: ContentType,
        validation: FieldValidation,
    ) -> Result<(Checked, Vec<String>), Status> {
        let kind = &*row.resource.kind;
        let decoded = decode::object(body, content_type).map_err(|error| Status::bad_request(error.message(kind)))?;
        let (mut object, mut warnings) = Checked::body(row, decoded, validation).map_err(|error| error.of_body(row))?;
        warnings.extend(object.dedup_owners(false));
        Ok((object, warnings))
    }
}

// === impl Computed ===

impl From<Checked> for Computed {
    fn from(object: Checked) -> Self {
        Self { object, warnings: Vec::new(), owners: Owners::Changes }
    }
}

// === impl Updated ===

impl From<Updated> for Answer {
    fn from(updated: Updated) -> Self {
        let code = if updated.is_new { 201 } else { 200 };
        Self { code, body: updated.content, warnings: updated.warnings }
    }
}

// === impl Status ===

impl From<patch::PatchError> for Status {
    fn from(error: patch::PatchError) -> Self {
        let details = error.details.then(Default::default);
        Self { code: error.code, reason: error.reason, message: error.message, details, warnings: Vec::new() }
    }
}

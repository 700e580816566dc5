//! Creates, updates and patches: the order of a write.
//!
//! Every object that a request stores takes these steps, whichever path the request has:
//!
//! 1. **decode**: the body, or the patched object, becomes a tree ([`Registry::decode`], [`Registry::patch`]);
//! 2. **check** against the schema, and **default** ([`Checked`]);
//! 3. [`Registry::process`]: **tell owners** of the fields that change ([`owners`](super::owners)), **ask** mutating webhooks,
//!    **prepare** the part that is written, **admit** (mutating plug-ins), **validate**, **admit** (validating plug-ins, then
//!    webhooks), and change to the stored form;
//! 4. **store**, compared with the state from which the write was computed ([`Registry::create_once`], [`Registry::update`]),
//!    together with what it adds to the quotas of its namespace ([`Registry::commit_charged`]).
//!
//! Guarantees:
//!
//! 1. An update is computed from the stored state and committed against it; if another write comes between, it is computed
//!    again, unless the client named the state it saw: then it is a conflict.
//! 2. An update that changes nothing writes nothing and keeps the resource version.
//! 3. The update that removes the last finalizer of a terminating object deletes it.
//!
//! Follows `apiserver/pkg/registry/generic/registry/store.go` of Kubernetes 1.37.

use std::sync::Arc;

use serde_json::Value;
use steersman_base::{ObjectKey, Resource, StringMap};
use steersman_structured_merge::keep_times_of_unchanged;

use super::admission::webhook;
use super::checked::{Checked, Processed};
use super::object_meta::{self, meta_text, metadata};
use super::owners::{set_managed_fields, take_managed_fields};
use super::query::strings;
use super::request_match::{check_name, check_namespace, check_version, uid_conflict};
use super::scale::SCALE;
use super::strategy::Generation;
use super::{Answer, Call, Content, Registry, Row, admission, convert};
use crate::auth::rbac::Attributes;
use crate::decode::{self, ContentType, Decoded};
use crate::field::Errors;
use crate::kinds::PartRules;
use crate::kinds::core::service::{AllocateError, Reservation};
use crate::patch::{self, Patch, PatchType};
use crate::schema::{self, FieldValidation};
use crate::status::Status;
use crate::store::{Change, DEPTH_MAX, Draft, Expect, NewState, Object, WriteConflict, is_too_deep};

/// How many generated names are tried.
const GENERATED_NAMES_MAX: usize = 8;
/// How often an update is computed because other writes come between; more does not happen by chance.
const ATTEMPTS_MAX: usize = 64;
/// The bytes of objects after which [`ATTEMPTS_MIN`] attempts are enough.
const ATTEMPTS_BYTES_MAX: usize = 16 << 20;
/// How often the largest updates are computed: as often as upstream applies a patch.
const ATTEMPTS_MIN: usize = 5;

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

/// Whether the owners of an object's fields are still to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owners {
    /// The manager of the request owns what it changes.
    Changes,
    /// The object has them already.
    Told,
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

    /// Returns a generated name that no object has.
    fn free_name(&self, call: &Call, prefix: &str) -> String {
        let mut name = object_meta::generate_name(prefix);
        for _ in 1..GENERATED_NAMES_MAX {
            let key = ObjectKey::new(&call.namespace, &name);
            if self.store.get(&call.row.collection, &key).is_none() {
                break;
            }
            name = object_meta::generate_name(prefix);
        }
        name
    }

    /// Processes and stores a new object.
    fn create_once(&self, call: &Call, object: Checked, owners: Owners) -> Result<(Content, Vec<String>), Status> {
        let row = &*call.row;
        let has_version = !meta_text(&object, "resourceVersion").is_empty();
        let mut processed = self.process(call, object, owners, None, Part::Whole)?;
        let warnings = std::mem::take(&mut processed.warnings);
        let name = meta_text(&processed.object, "name").to_owned();
        let key = ObjectKey::new(&call.namespace, &name);
        if call.dry_run {
            self.check_quotas(call, &processed.object, None)?;
            return match self.store.get(&row.collection, &key) {
                Some(_) => Err(Status::already_exists(row.target(), &name).warning(&warnings)),
                None => Ok((Content::Value(convert::to_version(row, processed.object)?), warnings)),
            };
        }
        // Upstream's store refuses it, which is not asked in a dry run.
        if has_version {
            return Err(Status::plain("resourceVersion should not be set on objects to be created"));
        }
        let write = (&key, Expect::Absent, processed.state(row));
        let committed = self.commit_charged(call, write, &processed.object, None)?;
        let stored = committed.map_err(|_| Status::already_exists(row.target(), &name).warning(&warnings))?;
        processed.keep_reservation(self);
        (row.rules.after_write)(self, &stored);
        Ok((content(row, stored), warnings))
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

    /// [`update`](Self::update) that may create an object that is missing.
    pub(crate) fn update_or_create(
        &self,
        call: &Call,
        part: Part,
        may_create: bool,
        compute: &mut Compute<'_>,
    ) -> Result<Updated, Status> {
        let row = &*call.row;
        let key = call.key();
        let mut bytes = 0;
        for attempt in 0..ATTEMPTS_MAX {
            if attempt >= ATTEMPTS_MIN && bytes > ATTEMPTS_BYTES_MAX {
                break;
            }
            let Some(stored) = self.store.get(&row.collection, &key) else {
                if !may_create || !call.subresource.is_empty() {
                    return Err(Status::not_found(row.target(), &call.name));
                }
                return self.create_by_update(call, compute);
            };
            let old = stored.parse().map_err(Status::internal)?;
            let Computed { mut object, mut warnings, owners } = compute(Some(&old))?;
            let processed = check_version(call, &mut object, &stored)
                .and_then(|()| self.process(call, object, owners, Some(&old), part));
            let mut processed = processed.map_err(|status| status.warning(&warnings))?;
            warnings.append(&mut processed.warnings);
            let updated = |content: Content| Ok(Updated { content, is_new: false, warnings });
            let is_released = is_released(row, &processed.object, &old);
            if call.dry_run {
                self.check_quotas(call, &processed.object, Some(&old))?;
                return updated(Content::Value(convert::to_version(row, processed.object)?));
            }
            let expect = Expect::Revision(stored.revision);
            if is_released {
                if self.store.commit(&row.collection, &key, expect, Change::Delete(None)).is_err() {
                    continue;
                }
                let mut object = processed.object;
                (row.rules.after_delete)(self, &object);
                metadata(&mut object).insert("resourceVersion".into(), stored.revision.to_string().into());
                return updated(Content::Value(convert::to_version(row, object)?));
            }
            let state = processed.state(row);
            bytes += stored.len() + state.draft.len();
            if state.draft.is_unchanged_from(&stored) {
                return updated(content(row, stored));
            }
            match self.commit_charged(call, (&key, expect, state), &processed.object, Some(&old))? {
                Ok(stored) => {
                    processed.keep_reservation(self);
                    (row.rules.after_write)(self, &stored);
                    return updated(content(row, stored));
                }
                Err(WriteConflict::Gone) => return Err(Status::not_found(row.target(), &call.name)),
                // Another write came between: compute again from the new state, which is a conflict if the client named
                // the one it saw.
                Err(_) => {}
            }
        }
        Err(Status::modified(row.target(), &call.name))
    }

    /// Creates the object of a PUT or an apply.
    fn create_by_update(&self, call: &Call, compute: &mut Compute<'_>) -> Result<Updated, Status> {
        let row = &*call.row;
        let Computed { mut object, mut warnings, owners } = compute(None)?;
        if !meta_text(&object, "uid").is_empty() {
            return Err(uid_conflict(call, meta_text(&object, "uid"), ""));
        }
        // Whoever may update objects may not therefore create them.
        self.authorize(&call.user, &Attributes::create(row, &call.namespace, &call.name))?;
        object.unset_metadata("resourceVersion");
        admission::check_namespace(self, call, &object)?;
        let created = self.create_once(call, object, owners);
        let (content, of_kind) = created.map_err(|status| status.warning(&warnings))?;
        warnings.extend(of_kind);
        Ok(Updated { content, is_new: true, warnings })
    }

    /// Takes an object that has been decoded, checked and defaulted to the form in which it is stored.
    pub(crate) fn process(
        &self,
        call: &Call,
        checked: Checked,
        owners: Owners,
        stored: Option<&Value>,
        part: Part,
    ) -> Result<Processed<'_>, Status> {
        let row = &*call.row;
        let old = stored.map(|stored| Checked::stored(row, stored)).transpose()?;
        let old = old.as_deref();
        let mut object = checked.into_value();
        if owners == Owners::Changes {
            if stored.is_none() {
                object_meta::remove_system_fields(&mut object);
            }
            self.tell_owners(call, part, stored, &mut object)?;
        }
        if asks_webhooks(call, part) {
            object = self.mutated_by_webhooks(call, object, old, stored, part)?;
        }
        if stored.is_none() && meta_text(&object, "name").is_empty() && !meta_text(&object, "generateName").is_empty() {
            let name = self.free_name(call, meta_text(&object, "generateName"));
            metadata(&mut object).insert("name".into(), name.into());
        }

        let reservation = self.prepare_and_mutate(call, &mut object, old, part)?;
        if let Some(stored) = stored {
            // Owners are no content, and may be large.
            let owners = take_managed_fields(&mut object);
            let is_next = part.raises_generation() && is_next_generation(row, &object, stored, old)?;
            set_managed_fields(&mut object, owners);
            object_meta::keep_system_fields(&mut object, stored, is_next);
        }
        object_meta::normalize(&mut object);

        let mut warnings = Vec::new();
        let errors = errors(row, &object, old, part, &mut warnings);
        if !errors.is_empty() {
            return Err(Status::invalid(row.kind(), meta_text(&object, "name"), &errors));
        }
        if matches!(part, Part::Whole) {
            (row.rules.warn)(&object, old, &mut warnings);
        }
        admission::validate(self, call, &object, old)?;
        if asks_webhooks(call, part) {
            let before = stored.map(|stored| convert::to_version(row, stored.clone())).transpose()?;
            self.ask_validating(call, &webhook::Attributes::written(call, object.clone(), before))?;
        }

        complete(row, &mut object)?;
        if let Some(stored) = stored {
            keep_times_of_unchanged(stored, &mut object);
        }
        Ok(Processed { object, reservation, warnings })
    }

    /// Returns what mutating webhooks make of an object.
    fn mutated_by_webhooks(
        &self,
        call: &Call,
        mut object: Value,
        old: Option<&Value>,
        stored: Option<&Value>,
        part: Part,
    ) -> Result<Value, Status> {
        if stored.is_none() {
            object_meta::remove_system_fields(&mut object);
        }
        let before = stored.map(|stored| convert::to_version(&call.row, stored.clone())).transpose()?;
        let mut attributes = webhook::Attributes::written(call, object, before);
        self.ask_mutating(call, &mut attributes, &mut |object| match part {
            Part::Whole => admission::mutate(self, call, object, old),
            _ => Ok(()),
        })?;
        let mut object = attributes.object.unwrap_or_default();
        if let (Some(warning), Some(session)) = (object_meta::dedup_owners(&mut object, true), &call.session) {
            session.warn(vec![warning]);
        }
        Ok(object)
    }

    /// Prepares the part that is written: sets and keeps the fields that are not the client's. A write of the whole goes
    /// through the mutating plug-ins, and reserves what the object needs.
    fn prepare_and_mutate(
        &self,
        call: &Call,
        object: &mut Value,
        old: Option<&Value>,
        part: Part,
    ) -> Result<Option<Reservation<'_>>, Status> {
        let row = &*call.row;
        let now = || self.clock.now().to_string();
        match (part, old) {
            (Part::Whole, _) => {
                match old {
                    Some(old) => object_meta::keep_status(row, object, old),
                    None => object_meta::initialize(row, object, self.clock.now()),
                }
                admission::mutate(self, call, object, old)?;
                (row.rules.prepare)(object, old);
                if old.is_none() {
                    (row.rules.record_user)(object, &call.user);
                }
                return self.reserve(row, object, old);
            }
            (Part::Status, Some(old)) => {
                *object = object_meta::merge_status(row, object, old);
                (row.rules.status.prepare)(object, old, &now());
            }
            (Part::Subresource(rules), Some(old)) => {
                let owners = take_managed_fields(object);
                (rules.prepare)(object, old, &now());
                set_managed_fields(object, owners);
            }
            (Part::Composed, _) | (_, None) => {}
        }
        Ok(None)
    }

    /// Reserves what the object needs: addresses and node ports of Services.
    fn reserve(&self, row: &Row, object: &mut Value, old: Option<&Value>) -> Result<Option<Reservation<'_>>, Status> {
        let Some(allocate) = row.rules.allocate else { return Ok(None) };
        match allocate(self, object, old) {
            Ok(reservation) => Ok(Some(reservation)),
            Err(AllocateError::Invalid(errors)) => Err(Status::invalid(row.kind(), meta_text(object, "name"), &errors)),
            Err(AllocateError::Full(message)) => Err(Status::internal(message)),
        }
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

/// Whether webhooks are asked about the object itself. They are asked about the body of the request otherwise, or not at all.
fn asks_webhooks(call: &Call, part: Part) -> bool {
    call.session.is_some() && !matches!(part, Part::Composed) && call.subresource != SCALE
}

/// Returns all that is wrong with an object, or with the change of the part that is written; adds warnings about what was
/// wrong before.
fn errors(row: &Row, object: &Value, old: Option<&Value>, part: Part, warnings: &mut Vec<String>) -> Errors {
    let rules = row.rules;
    match (part, &row.custom, old) {
        (_, Some(custom), _) => custom.validate(object, old, matches!(part, Part::Status), warnings),
        (Part::Whole, None, _) | (_, None, None) => rules.errors(object, old),
        (Part::Status, None, Some(old)) => rules.status.errors(object, old),
        (Part::Subresource(part), None, Some(old)) => part.errors(object, old),
        (Part::Composed, None, Some(old)) => rules.composed_errors(object, old),
    }
}

/// Changes an object to its stored form, in which all fields are present that Go writes.
fn complete(row: &Row, object: &mut Value) -> Result<(), Status> {
    convert::to_storage(row, object)?;
    if row.custom.is_none() {
        let (group, version, kind) = convert::storage_kind(row);
        schema::complete(group, version, kind, object);
    }
    if is_too_deep(object) {
        let kind = &*row.resource.kind;
        let message = format!("{kind} cannot be stored: it is nested more than {DEPTH_MAX} levels deep");
        return Err(Status::bad_request(message));
    }
    Ok(())
}

/// Whether a change increments the generation. Stored objects are complete, so the new one is completed before it is
/// compared.
fn is_next_generation(row: &Row, object: &Value, stored: &Value, old: Option<&Value>) -> Result<bool, Status> {
    let generation = row.rules.strategy.generation;
    if row.custom.is_some() || generation == Generation::None {
        // What a webhook converts is compared in the version of the request.
        let is_converted = row.custom.as_ref().is_some_and(|custom| custom.conversion.is_some());
        let before = old.filter(|_| is_converted).unwrap_or(stored);
        return Ok(object_meta::is_next_generation(generation, object, before));
    }
    let mut complete = object.clone();
    convert::to_storage(row, &mut complete)?;
    let (group, version, kind) = convert::storage_kind(row);
    schema::complete(group, version, kind, &mut complete);
    Ok(object_meta::is_next_generation(generation, &complete, stored))
}

/// Whether a change removes the last finalizer of a terminating object.
fn is_released(row: &Row, object: &Value, old: &Value) -> bool {
    let before = &old["metadata"];
    !before["deletionTimestamp"].is_null()
        && before["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0
        && strings(&object["metadata"]["finalizers"]).is_empty()
        && !(row.rules.strategy.has_other_finalizers)(object)
}

/// Returns an object as the store takes it. For objects that the server changes on its own: terminating objects, conditions
/// of definitions, and the objects that every cluster has. What a request stores is [`Processed`].
pub(crate) fn new_state(row: &Row, object: &Value) -> NewState {
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    let labels: StringMap = labels.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default())).collect();
    NewState {
        draft: Draft::encode(object, row.custom.is_none()),
        labels,
        fields: row.rules.strategy.field_values(object),
    }
}

/// Returns a stored object in the form that the row serves.
pub(crate) fn content(row: &Row, stored: Arc<Object>) -> Content {
    if convert::is_storage_version(row) {
        return Content::Stored(stored);
    }
    match stored.parse() {
        Ok(value) => match convert::to_version(row, value) {
            Ok(value) => Content::Value(value),
            Err(status) => Content::Status(status),
        },
        Err(error) => Content::Status(Status::internal(error)),
    }
}

// === impl Part ===

impl Part {
    /// Whether a change of this part increments the generation.
    fn raises_generation(self) -> bool {
        match self {
            Self::Whole => true,
            Self::Subresource(rules) => rules.raises_generation,
            Self::Status | Self::Composed => false,
        }
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

//! Creates, updates and patches.
//!
//! 1. An update is computed from the stored state and committed against it; if somebody was faster, it is computed again,
//!    unless the client named the state it saw: then it is a conflict.
//! 2. An update that changes nothing writes nothing and keeps the resource version.
//! 3. The update that takes the last finalizer off a terminating object deletes it.
//!
//! Follows `apiserver/pkg/registry/generic/registry/store.go` of Kubernetes 1.37.

use std::sync::Arc;

use serde_json::Value;
use steersman_base::{ObjectKey, StringMap};

use super::checked::{Checked, Finished};
use super::fit::{check_version, fit_name, wrong_uid};
use super::life::{self, meta_text, metadata};
use super::query::strings;
use super::traits::Generation;
use super::{Answer, Call, Content, Registry, Row, convert};
use crate::auth::rbac::Attributes;
use crate::decode::{self, ContentType, Decoded};
use crate::field::Errors;
use crate::patch::{self, Patch, PatchType};
use crate::schema::{self, FieldValidation};
use crate::status::Status;
use crate::store::{Change, DEPTH_MAX, Draft, Expect, NewState, Object, WriteConflict, is_too_deep};
use crate::{admission, kinds};

/// How often a generated name may be taken before we give up.
const GENERATED_NAMES_MAX: usize = 8;
/// How often an update is computed again because somebody was faster. Nobody loses so often by chance.
const ATTEMPTS_MAX: usize = 64;
/// How many bytes of objects an update may go through before [`ATTEMPTS_MIN`] attempts are enough.
const ATTEMPTS_BYTES_MAX: usize = 16 << 20;
/// How often even the largest update is computed: as often as upstream applies a patch.
const ATTEMPTS_MIN: usize = 5;

/// Which part of an object a write is about: who sets which fields, and what is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All but the status.
    Whole,
    /// The status.
    Status,
    /// The conditions of a certificate request that say whether it is approved.
    Approval,
    /// The part of a pod's spec that its subresource is about.
    Spec,
    /// The finalizers in the spec of a namespace.
    Finalizers,
    /// Parts that only the server changes, on behalf of a subresource: nothing is kept from the stored state.
    Server,
}

/// The result of an update.
pub(crate) struct Updated {
    pub(crate) content: Content,
    pub(crate) is_new: bool,
    pub(crate) warnings: Vec<String>,
}

/// What a write has taken of things there are few of; given back unless the write is done.
#[must_use]
pub(crate) struct Claimed<'a>(pub(crate) Option<kinds::service::Claim<'a>>);

/// A change of one object, computed from what is stored.
pub(crate) type Compute<'a> = dyn FnMut(Option<&Value>) -> Result<(Checked, Vec<String>), Status> + 'a;

impl Registry {
    /// POST of an object.
    pub(crate) fn create(&self, call: &Call, body: &[u8], content_type: ContentType) -> Result<Answer, Status> {
        let (mut object, warnings) = self.decode(&call.row, body, content_type, call.field_validation)?;
        self.fit_namespace(call, &mut object)?;
        let content = self.create_value(call, object)?;
        Ok(Answer::created(content).warning(warnings))
    }

    /// Makes an object that has been decoded.
    pub(crate) fn create_value(&self, call: &Call, object: Checked) -> Result<Content, Status> {
        admission::namespace_for_create(self, call, &object)?;
        let prefix = meta_text(&object, "generateName").to_owned();
        if prefix.is_empty() || !meta_text(&object, "name").is_empty() {
            return self.create_once(call, object);
        }
        let mut attempts = 1;
        loop {
            let mut candidate = object.clone();
            candidate.set_meta("name", &life::generate_name(&prefix));
            match self.create_once(call, candidate) {
                Err(status) if status.reason == "AlreadyExists" && attempts < GENERATED_NAMES_MAX => attempts += 1,
                other => return other,
            }
        }
    }

    fn create_once(&self, call: &Call, object: Checked) -> Result<Content, Status> {
        let row = &*call.row;
        if !meta_text(&object, "resourceVersion").is_empty() {
            return Err(Status::plain("resourceVersion should not be set on objects to be created"));
        }
        let finished = self.finish(call, object, None, Part::Whole)?;
        let name = meta_text(&finished.object, "name").to_owned();
        let key = ObjectKey::new(&call.namespace, &name);
        if call.dry_run {
            return match self.store.get(&row.shelf, &key) {
                Some(_) => Err(Status::already_exists(row.target(), &name)),
                None => Ok(Content::Value(convert::to_version(row, finished.object))),
            };
        }
        let committed = self.store.commit(&row.shelf, &key, Expect::Absent, Change::Put(finished.state(row)));
        let stored = committed.map_err(|_| Status::already_exists(row.target(), &name))?;
        finished.claimed.keep();
        self.after_write(row, &stored);
        Ok(content(row, stored))
    }

    /// PUT of an object or of its status.
    pub(crate) fn put(
        &self,
        call: &Call,
        part: Part,
        body: &[u8],
        content_type: ContentType,
    ) -> Result<Answer, Status> {
        let (mut object, warnings) = self.decode(&call.row, body, content_type, call.field_validation)?;
        fit_name(call, &object)?;
        self.fit_namespace(call, &mut object)?;
        let uid = meta_text(&object, "uid").to_owned();
        let mut updated = self.update(call, part, &mut |old| {
            if let Some(old) = old
                && !uid.is_empty()
                && uid != meta_text(old, "uid")
            {
                return Err(wrong_uid(call, &uid, meta_text(old, "uid")));
            }
            Ok((object.clone(), Vec::new()))
        })?;
        updated.warnings.extend(warnings);
        Ok(updated.into())
    }

    /// PATCH of an object or of its status.
    pub(crate) fn patch(&self, call: &Call, part: Part, kind: PatchType, body: &[u8]) -> Result<Answer, Status> {
        let row = &*call.row;
        let (group, version, of) = (&*row.resource.group, &*row.resource.version, &*row.resource.kind);
        let mut read: Option<Patch> = None;
        let updated = self.update(call, part, &mut |old| {
            let Some(old) = old else { return Err(Status::not_found(row.target(), &call.name)) };
            patch::accepts(kind, group, version, of).map_err(Status::from)?;
            // However often somebody else is faster, the patch is read once.
            let patch = match &mut read {
                Some(patch) => patch,
                None => read.insert(Patch::read(kind, body).map_err(Status::from)?),
            };
            let patched =
                || patch.apply(group, version, of, convert::to_version(row, old.clone())).map_err(Status::from);
            let decoded = Decoded { value: patched()?, duplicates: patch.findings().to_vec() };
            let checked = Checked::body(row, decoded, call.field_validation);
            // A refusal shows what came out of the patch; so few are refused that it is worked out again.
            let blamed = |problem: &str| patch.refused_result(&patched().unwrap_or_default(), problem);
            let (mut object, mut warnings) = checked.map_err(|misfit| misfit.of_patch(blamed))?;
            warnings.extend(object.fold_owners(true));
            fit_name(call, &object)?;
            self.fit_namespace(call, &mut object)?;
            Ok((object, warnings))
        })?;
        Ok(updated.into())
    }

    /// Changes one object, with all that belongs to a change.
    pub(crate) fn update(&self, call: &Call, part: Part, compute: &mut Compute<'_>) -> Result<Updated, Status> {
        let row = &*call.row;
        let key = call.key();
        let mut bytes = 0;
        for attempt in 0..ATTEMPTS_MAX {
            if attempt >= ATTEMPTS_MIN && bytes > ATTEMPTS_BYTES_MAX {
                break;
            }
            let Some(stored) = self.store.get(&row.shelf, &key) else {
                return self.create_by_update(call, compute);
            };
            let old = stored.parse().map_err(Status::internal)?;
            let (mut object, warnings) = compute(Some(&old))?;
            check_version(call, &mut object, &stored)?;
            let finished = self.finish(call, object, Some(&old), part)?;
            let is_over = is_released(row, &finished.object, &old);
            if call.dry_run {
                let content = Content::Value(convert::to_version(row, finished.object));
                return Ok(Updated { content, is_new: false, warnings });
            }
            if is_over {
                match self.store.commit(&row.shelf, &key, Expect::Revision(stored.revision), Change::Delete(None)) {
                    Ok(_) => {
                        let mut object = finished.object;
                        self.after_delete(row, &object);
                        metadata(&mut object).insert("resourceVersion".into(), stored.revision.to_string().into());
                        let content = Content::Value(convert::to_version(row, object));
                        return Ok(Updated { content, is_new: false, warnings });
                    }
                    Err(_) => continue,
                }
            }
            let state = finished.state(row);
            bytes += stored.len() + state.draft.len();
            if state.draft.says_the_same_as(&stored) {
                return Ok(Updated { content: content(row, stored), is_new: false, warnings });
            }
            match self.store.commit(&row.shelf, &key, Expect::Revision(stored.revision), Change::Put(state)) {
                Ok(stored) => {
                    finished.claimed.keep();
                    self.after_write(row, &stored);
                    return Ok(Updated { content: content(row, stored), is_new: false, warnings });
                }
                Err(WriteConflict::Gone) => return Err(Status::not_found(row.target(), &call.name)),
                // Somebody was faster: once more from what there is now, which is a conflict if the client named what
                // it saw.
                Err(_) => {}
            }
        }
        Err(Status::modified(row.target(), &call.name))
    }

    fn create_by_update(&self, call: &Call, compute: &mut Compute<'_>) -> Result<Updated, Status> {
        let row = &*call.row;
        if !row.traits.create_on_update || !call.subresource.is_empty() {
            return Err(Status::not_found(row.target(), &call.name));
        }
        let (mut object, warnings) = compute(None)?;
        if !meta_text(&object, "uid").is_empty() {
            return Err(wrong_uid(call, meta_text(&object, "uid"), ""));
        }
        // Who may change what is there may not therefore make what is not.
        self.authorize(&call.user, &Attributes::create(row, &call.namespace, &call.name))?;
        object.unset_meta("resourceVersion");
        admission::namespace_for_create(self, call, &object)?;
        let content = self.create_once(call, object)?;
        Ok(Updated { content, is_new: true, warnings })
    }

    /// The one way of every object that a request stores: strategy (who sets which part), admission, validation, and the
    /// form in which it is stored. It takes only what the schema has accepted.
    pub(crate) fn finish(
        &self,
        call: &Call,
        checked: Checked,
        old: Option<&Value>,
        part: Part,
    ) -> Result<Finished<'_>, Status> {
        let row = &*call.row;
        let before = old.map(|old| Checked::stored(row, old));
        let before = before.as_deref();
        let mut object = checked.into_value();
        let claimed = self.prepare(call, &mut object, before, part)?;
        if let Some(old) = old {
            let is_next = matches!(part, Part::Whole | Part::Spec) && is_next_generation(row, &object, old);
            life::carry_over(&mut object, old, is_next);
        }
        life::tidy(&mut object);
        let errors = errors(call, &object, before, part);
        if !errors.is_empty() {
            return Err(Status::invalid(row.kind(), meta_text(&object, "name"), &errors));
        }
        admission::may_sign(self, call, &object, before)?;
        convert::to_storage(row, &mut object);
        if row.custom.is_none() {
            let (group, version, kind) = convert::storage_kind(row);
            schema::complete(group, version, kind, &mut object);
        }
        if is_too_deep(&object) {
            let kind = &*row.resource.kind;
            let message = format!("{kind} cannot be stored: it is nested more than {DEPTH_MAX} levels deep");
            return Err(Status::bad_request(message));
        }
        Ok(Finished { object, claimed })
    }

    /// Keeps and sets what is not the client's to say, and adds what admission adds.
    fn prepare(&self, call: &Call, object: &mut Value, old: Option<&Value>, part: Part) -> Result<Claimed<'_>, Status> {
        let row = &*call.row;
        let (group, kind) = row.rules();
        let now = || self.clock.now().to_string();
        match (part, old) {
            (Part::Whole, _) => {
                match old {
                    Some(old) => life::keep_status(row, object, old),
                    None => life::begin(row, object, self.clock.now()),
                }
                admission::admit(self, call, object, old)?;
                kinds::prepare(group, kind, object, old);
                if old.is_none() && row.is("certificates.k8s.io", "certificatesigningrequests") {
                    kinds::set_requester(object, &call.user.to_json());
                }
                return admission::claim(self, row, object, old);
            }
            (Part::Status, Some(old)) => {
                *object = life::take_status(row, object, old);
                kinds::prepare_status(group, kind, object, old, &now());
            }
            (Part::Approval, Some(old)) => kinds::prepare_approval(object, old, &now()),
            (Part::Spec, Some(old)) => *object = life::take_spec(&call.subresource, object, old),
            (Part::Finalizers, Some(old)) => *object = life::take_finalizers(object, old),
            (Part::Server, _) | (_, None) => {}
        }
        Ok(Claimed(None))
    }

    /// Reads a body that must be an object of this resource.
    pub(crate) fn decode(
        &self,
        row: &Row,
        body: &[u8],
        content_type: ContentType,
        validation: FieldValidation,
    ) -> Result<(Checked, Vec<String>), Status> {
        let kind = &*row.resource.kind;
        let decoded = decode::object(body, content_type).map_err(|error| Status::bad_request(error.message(kind)))?;
        let (mut object, mut warnings) =
            Checked::body(row, decoded, validation).map_err(|misfit| misfit.of_body(row))?;
        warnings.extend(object.fold_owners(false));
        Ok((object, warnings))
    }

    /// The object must be meant for the namespace of the request.
    pub(crate) fn fit_namespace(&self, call: &Call, object: &mut Checked) -> Result<(), Status> {
        let namespace = meta_text(object, "namespace");
        if call.row.is_namespaced() && namespace.is_empty() {
            object.set_meta("namespace", &call.namespace);
        } else if namespace != call.namespace {
            let message = "the namespace of the provided object does not match the namespace sent on the request";
            return Err(Status::bad_request(message));
        }
        Ok(())
    }
}

/// All that is wrong with an object, or with the change of the part that this write is about.
fn errors(call: &Call, object: &Value, old: Option<&Value>, part: Part) -> Errors {
    let row = &*call.row;
    let (group, kind) = row.rules();
    match (part, &row.custom, old) {
        (_, Some(custom), _) => custom.validate(object, old),
        (_, None, None) => {
            let mut errors = kinds::validate(group, kind, object, None);
            errors.extend(super::crd::claims_built_in(row, object));
            errors
        }
        (Part::Whole, None, Some(_)) => kinds::validate(group, kind, object, old),
        (Part::Status, None, Some(old)) => kinds::validate_status(group, kind, object, old),
        (Part::Approval, None, Some(old)) => kinds::validate_approval(object, old),
        (Part::Spec, None, Some(old)) => kinds::validate_pod_part(&call.subresource, object, old),
        (Part::Finalizers | Part::Server, None, Some(old)) => kinds::validate_server(group, kind, object, old),
    }
}

/// Whether a change is a new generation. What is stored is complete, so what is new must be too to be compared with it.
fn is_next_generation(row: &Row, object: &Value, old: &Value) -> bool {
    if row.custom.is_some() || row.traits.generation == Generation::None {
        return life::is_next_generation(row.traits.generation, object, old);
    }
    let mut complete = object.clone();
    convert::to_storage(row, &mut complete);
    let (group, version, kind) = convert::storage_kind(row);
    schema::complete(group, version, kind, &mut complete);
    life::is_next_generation(row.traits.generation, &complete, old)
}

/// Whether nobody holds a terminating object any more, once it is changed so.
fn is_released(row: &Row, object: &Value, old: &Value) -> bool {
    let before = &old["metadata"];
    let holds_namespace = row.is("", "namespaces") && !strings(&object["spec"]["finalizers"]).is_empty();
    !before["deletionTimestamp"].is_null()
        && before["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0
        && strings(&object["metadata"]["finalizers"]).is_empty()
        && !holds_namespace
}

/// An object as the store takes it. For what the server changes on its own: marks of deletion, conditions of definitions, and
/// what every cluster begins with. What a request stores is [`Finished`].
pub(crate) fn new_state(row: &Row, object: &Value) -> NewState {
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    let labels: StringMap = labels.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default())).collect();
    NewState { draft: Draft::encode(object), labels, fields: row.traits.field_values(object) }
}

/// A stored object as this version of its resource shows it.
pub(crate) fn content(row: &Row, stored: Arc<Object>) -> Content {
    if convert::is_storage_version(row) {
        return Content::Stored(stored);
    }
    match stored.parse() {
        Ok(value) => Content::Value(convert::to_version(row, value)),
        Err(error) => Content::Status(Status::internal(error)),
    }
}

// === impl Claimed ===

impl Claimed<'_> {
    fn keep(self) {
        if let Some(claim) = self.0 {
            claim.commit();
        }
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
        Self { code: error.code, reason: error.reason, message: error.message, details }
    }
}

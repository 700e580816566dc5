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

use super::fit::{check_version, fit_kind, fit_name, wrong_uid};
use super::life::{self, meta_text, metadata};
use super::query::strings;
use super::traits::Generation;
use super::{Answer, Call, Content, Registry, Row, convert};
use crate::decode::{self, ContentType, Decoded};
use crate::field::FieldError;
use crate::patch::{self, PatchType};
use crate::schema::{self, FieldValidation};
use crate::status::{GroupResource, Status};
use crate::store::{Change, Draft, Expect, NewState, Object, WriteConflict};
use crate::{admission, kinds};

/// How often a generated name may be taken before we give up.
const GENERATED_NAMES_MAX: usize = 8;
/// How often an update is computed again because somebody was faster. Nobody loses so often by chance.
const ATTEMPTS_MAX: usize = 64;

/// Which part of an object an update is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All but the status.
    Whole,
    /// The status.
    Status,
    /// The part of a pod's spec that its subresource is about.
    Spec,
    /// Parts that only the server changes, on behalf of a subresource: nothing is kept from the stored state.
    Raw,
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

/// Why a body is no object of its resource.
enum Misfit {
    /// Its fields are not those of the kind.
    Schema(String),
    /// It is of another kind.
    Other(Status),
}

/// A change of one object, computed from what is stored.
pub(crate) type Compute<'a> = dyn FnMut(Option<&Value>) -> Result<(Value, Vec<String>), Status> + 'a;

impl Registry {
    /// POST of an object.
    pub(crate) fn create(&self, call: &Call, body: &[u8], content_type: ContentType) -> Result<Answer, Status> {
        let (mut object, warnings) = self.decode(&call.row, body, content_type, call.field_validation)?;
        self.fit_namespace(call, &mut object)?;
        let content = self.create_value(call, object)?;
        Ok(Answer::created(content).warning(warnings))
    }

    /// Makes an object that has been decoded.
    pub(crate) fn create_value(&self, call: &Call, object: Value) -> Result<Content, Status> {
        admission::namespace_for_create(self, call, &object)?;
        let prefix = meta_text(&object, "generateName").to_owned();
        let is_generated = meta_text(&object, "name").is_empty() && !prefix.is_empty();
        for _ in 1..GENERATED_NAMES_MAX {
            let mut candidate = object.clone();
            if is_generated {
                metadata(&mut candidate).insert("name".into(), life::generate_name(&prefix).into());
            }
            match self.create_once(call, candidate) {
                Err(status) if is_generated && status.reason == "AlreadyExists" => {}
                other => return other,
            }
        }
        self.create_once(call, object)
    }

    fn create_once(&self, call: &Call, mut object: Value) -> Result<Content, Status> {
        let row = &*call.row;
        if !meta_text(&object, "resourceVersion").is_empty() {
            return Err(Status::plain("resourceVersion should not be set on objects to be created"));
        }
        life::begin(row, &mut object, self.clock.now());
        let claim = self.finish(call, &mut object, None, Part::Whole)?;
        let name = meta_text(&object, "name").to_owned();
        let key = ObjectKey::new(&call.namespace, &name);
        if call.dry_run {
            return match self.store.get(&row.shelf, &key) {
                Some(_) => Err(Status::already_exists(row.target(), &name)),
                None => Ok(Content::Value(convert::to_version(row, object))),
            };
        }
        let state = new_state(row, &object);
        let committed = self.store.commit(&row.shelf, &key, Expect::Absent, Change::Put(state));
        let stored = committed.map_err(|_| Status::already_exists(row.target(), &name))?;
        claim.keep();
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
        let updated = self.update(call, part, &mut |old| {
            let Some(old) = old else { return Err(Status::not_found(row.target(), &call.name)) };
            let shown = convert::to_version(row, old.clone());
            let patched = patch::apply(kind, group, version, of, &shown, body).map_err(Status::from)?;
            let decoded = Decoded { value: patched.clone(), duplicates: patch::findings(kind, body) };
            let checked = checked(row, decoded, call.field_validation);
            let blamed = |problem: &str| patch::refused_result(kind, &patched, body, problem);
            let (mut object, mut warnings) = checked.map_err(|misfit| misfit.of_patch(blamed))?;
            warnings.extend(life::fold_owners(&mut object, true));
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
        for _ in 0..ATTEMPTS_MAX {
            let Some(stored) = self.store.get(&row.shelf, &key) else {
                return self.create_by_update(call, compute);
            };
            let old = stored.parse().map_err(Status::internal)?;
            let (mut object, warnings) = compute(Some(&old))?;
            check_version(call, &mut object, &stored)?;
            match part {
                Part::Status => {
                    object = life::take_status(row, &object, &old);
                    kinds::prepare_status(
                        &row.resource.group,
                        &row.resource.kind,
                        &mut object,
                        &old,
                        &self.clock.now().to_string(),
                    );
                }
                Part::Spec => object = life::take_spec(&call.subresource, &object, &old),
                Part::Whole | Part::Raw => {}
            }
            let claim = self.finish(call, &mut object, Some(&old), part)?;
            let is_over = is_released(row, &object, &old);
            if call.dry_run {
                let content = Content::Value(convert::to_version(row, object));
                return Ok(Updated { content, is_new: false, warnings });
            }
            if is_over {
                match self.store.commit(&row.shelf, &key, Expect::Revision(stored.revision), Change::Delete(None)) {
                    Ok(_) => {
                        self.after_delete(row, &object);
                        metadata(&mut object).insert("resourceVersion".into(), stored.revision.to_string().into());
                        let content = Content::Value(convert::to_version(row, object));
                        return Ok(Updated { content, is_new: false, warnings });
                    }
                    Err(_) => continue,
                }
            }
            let state = new_state(row, &object);
            if state.draft.says_the_same_as(&stored) {
                return Ok(Updated { content: content(row, stored), is_new: false, warnings });
            }
            match self.store.commit(&row.shelf, &key, Expect::Revision(stored.revision), Change::Put(state)) {
                Ok(stored) => {
                    claim.keep();
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
        metadata(&mut object).remove("resourceVersion");
        admission::namespace_for_create(self, call, &object)?;
        let content = self.create_once(call, object)?;
        Ok(Updated { content, is_new: true, warnings })
    }

    /// What every write of an object ends with: admitted, prepared, validated and complete.
    pub(crate) fn finish(
        &self,
        call: &Call,
        object: &mut Value,
        old: Option<&Value>,
        part: Part,
    ) -> Result<Claimed<'_>, Status> {
        let row = &*call.row;
        let (group, kind) = (&*row.resource.group, &*row.resource.kind);
        let mut claimed = Claimed(None);
        if let (Some(old), Part::Whole) = (old, part) {
            life::keep_status(row, object, old);
        }
        if part == Part::Whole {
            admission::admit(self, call, object, old)?;
            kinds::prepare(group, kind, object, old);
            claimed = admission::claim(self, row, object, old)?;
        }
        if let Some(old) = old {
            let is_next = matches!(part, Part::Whole | Part::Spec) && is_next_generation(row, object, old);
            life::carry_over(object, old, is_next);
        }
        life::tidy(object);
        let errors = match (part, &row.custom) {
            (Part::Raw, _) => Vec::new(),
            (_, Some(custom)) => custom.validate(object, old),
            (Part::Status, None) => old.map(|old| kinds::validate_status(group, kind, object, old)).unwrap_or_default(),
            (Part::Spec, None) => admission::validate_spec(&call.subresource, object, old),
            (Part::Whole, None) => kinds::validate(group, kind, object, old),
        };
        if !errors.is_empty() {
            return Err(Status::invalid(row.kind(), meta_text(object, "name"), &errors));
        }
        convert::to_storage(row, object);
        if row.custom.is_none() {
            let (group, version, kind) = convert::storage_kind(row);
            schema::complete(group, version, kind, object);
        }
        Ok(claimed)
    }

    /// Reads a body that must be an object of this resource.
    pub(crate) fn decode(
        &self,
        row: &Row,
        body: &[u8],
        content_type: ContentType,
        validation: FieldValidation,
    ) -> Result<(Value, Vec<String>), Status> {
        let kind = &*row.resource.kind;
        let decoded = decode::object(body, content_type).map_err(|error| Status::bad_request(error.message(kind)))?;
        let (mut object, mut warnings) = checked(row, decoded, validation).map_err(|misfit| misfit.of_body(row))?;
        warnings.extend(life::fold_owners(&mut object, false));
        Ok((object, warnings))
    }

    /// The object must be meant for the namespace of the request.
    pub(crate) fn fit_namespace(&self, call: &Call, object: &mut Value) -> Result<(), Status> {
        let namespace = meta_text(object, "namespace");
        if call.row.is_namespaced() && namespace.is_empty() {
            metadata(object).insert("namespace".into(), call.namespace.clone().into());
        } else if namespace != call.namespace {
            let message = "the namespace of the provided object does not match the namespace sent on the request";
            return Err(Status::bad_request(message));
        }
        Ok(())
    }
}

/// Checks a decoded body against its kind.
fn checked(row: &Row, decoded: Decoded, validation: FieldValidation) -> Result<(Value, Vec<String>), Misfit> {
    let Decoded { value: mut object, duplicates } = decoded;
    fit_kind(row, &object).map_err(Misfit::Other)?;
    let (group, version, kind) = (&*row.resource.group, &*row.resource.version, &*row.resource.kind);
    if let Some(map) = object.as_object_mut() {
        map.insert("apiVersion".into(), row.resource.api_version().into());
        map.insert("kind".into(), kind.into());
    }
    let checked = match &row.custom {
        Some(custom) => custom.check(&mut object, duplicates, validation),
        None => schema::check_with(group, version, kind, &mut object, duplicates, validation)
            .map_err(|problem| problem.to_string()),
    };
    let warnings = checked.map_err(Misfit::Schema)?;
    kinds::default(group, kind, &mut object);
    life::tidy(&mut object);
    Ok((object, warnings))
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

/// The object as the store takes it.
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

// === impl Misfit ===

impl Misfit {
    fn of_body(self, row: &Row) -> Status {
        let (version, kind) = (&*row.resource.version, &*row.resource.kind);
        match self {
            Self::Schema(problem) => {
                Status::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {problem}"))
            }
            Self::Other(status) => status,
        }
    }

    /// Upstream blames the patch.
    fn of_patch(self, blamed: impl FnOnce(&str) -> FieldError) -> Status {
        match self {
            Self::Schema(problem) => {
                Status::invalid(GroupResource { group: "", resource: "" }, "", &[blamed(&problem)])
            }
            Self::Other(status) => status,
        }
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

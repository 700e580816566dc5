//! Deletion: immediate, graceful, or when the last finalizer is removed.
//!
//! 1. Preconditions hold at the moment of the deletion, or nothing happens.
//! 2. An object with finalizers or with a grace period becomes terminating; the write that removes the last finalizer deletes
//!    it.
//! 3. A grace period can only be shortened.
//!
//! Follows `apiserver/pkg/registry/{rest/delete.go,generic/registry/store.go}` and the namespace and pod strategies of
//! Kubernetes 1.37.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_base::names::finalizers;
use steersman_base::{ObjectKey, Time};

use super::admission::Attributes;
use super::object_meta::{meta_text, metadata};
use super::query::{Query, dry_run, invalid_options, strings};
use super::strategy::Dependents;
use super::write::{content, new_state};
use super::{Answer, Call, Content, ListAnswer, Registry, Row, admission, convert};
use crate::decode::{self, ContentType};
use crate::field::{FieldError, Path};
use crate::schema::{self, FieldValidation};
use crate::status::{self, GroupResource, Status};
use crate::store::{Change, Expect, Object};

/// The finalizers that stand for a propagation policy.
const POLICY_FINALIZERS: [&str; 2] = [finalizers::ORPHAN, finalizers::FOREGROUND_DELETION];

/// The options of a DELETE.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeleteOptions {
    grace_period_seconds: Option<i64>,
    uid: Option<String>,
    resource_version: Option<String>,
    orphan_dependents: Option<bool>,
    propagation: Option<Propagation>,
    pub(crate) dry_run: bool,
}

/// A propagation policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Propagation {
    Foreground,
    Background,
    Orphan,
}

/// The treatment of dependents, expressed as finalizers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Policy {
    /// Whether dependents become orphans.
    pub(crate) orphan: bool,
    /// Whether dependents are deleted before the object.
    pub(crate) foreground: bool,
}

/// The beginning of the deletion of an object: the answer of a [strategy](super::strategy::Strategy).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deletion {
    /// There is no grace period, or it is over: the object is deleted, unless it has finalizers.
    Immediate,
    /// The grace period that has been set is zero: the same, and watches see the mark.
    NoGracePeriod,
    /// A grace period has been set: the object is terminating.
    Graceful,
    /// The kind has marked the object as terminating in its own way.
    Marked,
    /// The object is terminating already, and this deletion changes nothing.
    Pending,
}

/// The effect of a deletion on an object.
enum Verdict {
    /// The object is terminating.
    Mark(Value),
    /// The object is deleted, after this last state if there is one.
    Delete(Option<Value>),
    /// Nothing.
    Nothing,
}

impl Registry {
    /// DELETE of an object.
    pub(crate) fn delete(&self, call: &Call, options: &DeleteOptions) -> Result<Answer, Status> {
        let row = &*call.row;
        admission::delete(call)?;
        let has_policy = options.propagation.is_some() || options.orphan_dependents.is_some();
        let warning = row.rules.strategy.propagation_warning.filter(|_| !has_policy);
        let (content, is_gone) = self.delete_object(row, &call.key(), options, options.dry_run, Some(call))?;
        let answer = match content {
            Content::Stored(_) | Content::Value(_) if is_gone && !row.rules.strategy.returns_deleted => {
                let object = as_value(&content)?;
                Answer::from(status::deleted(row.target(), &call.name, meta_text(&object, "uid")))
            }
            content => Answer::ok(content),
        };
        Ok(answer.warning(warning.into_iter().map(str::to_owned).collect()))
    }

    /// DELETE of a collection: every object in it, as if alone.
    pub(crate) fn delete_collection(&self, call: &Call, options: &DeleteOptions) -> Result<Answer, Status> {
        let row = &*call.row;
        let list_options = call.query.list_options(false)?;
        let list: ListAnswer = self.list(call, &list_options)?;
        for object in &list.objects {
            match self.delete_object(row, &object.key, options, options.dry_run, Some(call)) {
                Ok(_) => {}
                Err(status) if status.reason == "NotFound" => {}
                Err(status) => return Err(status),
            }
        }
        Ok(Answer::ok(Content::List(list)))
    }

    /// Deletes one object; answers with its last or its present state, and whether it is gone. `asking` is the request, if
    /// webhooks are asked.
    pub(crate) fn delete_object(
        &self,
        row: &Row,
        key: &ObjectKey,
        options: &DeleteOptions,
        is_dry: bool,
        asking: Option<&Call>,
    ) -> Result<(Content, bool), Status> {
        let asking = asking.filter(|call| call.session.is_some());
        loop {
            let missing = || Status::not_found(row.target(), &key.name);
            let stored = self.store.get(&row.collection, key).ok_or_else(missing)?;
            let object = stored.parse().map_err(Status::internal)?;
            options.check_preconditions(row, &object)?;
            let before =
                asking.map(|call| Ok::<_, Status>((call, convert::to_version(row, object.clone())?))).transpose()?;
            let verdict = judge(row, object, options, self.clock.now());
            if let (Some((call, before)), false) = (before, matches!(verdict, Verdict::Nothing)) {
                let mut attributes = Attributes::deleted(call, before, options.to_json(), is_dry);
                self.ask_mutating(call, &mut attributes, &mut |_| Ok(()))?;
                self.ask_validating(call, &attributes)?;
            }
            let expect = Expect::Revision(stored.revision);
            let (change, is_gone) = match verdict {
                Verdict::Nothing => return Ok((content(row, stored), false)),
                Verdict::Mark(marked) if is_dry => return Ok((shown(row, marked), false)),
                Verdict::Delete(Some(last)) if is_dry => return Ok((shown(row, last), true)),
                Verdict::Delete(None) if is_dry => return Ok((content(row, stored), true)),
                Verdict::Mark(marked) => {
                    let state = new_state(row, &marked);
                    if state.draft.is_unchanged_from(&stored) {
                        return Ok((content(row, stored), false));
                    }
                    (Change::Put(state), false)
                }
                Verdict::Delete(last) => (Change::Delete(last.map(|last| new_state(row, &last))), true),
            };
            match self.store.commit(&row.collection, key, expect, change) {
                Ok(written) => {
                    self.settle_deletion(row, &written, is_gone);
                    return Ok((content(row, written), is_gone));
                }
                // Somebody was faster: look again. Each round means that somebody else got on.
                Err(_) => continue,
            }
        }
    }

    fn settle_deletion(&self, row: &Row, written: &Arc<Object>, is_gone: bool) {
        if !is_gone {
            (row.rules.after_write)(self, written);
        } else if let Ok(object) = written.parse() {
            (row.rules.after_delete)(self, &object);
        }
    }
}

fn shown(row: &Row, object: Value) -> Content {
    match convert::to_version(row, object) {
        Ok(object) => Content::Value(object),
        Err(status) => Content::Status(status),
    }
}

fn as_value(content: &Content) -> Result<Value, Status> {
    match content {
        Content::Stored(object) => object.parse().map_err(Status::internal),
        Content::Value(value) => Ok(value.clone()),
        _ => Ok(Value::Null),
    }
}

/// Decides what a deletion does to an object, by its kind, its state and the options.
fn judge(row: &Row, mut object: Value, options: &DeleteOptions, now: Time) -> Verdict {
    let is_first = object["metadata"]["deletionTimestamp"].is_null();
    let deletion = (row.rules.strategy.begin_deletion)(&mut object, options, now);
    match deletion {
        Deletion::Pending => return Verdict::Nothing,
        Deletion::Marked => return Verdict::Mark(object),
        Deletion::Immediate | Deletion::NoGracePeriod | Deletion::Graceful => {}
    }
    let policy = policy(row, &object, options);
    set_policy_finalizers(&mut object, policy);
    let is_held = !strings(&object["metadata"]["finalizers"]).is_empty();
    match deletion {
        Deletion::Graceful => Verdict::Mark(object),
        Deletion::NoGracePeriod if is_held => Verdict::Mark(object),
        Deletion::NoGracePeriod => Verdict::Delete(Some(object)),
        _ if is_held => {
            mark(&mut object, is_first, now);
            Verdict::Mark(object)
        }
        _ => Verdict::Delete(None),
    }
}

/// Marks an object that waits for its finalizers.
fn mark(object: &mut Value, is_first: bool, now: Time) {
    let generation = object["metadata"]["generation"].as_i64().filter(|_| is_first);
    let meta = metadata(object);
    if is_first {
        meta.insert("deletionTimestamp".into(), now.to_string().into());
    }
    meta.insert("deletionGracePeriodSeconds".into(), 0.into());
    if let Some(generation) = generation {
        meta.insert("generation".into(), generation.saturating_add(1).into());
    }
}

/// Returns what happens to dependents: what the options say, else what the object's finalizers say, else the default of
/// the kind.
fn policy(row: &Row, object: &Value, options: &DeleteOptions) -> Policy {
    let dependents = row.rules.strategy.dependents;
    if dependents == Dependents::Unsupported {
        return Policy::default();
    }
    if let Some(orphan) = options.orphan_dependents {
        return Policy { orphan, foreground: false };
    }
    if let Some(asked) = options.propagation {
        return Policy { orphan: asked == Propagation::Orphan, foreground: asked == Propagation::Foreground };
    }
    let finalizers = strings(&object["metadata"]["finalizers"]);
    let first = finalizers.into_iter().find(|name| POLICY_FINALIZERS.contains(name));
    match first {
        Some(finalizers::ORPHAN) => Policy { orphan: true, foreground: false },
        Some(_) => Policy { orphan: false, foreground: true },
        None => Policy { orphan: dependents == Dependents::Orphan, foreground: false },
    }
}

/// Sets the finalizers of a propagation policy, and removes those of others.
pub(crate) fn set_policy_finalizers(object: &mut Value, policy: Policy) {
    let stored = strings(&object["metadata"]["finalizers"]);
    let is_unchanged = stored.contains(&finalizers::ORPHAN) == policy.orphan
        && stored.contains(&finalizers::FOREGROUND_DELETION) == policy.foreground;
    if is_unchanged {
        return;
    }
    let others = stored.into_iter().filter(|name| !POLICY_FINALIZERS.contains(name));
    let mut names: Vec<String> = others.map(str::to_owned).collect();
    names.extend(policy.orphan.then(|| finalizers::ORPHAN.to_owned()));
    names.extend(policy.foreground.then(|| finalizers::FOREGROUND_DELETION.to_owned()));
    let meta = metadata(object);
    if names.is_empty() {
        meta.remove("finalizers");
    } else {
        meta.insert("finalizers".into(), names.into());
    }
}

// === impl DeleteOptions ===

impl DeleteOptions {
    /// The options of a DELETE: its body, or its query if it has none.
    ///
    /// # Errors
    /// If they make no sense.
    pub(crate) fn read(query: &Query, body: &[u8], content_type: ContentType) -> Result<Self, Status> {
        let (options, errors) =
            if body.is_empty() { Self::from_query(query)? } else { Self::from_body(body, content_type)? };
        if errors.is_empty() { Ok(options) } else { Err(invalid_options("DeleteOptions", &errors)) }
    }

    fn from_query(query: &Query) -> Result<(Self, Vec<FieldError>), Status> {
        let seconds = query.get("gracePeriodSeconds");
        let invalid = |_| Status::bad_request(format!("strconv.ParseInt: parsing {seconds:?}: invalid syntax"));
        let grace = if seconds.is_empty() { None } else { Some(seconds.parse().map_err(invalid)?) };
        let mut options = Self { grace_period_seconds: grace, ..Self::default() };
        let orphan = query.has("orphanDependents").then(|| query.flag("orphanDependents"));
        let dry: Vec<_> = query.all("dryRun").filter(|value| !value.is_empty()).collect();
        let errors = options.set(orphan, query.get("propagationPolicy"), &dry);
        Ok((options, errors))
    }

    fn from_body(body: &[u8], content_type: ContentType) -> Result<(Self, Vec<FieldError>), Status> {
        let decoded = decode::object(body, content_type);
        let mut body = decoded.map_err(|error| Status::bad_request(error.to_string()))?.value;
        if let Some(kind) = body["kind"].as_str().filter(|kind| !matches!(*kind, "DeleteOptions" | "")) {
            let version = body["apiVersion"].as_str().unwrap_or_default();
            let message = format!(
                "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
            );
            return Err(Status::bad_request(message));
        }
        let checked = schema::check("", "v1", "DeleteOptions", &mut body, FieldValidation::Ignore);
        checked.map_err(|problem| Status::bad_request(problem.to_string()))?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let mut options = Self {
            grace_period_seconds: body["gracePeriodSeconds"].as_i64(),
            uid: text(&body["preconditions"]["uid"]),
            resource_version: text(&body["preconditions"]["resourceVersion"]),
            ..Self::default()
        };
        let policy = body["propagationPolicy"].as_str().unwrap_or_default();
        let errors = options.set(body["orphanDependents"].as_bool(), policy, &strings(&body["dryRun"]));
        Ok((options, errors))
    }

    /// Returns the options as webhooks see them.
    fn to_json(&self) -> Value {
        let mut options = json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"});
        if let Some(seconds) = self.grace_period_seconds {
            options["gracePeriodSeconds"] = seconds.into();
        }
        for (field, value) in [("uid", &self.uid), ("resourceVersion", &self.resource_version)] {
            if let Some(value) = value {
                options["preconditions"][field] = value.clone().into();
            }
        }
        if let Some(orphan) = self.orphan_dependents {
            options["orphanDependents"] = orphan.into();
        }
        if let Some(policy) = self.propagation {
            options["propagationPolicy"] = format!("{policy:?}").into();
        }
        if self.dry_run {
            options["dryRun"] = json!(["All"]);
        }
        options
    }

    /// Returns the grace period that was asked for.
    pub(crate) fn grace_period_seconds(&self) -> Option<i64> {
        self.grace_period_seconds
    }

    /// Returns what happens to the content of a namespace: what the options say, else what its finalizers say.
    pub(crate) fn policy_of_namespace(&self, namespace: &Value) -> Policy {
        let stored = strings(&namespace["metadata"]["finalizers"]);
        let wants = |policy: Propagation, by_orphan: bool, name: &str| match (self.orphan_dependents, self.propagation)
        {
            (Some(orphan), _) => orphan == by_orphan,
            (None, Some(asked)) => asked == policy,
            (None, None) => stored.contains(&name),
        };
        Policy {
            orphan: wants(Propagation::Orphan, true, finalizers::ORPHAN),
            foreground: wants(Propagation::Foreground, false, finalizers::FOREGROUND_DELETION),
        }
    }

    fn set(&mut self, orphan: Option<bool>, policy: &str, dry: &[&str]) -> Vec<FieldError> {
        let path = Path::new("propagationPolicy");
        let mut errors = Vec::new();
        self.orphan_dependents = orphan;
        self.propagation = match policy {
            "" => None,
            "Foreground" => Some(Propagation::Foreground),
            "Background" => Some(Propagation::Background),
            "Orphan" => Some(Propagation::Orphan),
            other => {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(FieldError::not_supported(&path, other, &supported));
                None
            }
        };
        if orphan.is_some() && !policy.is_empty() {
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            errors.insert(0, FieldError::invalid(&path, policy, detail));
        }
        match dry_run(dry) {
            Ok(is_dry) => self.dry_run = is_dry,
            Err(error) => errors.push(error),
        }
        errors
    }

    /// Whoever asked for a version has seen the change to this one, too: the server has made it for this very deletion.
    pub(crate) fn saw(&mut self, version: &str) {
        if let Some(asked) = &mut self.resource_version {
            version.clone_into(asked);
        }
    }

    /// Whether an object is the one that is meant.
    pub(crate) fn check_preconditions(&self, row: &Row, object: &Value) -> Result<(), Status> {
        let target = GroupResource { group: &row.resource.group, resource: &row.resource.kind };
        let name = meta_text(object, "name");
        let uid = meta_text(object, "uid");
        let version = meta_text(object, "resourceVersion");
        if let Some(asked) = self.uid.as_deref().filter(|asked| *asked != uid) {
            let why = format!(
                "the UID in the precondition ({asked}) does not match the UID in record ({uid}). The object might have \
                 been deleted and then recreated"
            );
            return Err(Status::conflict(target, name, &why));
        }
        if let Some(asked) = self.resource_version.as_deref().filter(|asked| *asked != version) {
            let why = format!(
                "the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion in record \
                 ({version}). The object might have been modified"
            );
            return Err(Status::conflict(target, name, &why));
        }
        Ok(())
    }
}

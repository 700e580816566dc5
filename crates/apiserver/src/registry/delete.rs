//! Deletion: at once, gracefully, or when the last finalizer is gone.
//!
//! 1. Preconditions hold at the moment of the deletion, or nothing happens.
//! 2. An object with finalizers, or with time left, is marked; whoever takes the last finalizer off deletes it.
//! 3. A grace period can only be shortened.
//! 4. A namespace goes when its `spec.finalizers` are gone.
//!
//! Follows `apiserver/pkg/registry/{rest/delete.go,generic/registry/store.go}` and the namespace and pod strategies of
//! Kubernetes 1.37.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_base::names::finalizers;
use steersman_base::{ObjectKey, Time};

use super::crd::set_condition;
use super::life::{meta_text, metadata};
use super::query::{Query, dry_run, invalid_options, strings};
use super::traits::Dependents;
use super::write::{content, new_state};
use super::{Answer, Call, Content, ListAnswer, Registry, Row, convert};
use crate::admission;
use crate::decode::{self, ContentType};
use crate::field::{FieldError, Path};
use crate::schema::{self, FieldValidation};
use crate::status::{self, GroupResource, Status};
use crate::store::{Change, Expect, Object};

/// The longest time a pod gets to end: ten years. Upstream takes any number of seconds, and times that no calendar has.
const GRACE_SECONDS_MAX: i64 = 10 * 365 * 24 * 3600;

/// How a DELETE is meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeleteOptions {
    grace_period_seconds: Option<i64>,
    uid: Option<String>,
    resource_version: Option<String>,
    orphan_dependents: Option<bool>,
    propagation: Option<Propagation>,
    pub(crate) dry_run: bool,
}

/// What becomes of dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Propagation {
    Foreground,
    Background,
    Orphan,
}

/// What becomes of an object that is to be deleted.
enum Verdict {
    /// It is marked so and waits.
    Mark(Value),
    /// It goes, after it was seen in this last state.
    Go(Option<Value>),
    /// It is waiting already.
    Nothing,
}

impl Registry {
    /// DELETE of an object.
    pub(crate) fn delete(&self, call: &Call, options: &DeleteOptions) -> Result<Answer, Status> {
        let row = &*call.row;
        admission::may_delete(call)?;
        let mut warnings = Vec::new();
        if row.is("batch", "jobs") && options.propagation.is_none() && options.orphan_dependents.is_none() {
            let warning = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background \
                           to remove them or set propagationPolicy=Orphan to suppress this warning";
            warnings.push(warning.to_owned());
        }
        let (content, is_gone) = self.delete_object(row, &call.key(), options, options.dry_run)?;
        let answer = match content {
            Content::Stored(_) | Content::Value(_) if is_gone && !row.traits.returns_deleted => {
                let object = as_value(&content)?;
                Answer::from(status::deleted(row.target(), &call.name, meta_text(&object, "uid")))
            }
            content => Answer::ok(content),
        };
        Ok(answer.warning(warnings))
    }

    /// DELETE of a collection: every object in it, as if alone.
    pub(crate) fn delete_collection(&self, call: &Call, options: &DeleteOptions) -> Result<Answer, Status> {
        let row = &*call.row;
        let list_options = call.query.list_options(false)?;
        let list: ListAnswer = self.list(call, &list_options)?;
        for object in &list.objects {
            match self.delete_object(row, &object.key, options, options.dry_run) {
                Ok(_) => {}
                Err(status) if status.reason == "NotFound" => {}
                Err(status) => return Err(status),
            }
        }
        Ok(Answer::ok(Content::List(list)))
    }

    /// Deletes one object; answers with its last or its present state, and whether it is gone.
    pub(crate) fn delete_object(
        &self,
        row: &Row,
        key: &ObjectKey,
        options: &DeleteOptions,
        is_dry: bool,
    ) -> Result<(Content, bool), Status> {
        loop {
            let missing = || Status::not_found(row.target(), &key.name);
            let stored = self.store.get(&row.shelf, key).ok_or_else(missing)?;
            let object = stored.parse().map_err(Status::internal)?;
            options.check_preconditions(row, &object)?;
            let now = self.clock.now();
            let verdict = if row.is("", "namespaces") && needs_finalizing(&object) {
                mark_namespace(object, options, now)
            } else {
                judge(row, object, options, now)
            };
            let expect = Expect::Revision(stored.revision);
            let (change, is_gone) = match verdict {
                Verdict::Nothing => return Ok((content(row, stored), false)),
                Verdict::Mark(marked) if is_dry => return Ok((shown(row, marked), false)),
                Verdict::Go(Some(last)) if is_dry => return Ok((shown(row, last), true)),
                Verdict::Go(None) if is_dry => return Ok((content(row, stored), true)),
                Verdict::Mark(marked) => {
                    let state = new_state(row, &marked);
                    if state.draft.says_the_same_as(&stored) {
                        return Ok((content(row, stored), false));
                    }
                    (Change::Put(state), false)
                }
                Verdict::Go(last) => (Change::Delete(last.map(|last| new_state(row, &last))), true),
            };
            match self.store.commit(&row.shelf, key, expect, change) {
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
            self.after_write(row, written);
        } else if let Ok(object) = written.parse() {
            self.after_delete(row, &object);
        }
    }
}

fn shown(row: &Row, object: Value) -> Content {
    Content::Value(convert::to_version(row, object))
}

fn as_value(content: &Content) -> Result<Value, Status> {
    match content {
        Content::Stored(object) => object.parse().map_err(Status::internal),
        Content::Value(value) => Ok(value.clone()),
        _ => Ok(Value::Null),
    }
}

fn needs_finalizing(namespace: &Value) -> bool {
    namespace["metadata"]["deletionTimestamp"].is_null() || !strings(&namespace["spec"]["finalizers"]).is_empty()
}

fn mark_namespace(mut namespace: Value, options: &DeleteOptions, now: Time) -> Verdict {
    if !namespace["metadata"]["deletionTimestamp"].is_null() {
        return Verdict::Nothing;
    }
    let held = strings(&namespace["metadata"]["finalizers"]);
    let want = |policy: Propagation, by_orphan: bool, name: &str| match (options.orphan_dependents, options.propagation)
    {
        (Some(orphan), _) => orphan == by_orphan,
        (None, Some(asked)) => asked == policy,
        (None, None) => held.contains(&name),
    };
    let orphan = want(Propagation::Orphan, true, finalizers::ORPHAN);
    let foreground = want(Propagation::Foreground, false, finalizers::FOREGROUND_DELETION);
    let kept = with_policy_finalizers(&namespace, orphan, foreground);
    set_finalizers(&mut namespace, kept);
    metadata(&mut namespace).insert("deletionTimestamp".into(), now.to_string().into());
    if !namespace["status"].is_object() {
        namespace["status"] = json!({});
    }
    namespace["status"]["phase"] = "Terminating".into();
    Verdict::Mark(namespace)
}

/// What becomes of an object, by its kind, its state and the options.
fn judge(row: &Row, mut object: Value, options: &DeleteOptions, now: Time) -> Verdict {
    let is_first = object["metadata"]["deletionTimestamp"].is_null();
    let graceful = if row.is("", "pods") {
        match begin_graceful(&mut object, options, now) {
            Some(graceful) => graceful,
            None => return Verdict::Nothing,
        }
    } else if row.is("apiextensions.k8s.io", "customresourcedefinitions") && is_first {
        return mark_definition(object, now);
    } else {
        Graceful::No
    };
    let (orphan, foreground) = policy(row, &object, options);
    let kept = with_policy_finalizers(&object, orphan, foreground);
    let is_held = !kept.is_empty();
    if kept != strings(&object["metadata"]["finalizers"]) {
        set_finalizers(&mut object, kept);
    }
    match graceful {
        Graceful::Wait => Verdict::Mark(object),
        Graceful::Now if is_held => Verdict::Mark(object),
        Graceful::Now => Verdict::Go(Some(object)),
        Graceful::No if is_held => {
            mark(&mut object, is_first, now);
            Verdict::Mark(object)
        }
        Graceful::No => Verdict::Go(None),
    }
}

/// Whether an object gets time to end.
enum Graceful {
    /// Its kind knows no such thing, or its time is over.
    No,
    /// It gets none.
    Now,
    /// It gets some.
    Wait,
}

/// Sets the time a pod has to end. None: it is ending already, and this deletion asks for no less.
fn begin_graceful(pod: &mut Value, options: &DeleteOptions, now: Time) -> Option<Graceful> {
    let clamped = |seconds: i64| if seconds < 0 { 1 } else { seconds.min(GRACE_SECONDS_MAX) };
    let asked = options.grace_period_seconds.map(clamped);
    if let Ok(ends) = meta_text(pod, "deletionTimestamp").parse::<Time>() {
        let held = pod["metadata"]["deletionGracePeriodSeconds"].as_i64().map_or(0, clamped);
        if held == 0 {
            return Some(Graceful::No);
        }
        let mut period = asked.filter(|period| *period < held)?;
        let mut ends = ends.plus_seconds(period - held);
        if ends < now {
            ends = now;
            period = period.min(1);
        }
        set_deletion(pod, ends, period);
        return Some(if period == 0 { Graceful::Now } else { Graceful::Wait });
    }
    let is_unbound = pod["spec"]["nodeName"].as_str().is_none_or(str::is_empty);
    let is_over = matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded"));
    let period = match asked.or_else(|| pod["spec"]["terminationGracePeriodSeconds"].as_i64().map(clamped)) {
        _ if is_unbound || is_over => 0,
        Some(seconds) => seconds,
        None => 30,
    };
    if let Some(generation) = pod["metadata"]["generation"].as_i64() {
        metadata(pod).insert("generation".into(), generation.saturating_add(1).into());
    }
    set_deletion(pod, now.plus_seconds(period), period);
    Some(if period == 0 { Graceful::Now } else { Graceful::Wait })
}

fn set_deletion(object: &mut Value, at: Time, period: i64) {
    let meta = metadata(object);
    meta.insert("deletionTimestamp".into(), at.to_string().into());
    meta.insert("deletionGracePeriodSeconds".into(), period.into());
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

/// Marks a definition: it waits until its objects are gone.
fn mark_definition(mut definition: Value, now: Time) -> Verdict {
    let now = now.to_string();
    let mut names: Vec<String> =
        strings(&definition["metadata"]["finalizers"]).into_iter().map(str::to_owned).collect();
    if !names.iter().any(|name| name == finalizers::CUSTOM_RESOURCE_CLEANUP) {
        names.push(finalizers::CUSTOM_RESOURCE_CLEANUP.to_owned());
    }
    set_finalizers(&mut definition, names);
    metadata(&mut definition).insert("deletionTimestamp".into(), now.clone().into());
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    set_condition(&mut definition, "Terminating", "True", "InstanceDeletionPending", message, &now);
    Verdict::Mark(definition)
}

/// Whether dependents become orphans, and whether they go first.
fn policy(row: &Row, object: &Value, options: &DeleteOptions) -> (bool, bool) {
    if row.traits.dependents == Dependents::Unsupported {
        return (false, false);
    }
    if let Some(orphan) = options.orphan_dependents {
        return (orphan, false);
    }
    if let Some(policy) = options.propagation {
        return (policy == Propagation::Orphan, policy == Propagation::Foreground);
    }
    let held = strings(&object["metadata"]["finalizers"]);
    let first = held.iter().find(|name| [finalizers::ORPHAN, finalizers::FOREGROUND_DELETION].contains(name));
    match first {
        Some(&finalizers::ORPHAN) => (true, false),
        Some(_) => (false, true),
        None => (row.traits.dependents == Dependents::Orphan, false),
    }
}

fn with_policy_finalizers(object: &Value, orphan: bool, foreground: bool) -> Vec<String> {
    let held = strings(&object["metadata"]["finalizers"]);
    let is_policy = |name: &&str| [finalizers::ORPHAN, finalizers::FOREGROUND_DELETION].contains(name);
    let as_before =
        held.contains(&finalizers::ORPHAN) == orphan && held.contains(&finalizers::FOREGROUND_DELETION) == foreground;
    if as_before {
        return held.into_iter().map(str::to_owned).collect();
    }
    let mut kept: Vec<_> = held.into_iter().filter(|name| !is_policy(name)).map(str::to_owned).collect();
    kept.extend(orphan.then(|| finalizers::ORPHAN.to_owned()));
    kept.extend(foreground.then(|| finalizers::FOREGROUND_DELETION.to_owned()));
    kept
}

fn set_finalizers(object: &mut Value, names: Vec<String>) {
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
    pub(super) fn saw(&mut self, version: &str) {
        if let Some(asked) = &mut self.resource_version {
            version.clone_into(asked);
        }
    }

    /// Whether an object is the one that is meant.
    pub(super) fn check_preconditions(&self, row: &Row, object: &Value) -> Result<(), Status> {
        let target = GroupResource { group: &row.resource.group, resource: &row.resource.kind };
        let name = meta_text(object, "name");
        let (uid, version) = (meta_text(object, "uid"), meta_text(object, "resourceVersion"));
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

//! Writes of typed objects, for controllers of users' own kinds.

use kube::core::Resource as Named;
use serde::Serialize;
use serde_json::{Value, json};
use steersman_base::{ObjectKey, Resource};
use steersman_informer::resource_of;
use steersman_informer::{Selection, SharedInformer, Typed};

use super::{Behalf, Delete, Patch, Rejection, WriteError, Written};
use crate::Reason;
use crate::client::Object;
use crate::client::object::key_of;
use crate::live::{self, LiveReadError};

/// The result of [`Behalf::create_or_patch`].
#[derive(Clone, Debug, PartialEq)]
pub enum Upserted {
    /// The object did not exist, and was created.
    Created(Written),
    /// The object differed, and was patched.
    Patched(Written),
    /// The object was as wanted; nothing was sent.
    Unchanged,
}

// === impl Behalf ===

impl Behalf<'_> {
    /// Creates an object of a typed kind, in its own namespace.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn create_object<K>(&self, object: &K, why: impl Reason) -> Result<Written, WriteError>
    where
        K: Named<DynamicType = ()> + Serialize,
        K::Scope: 'static,
    {
        let body = value(object)?.to_string().into_bytes();
        self.create_in(object.meta().namespace.as_deref(), &resource_of::<K>(), body, &why).await
    }

    /// Creates an object, or patches the fields in which the existing one differs from `wanted`. Fields that `wanted` does not
    /// set are left alone.
    ///
    /// The existing object is read from the cache if a controller watches or owns its kind, and from the server otherwise, or
    /// if the cache lags behind this controller's writes (see [`Builder::reads_live`](crate::controller::Builder::reads_live)),
    /// or if the manager's caches hold another namespace.
    ///
    /// # Errors
    /// See [`WriteError`]; `AlreadyExists` if the cache did not show the object yet: it is retried as any other error.
    pub async fn create_or_patch<K: Object>(&self, wanted: &K, why: impl Reason) -> Result<Upserted, WriteError> {
        let resource = resource_of::<K>();
        let key = key_of(wanted);
        let Some(existing) = self.existing::<K>(&resource, &key).await? else {
            return self.create_object(wanted, why).await.map(Upserted::Created);
        };
        let Some(mut patch) = difference(&existing, &value(wanted)?) else {
            return Ok(Upserted::Unchanged);
        };
        // The uid makes sure that it is this object, and not a new one of its name.
        patch["metadata"]["uid"] = existing["metadata"]["uid"].clone();
        self.patch(&resource, &key, Patch::Merge(&patch), &why).await.map(Upserted::Patched)
    }

    /// Writes an object by server-side apply: the fields that it sets belong to this controller from then on, and
    /// fields that it set before and no longer sets are removed. Fields of other managers are taken over.
    ///
    /// The field manager is the name of the controller; [`apply_as`](Self::apply_as) names another one.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn apply<K>(&self, object: &K, why: impl Reason) -> Result<Written, WriteError>
    where
        K: Named<DynamicType = ()> + Serialize,
        K::Scope: 'static,
    {
        self.apply_as(self.field_manager(), true, object, why).await
    }

    /// As [`apply`](Self::apply), with a field manager, and with conflicts as an error unless `force` is set.
    ///
    /// # Errors
    /// See [`WriteError`]; `Conflict` if other managers have fields that the object sets, unless forced.
    pub async fn apply_as<K>(
        &self,
        manager: &str,
        force: bool,
        object: &K,
        why: impl Reason,
    ) -> Result<Written, WriteError>
    where
        K: Named<DynamicType = ()> + Serialize,
        K::Scope: 'static,
    {
        let body = typed_value(object)?;
        let patch = Patch::Apply { object: &body, manager, force };
        self.patch(&resource_of::<K>(), &key_of(object), patch, &why).await
    }

    /// Writes the status of an object by server-side apply, as [`apply`](Self::apply) does for the rest of it.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn apply_status<K>(
        &self,
        object: &K,
        status: &impl Serialize,
        why: impl Reason,
    ) -> Result<Written, WriteError>
    where
        K: Named<DynamicType = ()>,
        K::Scope: 'static,
    {
        let resource = resource_of::<K>();
        let key = key_of(object);
        let body = json!({
            "apiVersion": resource.api_version(),
            "kind": resource.kind,
            "metadata": { "name": &*key.name, "uid": object.meta().uid },
            "status": value(status)?,
        });
        let patch = Patch::Apply { object: &body, manager: self.field_manager(), force: true };
        self.patch_subresource(&resource, &key, "status", patch, &why).await
    }

    /// Patches the status of an object of a typed kind (JSON merge patch). The uid is a precondition.
    ///
    /// Fields that `status` leaves out stay as they are, and the patch is sent even if it changes nothing:
    /// [`update_status`](Self::update_status) removes them, and sends nothing for an equal status.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn patch_status<K>(
        &self,
        object: &K,
        status: &impl Serialize,
        why: impl Reason,
    ) -> Result<Written, WriteError>
    where
        K: Named<DynamicType = ()>,
        K::Scope: 'static,
    {
        let patch = json!({ "metadata": { "uid": object.meta().uid }, "status": value(status)? });
        self.patch_subresource(&resource_of::<K>(), &key_of(object), "status", Patch::Merge(&patch), &why).await
    }

    /// Replaces an object of a typed kind by `object`, which was read and changed. Its resourceVersion is the precondition.
    ///
    /// For changes that are easier to make in place; [`create_or_patch`](Self::create_or_patch) and [`apply`](Self::apply) meet
    /// no conflicts.
    ///
    /// # Errors
    /// See [`WriteError`]; `Conflict` if the object has changed since it was read.
    pub async fn update_object<K: Object>(&self, object: &K, why: impl Reason) -> Result<Written, WriteError> {
        let body = typed_value(object)?.to_string().into_bytes();
        self.put(&resource_of::<K>(), &key_of(object), body, &why).await
    }

    /// Replaces the status of an object, such as a lister returned (`&cake`), unless it is equal already: then nothing is sent,
    /// and the result is `None`. Fields that `status` does not set are removed. The object's resourceVersion is the precondition.
    ///
    /// # Errors
    /// See [`WriteError`]; `Conflict` if the object has changed since it was read.
    pub async fn update_status<K: Object>(
        &self,
        object: &Typed<K>,
        status: &impl Serialize,
        why: impl Reason,
    ) -> Result<Option<Written>, WriteError> {
        let mut body = typed_value(object.object())?;
        let wanted = value(status)?;
        if body.get("status").unwrap_or(&Value::Null) == &wanted {
            return Ok(None);
        }
        body["status"] = wanted;
        self.put_status(&resource_of::<K>(), &object.key(), body.to_string().into_bytes(), &why).await.map(Some)
    }

    /// Deletes an object of a typed kind: this one, and not a new one of its name.
    ///
    /// # Errors
    /// See [`WriteError`]; `NotFound` if it is gone, which [`ok_if_gone`](super::Outcome::ok_if_gone) accepts.
    pub async fn delete_object<K: Object>(
        &self,
        object: &Typed<K>,
        how: impl Into<Delete>,
        why: impl Reason,
    ) -> Result<(), WriteError> {
        self.delete(&resource_of::<K>(), object.meta(), how, &why).await
    }

    /// Returns the object from the cache, if its kind is cached and the pass does not read live; from the server otherwise.
    async fn existing<K: Object>(&self, resource: &Resource, key: &ObjectKey) -> Result<Option<Value>, WriteError> {
        let shared = &self.writer.shared;
        let may_be_cached = !self.writer.reads_live && self.writer.caches_show(&key.namespace);
        let cached = shared.caches.as_ref().filter(|_| may_be_cached);
        let cached = cached.and_then(|caches| caches.existing::<Typed<K>>(resource, Selection::everything()));
        match cached.filter(SharedInformer::has_synced) {
            Some(informer) => informer.lister().get(key).map(|object| value(object.object())).transpose(),
            None => live::get_json(&shared.client, resource, key).await.map_err(|error| unread(&error)),
        }
    }

    fn field_manager(&self) -> &str {
        match self.writer.controller() {
            "" => "steersman",
            controller => controller,
        }
    }
}

fn value(object: &impl Serialize) -> Result<Value, WriteError> {
    serde_json::to_value(object).map_err(|error| WriteError::Invalid(format!("the object cannot be encoded: {error}")))
}

/// Returns the object with `apiVersion` and `kind`, which server-side apply requires and types derived by kube may
/// leave out.
fn typed_value<K>(object: &K) -> Result<Value, WriteError>
where
    K: Named<DynamicType = ()> + Serialize,
{
    let mut value = value(object)?;
    value["apiVersion"] = K::api_version(&()).into();
    value["kind"] = K::kind(&()).into();
    Ok(value)
}

/// The error of a read before a write: nothing was sent.
fn unread(error: &LiveReadError) -> WriteError {
    match error {
        LiveReadError::NoAnswer { .. } => WriteError::Unreachable(error.to_string()),
        // An answer that is no JSON, or none at all, is that of something in between, or of an aggregated API.
        LiveReadError::Decode { .. } | LiveReadError::TooSlow { .. } => WriteError::Unreadable(error.to_string()),
        LiveReadError::Refused { code, message, .. } => {
            WriteError::Rejected(Rejection { code: code.as_u16(), message: message.clone(), ..Rejection::default() })
        }
        LiveReadError::Throttled { wait, .. } => WriteError::Throttled(*wait),
    }
}

/// Returns the merge patch that sets everything of `wanted` in `existing`; `None` if there is no difference.
fn difference(existing: &Value, wanted: &Value) -> Option<Value> {
    match (existing, wanted) {
        (Value::Object(have), Value::Object(want)) => {
            let differs = want.iter().filter_map(|(name, want)| {
                let patch = match have.get(name) {
                    Some(have) => difference(have, want)?,
                    None if want.is_null() => return None,
                    None => want.clone(),
                };
                Some((name.clone(), patch))
            });
            let patch: serde_json::Map<_, _> = differs.collect();
            (!patch.is_empty()).then_some(Value::Object(patch))
        }
        (Value::Array(have), Value::Array(want)) => {
            // A list is replaced as a whole; but defaults that the server has filled into its elements make no
            // difference.
            let same =
                have.len() == want.len() && have.iter().zip(want).all(|(have, want)| difference(have, want).is_none());
            (!same).then(|| wanted.clone())
        }
        _ => (existing != wanted).then(|| wanted.clone()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_without_a_json_form_is_invalid() {
        // The keys of a JSON object are strings.
        let keyed_by_lists = std::collections::BTreeMap::from([(vec![1], 2)]);
        let outcome = value(&keyed_by_lists);
        assert!(matches!(outcome, Err(WriteError::Invalid(_))), "{outcome:?}");
    }

    #[test]
    fn a_read_that_fails_before_a_write_keeps_its_kind() {
        let what = || "configmaps ns/a".to_owned();
        let wait = Duration::from_secs(7);
        let nonsense = serde_json::from_str::<Value>("<html>").unwrap_err();
        let refused = |code| LiveReadError::Refused { what: what(), code, message: "no".into() };
        let check = |error: LiveReadError, is_unreachable: bool, throttled: Option<Duration>| {
            let seen: crate::Error = unread(&error).into();
            assert_eq!((seen.is_unreachable(), seen.throttled()), (is_unreachable, throttled), "{error}: {seen}");
        };
        check(LiveReadError::TooSlow { what: what(), within: wait }, false, None);
        check(LiveReadError::Throttled { what: what(), wait }, false, Some(wait));
        check(refused(http::StatusCode::FORBIDDEN), false, None);
        check(LiveReadError::Decode { what: what(), source: nonsense.into() }, false, None);
    }

    #[test]
    fn a_patch_says_what_is_otherwise_and_nothing_else() {
        let check = |name: &str, existing: Value, wanted: Value, want: Option<Value>| {
            assert_eq!(difference(&existing, &wanted), want, "{name}");
        };
        check("equal", json!({"a": 1}), json!({"a": 1}), None);
        check("more than wanted", json!({"a": 1, "b": 2}), json!({"a": 1}), None);
        check("missing", json!({}), json!({"a": {"b": 1}}), Some(json!({"a": {"b": 1}})));
        check("otherwise", json!({"a": {"b": 1, "c": 2}}), json!({"a": {"b": 3}}), Some(json!({"a": {"b": 3}})));
        check("unset", json!({"a": 1}), json!({"a": null}), Some(json!({"a": null})));
        check("not set anyway", json!({}), json!({"a": null}), None);
        let defaulted = json!({"c": [{"image": "x", "pull": "Always"}]});
        check("defaults in a list", defaulted.clone(), json!({"c": [{"image": "x"}]}), None);
        check("another list", defaulted, json!({"c": [{"image": "y"}]}), Some(json!({"c": [{"image": "y"}]})));
    }
}

//! Writing objects of typed kinds: what controllers of users' own kinds mostly do.

use kube::core::Resource as Named;
use serde::Serialize;
use serde_json::Value;
use steersman_base::ObjectKey;
use steersman_informer::typed::resource_of;

use super::{Behalf, Patch, WriteError, Written};
use crate::Reason;

/// What [`Behalf::create_or_patch`] did.
#[must_use]
#[derive(Clone, Debug, PartialEq)]
pub enum Upserted {
    /// There was none.
    Created(Written),
    /// It was otherwise.
    Patched(Written),
    /// It is as it should be; nothing was sent.
    Unchanged,
}

// === impl Behalf ===

impl Behalf<'_> {
    /// Creates an object of a typed kind, in its own namespace.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn create_object<K>(&self, object: &K, why: &dyn Reason) -> Result<Written, WriteError>
    where
        K: Named<DynamicType = ()> + Serialize,
        K::Scope: 'static,
    {
        let body = value(object)?.to_string().into_bytes();
        self.create_in(object.meta().namespace.as_deref(), &resource_of::<K>(), body, why).await
    }

    /// Makes an object be as wanted: creates it, or patches what is otherwise in `existing` (as the cache has it). What
    /// `wanted` does not say is left alone.
    ///
    /// # Errors
    /// See [`WriteError`]; `AlreadyExists` if the cache did not show it yet: look again.
    pub async fn create_or_patch<K>(
        &self,
        wanted: &K,
        existing: Option<&K>,
        why: &dyn Reason,
    ) -> Result<Upserted, WriteError>
    where
        K: Named<DynamicType = ()> + Serialize,
        K::Scope: 'static,
    {
        let Some(existing) = existing else {
            return self.create_object(wanted, why).await.map(Upserted::Created);
        };
        let Some(mut patch) = difference(&value(existing)?, &value(wanted)?) else {
            return Ok(Upserted::Unchanged);
        };
        // This object, and none that got its name since.
        patch["metadata"]["uid"] = existing.meta().uid.clone().into();
        let patch = Patch::Merge(&patch);
        self.patch(&resource_of::<K>(), &key(existing), patch, why).await.map(Upserted::Patched)
    }

    /// Makes an object be as wanted by server-side apply: the fields that it sets are `manager`'s from then on.
    ///
    /// # Errors
    /// See [`WriteError`]; `Conflict` if other managers hold fields that it sets, unless forced.
    pub async fn apply_object<K>(
        &self,
        object: &K,
        manager: &str,
        force: bool,
        why: &dyn Reason,
    ) -> Result<Written, WriteError>
    where
        K: Named<DynamicType = ()> + Serialize,
        K::Scope: 'static,
    {
        let body = value(object)?;
        self.patch(&resource_of::<K>(), &key(object), Patch::Apply { object: &body, manager, force }, why).await
    }

    /// Patches the status of an object of a typed kind.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn patch_status<K>(&self, object: &K, status: &Value, why: &dyn Reason) -> Result<Written, WriteError>
    where
        K: Named<DynamicType = ()>,
        K::Scope: 'static,
    {
        let patch = serde_json::json!({ "metadata": { "uid": object.meta().uid }, "status": status });
        self.patch_subresource(&resource_of::<K>(), &key(object), "status", Patch::Merge(&patch), why).await
    }
}

fn key<K: Named<DynamicType = ()>>(object: &K) -> ObjectKey {
    let meta = object.meta();
    ObjectKey::new(meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default())
}

fn value<K: Serialize>(object: &K) -> Result<Value, WriteError> {
    serde_json::to_value(object).map_err(|error| WriteError::Invalid(format!("the object cannot be encoded: {error}")))
}

/// The merge patch that makes `existing` hold everything that `wanted` says; none if it does.
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
            // A list is replaced whole; but what the server has filled into its elements makes no difference.
            let same =
                have.len() == want.len() && have.iter().zip(want).all(|(have, want)| difference(have, want).is_none());
            (!same).then(|| wanted.clone())
        }
        _ => (existing != wanted).then(|| wanted.clone()),
    }
}

#[cfg(test)]
mod tests {
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

//! A handle for the objects of one resource: reads, and writes to the server.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use kube::api::DeleteParams;
use serde_json::Value;
use steersman_base::{ObjectKey, Resource, ResourceVersion};
use steersman_informer::Typed;

use super::object::{AnyObject, key_of};
use super::request::Call;
use super::subresource::Subresource;
use super::{CachedClient, ClientError, FieldManager, Patch, Query, Reader};

/// Reads and writes the objects of one resource as one type. Cheap to clone.
///
/// In a reconcile write with [`Context::writer`](crate::Context::writer) instead: writes of this handle have no reason,
/// are not in the decision log, and the consistency book does not know them.
pub struct Objects<T> {
    client: CachedClient,
    resource: Resource,
    object: PhantomData<fn() -> T>,
}

// === impl Objects ===

impl<T: AnyObject> Objects<T> {
    pub(super) fn new(client: CachedClient, resource: Resource) -> Self {
        Self { client, resource, object: PhantomData }
    }

    /// Returns the resource.
    #[must_use]
    pub fn resource(&self) -> &Resource {
        &self.resource
    }

    /// Returns the client.
    #[must_use]
    pub fn client(&self) -> &CachedClient {
        &self.client
    }

    /// Returns a reader of the same objects.
    #[must_use]
    pub fn reader(&self) -> Reader<Typed<T>> {
        self.client.reader(self.resource.clone())
    }

    /// Returns the object with this key.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] if there is none.
    pub async fn get(&self, key: &ObjectKey) -> Result<Arc<Typed<T>>, ClientError> {
        self.reader().get(key).await
    }

    /// Returns the object with this key, or `None`.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn get_opt(&self, key: &ObjectKey) -> Result<Option<Arc<Typed<T>>>, ClientError> {
        self.reader().get_opt(key).await
    }

    /// Returns the objects that match a query, sorted by namespace and name.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn list(&self, query: &Query) -> Result<Vec<Arc<Typed<T>>>, ClientError> {
        self.reader().list(query).await
    }

    /// Creates an object and returns it as stored. Without a name the server generates one from `generateName`.
    ///
    /// # Errors
    /// [`ClientError::AlreadyExists`] if the name is in use.
    pub async fn create(&self, object: &T) -> Result<T, ClientError> {
        let key = key_of(object);
        let mut call = Call::new("create", Method::POST, &self.resource, &key.namespace, None);
        call.query = self.options();
        call.body = self.encode("create", object)?;
        self.written(call).await
    }

    /// Replaces an object. Its resourceVersion, if set, must be the current one.
    ///
    /// # Errors
    /// [`ClientError::Conflict`] if it is not.
    pub async fn update(&self, object: &T) -> Result<T, ClientError> {
        self.put(object, None).await
    }

    /// Patches an object.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn patch(&self, key: &ObjectKey, patch: Patch<'_>) -> Result<T, ClientError> {
        self.patch_at(key, patch, None).await
    }

    /// Applies an object (server-side apply): sets the given fields and owns them as this manager; creates the object
    /// if it does not exist. Fields that the manager applied before and that are missing now are removed.
    ///
    /// # Errors
    /// [`ClientError::Conflict`] if a field belongs to another manager and is not [forced](FieldManager::force); the
    /// causes name fields and managers.
    pub async fn apply(&self, object: &T, by: &FieldManager) -> Result<T, ClientError> {
        self.apply_at(object, by, None).await
    }

    /// Deletes an object. Returns its last state if the server sends it: a Pod in its grace period, an object with
    /// finalizers.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] if the object does not exist, [`ClientError::Conflict`] if a precondition does not
    /// hold.
    pub async fn delete(&self, key: &ObjectKey, how: &DeleteParams) -> Result<Option<T>, ClientError> {
        let mut call = Call::new("delete", Method::DELETE, &self.resource, &key.namespace, Some(&key.name));
        call.body = self.delete_options(&call, how)?;
        let what = call.what();
        let body = self.client.send(call).await?;
        let answer: Value = decode(&what, &body)?;
        if answer["kind"] == "Status" {
            return Ok(None);
        }
        self.note(&answer);
        T::deserialize(answer).map(Some).map_err(|error| ClientError::Unreadable { what, source: error.into() })
    }

    /// Deletes all objects that match a query.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn delete_collection(&self, query: &Query, how: &DeleteParams) -> Result<(), ClientError> {
        if query.labels.is_nothing() {
            // The syntax of queries cannot express it: the server would delete everything.
            return Ok(());
        }
        let selection = query.selection();
        let namespace = selection.namespace.as_deref().unwrap_or_default();
        let mut call = Call::new("delete all", Method::DELETE, &self.resource, namespace, None);
        call.body = self.delete_options(&call, how)?;
        let selectors =
            [("labelSelector", selection.labels.as_deref()), ("fieldSelector", selection.fields.as_deref())];
        let selectors = selectors.into_iter().filter_map(|(name, text)| Some((name, text?.to_owned())));
        call.query.extend(selectors);
        self.client.send(call).await.map(drop)
    }

    /// Returns a handle for the status.
    #[must_use]
    pub fn status(&self) -> Subresource<T> {
        self.subresource("status")
    }

    /// Returns a handle for a subresource that is read and written as the object itself.
    #[must_use]
    pub fn subresource(&self, name: &'static str) -> Subresource<T> {
        Subresource::new(self.clone(), name)
    }

    pub(super) async fn put(&self, object: &T, subresource: Option<&str>) -> Result<T, ClientError> {
        let key = key_of(object);
        let mut call = Call::new("update", Method::PUT, &self.resource, &key.namespace, Some(&key.name));
        call.subresource = subresource;
        call.query = self.options();
        call.body = self.encode("update", object)?;
        self.written(call).await
    }

    pub(super) async fn patch_at(
        &self,
        key: &ObjectKey,
        patch: Patch<'_>,
        subresource: Option<&str>,
    ) -> Result<T, ClientError> {
        let verb = if matches!(patch, Patch::Apply { .. }) { "apply" } else { "patch" };
        let mut call = Call::new(verb, Method::PATCH, &self.resource, &key.namespace, Some(&key.name));
        call.subresource = subresource;
        call.query = self.options();
        call.content = patch.content_type();
        call.body = patch.body().to_string().into_bytes();
        if let Patch::Apply { manager, force, .. } = patch {
            call.query.retain(|(name, _)| *name != "fieldManager");
            call.query.extend([("fieldManager", manager.to_owned()), ("force", force.to_string())]);
        }
        self.written(call).await
    }

    pub(super) async fn apply_at(
        &self,
        object: &T,
        by: &FieldManager,
        subresource: Option<&str>,
    ) -> Result<T, ClientError> {
        let object_json = self.json_of("apply", object, true)?;
        let patch = Patch::Apply { object: &object_json, manager: by.name(), force: by.is_forced() };
        self.patch_at(&key_of(object), patch, subresource).await
    }

    fn encode(&self, verb: &str, object: &T) -> Result<Vec<u8>, ClientError> {
        Ok(self.json_of(verb, object, false)?.to_string().into_bytes())
    }

    /// Returns the whole object as JSON, with the kind, which the server requires.
    fn json_of(&self, verb: &str, object: &T, apply: bool) -> Result<Value, ClientError> {
        let bad = |problem: String| {
            let what = format!("{verb} {} {}", self.resource, key_of(object));
            ClientError::BadRequest { what, problem }
        };
        let mut json = serde_json::to_value(object).map_err(|error| bad(error.to_string()))?;
        let Value::Object(fields) = &mut json else { return Err(bad("it is no JSON object".to_owned())) };
        for (name, value) in [("apiVersion", &*self.resource.api_version()), ("kind", &*self.resource.kind)] {
            fields.entry(name).or_insert_with(|| Value::from(value));
        }
        if apply && let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
            // The server owns this field, and refuses to apply it.
            metadata.remove("managedFields");
        }
        Ok(json)
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        let mode = &self.client.mode;
        let manager = mode.field_manager.as_ref().map(|name| ("fieldManager", name.to_string()));
        let dry_run = mode.dry_run.then(|| ("dryRun", "All".to_owned()));
        let validation = mode.validation.map(|validation| ("fieldValidation", validation.as_str().to_owned()));
        [manager, dry_run, validation].into_iter().flatten().collect()
    }

    fn delete_options(&self, call: &Call<'_>, how: &DeleteParams) -> Result<Vec<u8>, ClientError> {
        let mut how = how.clone();
        how.dry_run |= self.client.mode.dry_run;
        let bad = |error: serde_json::Error| ClientError::BadRequest { what: call.what(), problem: error.to_string() };
        let mut options = serde_json::to_value(&how).map_err(bad)?;
        options["kind"] = "DeleteOptions".into();
        options["apiVersion"] = "v1".into();
        Ok(options.to_string().into_bytes())
    }

    /// Sends a write and returns the object as stored.
    async fn written(&self, call: Call<'_>) -> Result<T, ClientError> {
        let what = call.what();
        let body = self.client.send(call).await?;
        let answer: Value = decode(&what, &body)?;
        self.note(&answer);
        T::deserialize(answer).map_err(|error| ClientError::Unreadable { what, source: error.into() })
    }

    /// Notes the version that the cache must show before it is read again.
    fn note(&self, answer: &Value) {
        let shared = &self.client.shared;
        let metadata = &answer["metadata"];
        let namespace = metadata["namespace"].as_str().unwrap_or_default();
        // A cache of another namespace never shows it.
        let is_cached =
            shared.informers.namespace().is_none_or(|cached| namespace.is_empty() || **cached == *namespace);
        if shared.options.read_your_writes
            && is_cached
            && !self.client.mode.dry_run
            && let Some(version) = metadata["resourceVersion"].as_str()
        {
            shared.written.note(&self.resource, ResourceVersion::new(version));
        }
    }
}

pub(super) fn decode<T: serde::de::DeserializeOwned>(what: &str, body: &Bytes) -> Result<T, ClientError> {
    serde_json::from_slice(body)
        .map_err(|error| ClientError::Unreadable { what: what.to_owned(), source: error.into() })
}

impl<T> Clone for Objects<T> {
    fn clone(&self) -> Self {
        Self { client: self.client.clone(), resource: self.resource.clone(), object: PhantomData }
    }
}

impl<T> fmt::Debug for Objects<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects").field("resource", &self.resource).finish_non_exhaustive()
    }
}

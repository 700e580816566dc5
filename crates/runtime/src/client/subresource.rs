//! Subresources: status, scale, eviction, token.

use std::fmt;

use http::Method;
use k8s_openapi::api::autoscaling::v1::Scale;
use kube::api::DeleteParams;
use kube::core::Status;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Value, json};
use steersman_base::{ObjectKey, Resource, Time};

use super::object::AnyObject;
use super::request::Call;
use super::write::decode;
use super::{CachedClient, ClientError, FieldManager, Objects, Patch};

/// One subresource, which is read and written as the object itself. Reads always go to the server.
pub struct Subresource<T> {
    objects: Objects<T>,
    name: &'static str,
}

/// The outcome of an eviction.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
#[non_exhaustive]
pub enum Eviction {
    /// The pod is being deleted.
    Accepted,
    /// A disruption budget does not allow it now; the message names the budget. Retry later.
    Blocked(Box<Status>),
}

/// The options of a token request.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TokenOptions {
    /// The audiences; the API server if empty.
    pub audiences: Vec<String>,
    /// The lifetime, at least ten minutes; the server may choose another. An hour by default.
    pub expiration_seconds: Option<i64>,
    /// The object with which the token expires, such as a Pod: apiVersion, kind, name, uid.
    pub bound_to: Option<(String, String, String, String)>,
}

/// A token of a service account.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Token {
    /// The token, which is not printed.
    pub token: SecretString,
    /// The expiration time.
    pub expires: Time,
}

const PODS: Resource = Resource::namespaced("", "v1", "pods", "Pod");
const SERVICE_ACCOUNTS: Resource = Resource::namespaced("", "v1", "serviceaccounts", "ServiceAccount");

// === impl Subresource ===

impl<T: AnyObject> Subresource<T> {
    pub(super) fn new(objects: Objects<T>, name: &'static str) -> Self {
        Self { objects, name }
    }

    /// Reads the subresource.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] if the object does not exist, or has no such subresource.
    pub async fn get(&self, key: &ObjectKey) -> Result<T, ClientError> {
        let resource = self.objects.resource();
        self.objects.client().ask(Method::GET, resource, key, self.name, Vec::new()).await
    }

    /// Replaces the subresource. The object's resourceVersion, if set, must be the current one.
    ///
    /// # Errors
    /// [`ClientError::Conflict`] if it is not.
    pub async fn update(&self, object: &T) -> Result<T, ClientError> {
        self.objects.put(object, Some(self.name)).await
    }

    /// Patches the subresource.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn patch(&self, key: &ObjectKey, patch: Patch<'_>) -> Result<T, ClientError> {
        self.objects.patch_at(key, patch, Some(self.name)).await
    }

    /// Applies the subresource (server-side apply).
    ///
    /// # Errors
    /// As [`Objects::apply`]; the object must exist.
    pub async fn apply(&self, object: &T, by: &FieldManager) -> Result<T, ClientError> {
        self.objects.apply_at(object, by, Some(self.name)).await
    }
}

impl<T> fmt::Debug for Subresource<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subresource").field("of", &self.objects).field("name", &self.name).finish()
    }
}

// === impl Objects ===

impl<T: AnyObject> Objects<T> {
    /// Reads the scale of an object: the desired and the current replicas, and their selector.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] if the object does not exist, or its kind does not scale.
    pub async fn scale(&self, key: &ObjectKey) -> Result<Scale, ClientError> {
        self.scales().get(key).await
    }

    /// Replaces the scale of an object. Its resourceVersion, if set, must be the current one.
    ///
    /// # Errors
    /// [`ClientError::Conflict`] if it is not.
    pub async fn update_scale(&self, scale: &Scale) -> Result<Scale, ClientError> {
        self.scales().update(scale).await
    }

    /// Sets the desired replicas, without a precondition.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn set_replicas(&self, key: &ObjectKey, replicas: i32) -> Result<Scale, ClientError> {
        let patch = json!({"spec": {"replicas": replicas}});
        self.scales().patch(key, Patch::Merge(&patch)).await
    }

    fn scales(&self) -> Subresource<Scale> {
        self.client().objects_at(self.resource().clone()).subresource("scale")
    }
}

// === impl CachedClient ===

impl CachedClient {
    /// Deletes a pod if the disruption budgets allow it.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] if the pod does not exist; a budget that does not allow the eviction is not an error.
    pub async fn evict(&self, pod: &ObjectKey, how: &DeleteParams) -> Result<Eviction, ClientError> {
        let mut how = how.clone();
        how.dry_run |= self.mode.dry_run;
        let body = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": &*pod.name, "namespace": &*pod.namespace},
            "deleteOptions": how,
        });
        let asked = self.ask::<Value>(Method::POST, &PODS, pod, "eviction", body.to_string().into_bytes()).await;
        match asked {
            Ok(_) => Ok(Eviction::Accepted),
            Err(ClientError::TooManyRequests(refusal)) if is_budget(&refusal.status) => {
                Ok(Eviction::Blocked(Box::new(refusal.status)))
            }
            Err(error) => Err(error),
        }
    }

    /// Requests a token of a service account.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] if the account does not exist.
    pub async fn token(&self, account: &ObjectKey, options: &TokenOptions) -> Result<Token, ClientError> {
        #[derive(Deserialize)]
        struct Answer {
            status: Granted,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Granted {
            token: String,
            expiration_timestamp: Time,
        }
        let mut spec = json!({"audiences": options.audiences});
        if let Some(seconds) = options.expiration_seconds {
            spec["expirationSeconds"] = seconds.into();
        }
        if let Some((api_version, kind, name, uid)) = &options.bound_to {
            spec["boundObjectRef"] = json!({"apiVersion": api_version, "kind": kind, "name": name, "uid": uid});
        }
        let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
        let body = body.to_string().into_bytes();
        let answer: Answer = self.ask(Method::POST, &SERVICE_ACCOUNTS, account, "token", body).await?;
        Ok(Token { token: answer.status.token.into(), expires: answer.status.expiration_timestamp })
    }

    /// Sends a request to a subresource of another kind than its object.
    pub(super) async fn ask<A: serde::de::DeserializeOwned>(
        &self,
        method: Method,
        resource: &Resource,
        key: &ObjectKey,
        subresource: &str,
        body: Vec<u8>,
    ) -> Result<A, ClientError> {
        let verb = match method {
            Method::GET => "get",
            Method::PUT => "update",
            _ => "create",
        };
        let is_write = method != Method::GET;
        let mut call = Call::new(verb, method, resource, &key.namespace, Some(&key.name));
        call.subresource = Some(subresource);
        call.body = body;
        if is_write && self.mode.dry_run {
            call.query.push(("dryRun", "All".to_owned()));
        }
        let what = call.what();
        let answer = self.send(call).await?;
        decode(&what, &answer)
    }
}

fn is_budget(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == "DisruptionBudget")
}

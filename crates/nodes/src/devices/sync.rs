//! The shell: publish → observe → pick → write.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use steersman_base::{Istr, ObjectKey, Resource, ResourceVersion};
use steersman_informer::{Index, Lister};
use steersman_model::resource::ResourceClaimView;
use steersman_model::{Kind, View};
use steersman_runtime::{Action, Context, Error, Patch, Reconciler, WriteError, reasons};

use super::memory::Taken;
use super::plan::{is_waiting, pick, requests, results, taint_rules};
use super::{DevicesOptions, object, published};
use crate::view::SimPodView;

const CLAIMS: &Resource = &ResourceClaimView::RESOURCE;
const CLASSES: &Resource = &Resource::cluster("resource.k8s.io", "v1", "deviceclasses", "DeviceClass");
const SLICES: &Resource = &Resource::cluster("resource.k8s.io", "v1", "resourceslices", "ResourceSlice");

/// The rules that taint devices. A server may not have them.
const RULES: &str = "/apis/resource.k8s.io/v1/devicetaintrules";
/// The delay until a claim is looked at again that may wait for the end of a taint: rules are not watched.
const TAINTED_PAUSE: Duration = Duration::from_secs(5);

/// The driver's shell.
pub(super) struct Devices {
    pub(super) claims: Lister<ResourceClaimView>,
    /// Pods that are to be scheduled, by their claims.
    pub(super) users: Index<ObjectKey, SimPodView>,
    pub(super) taken: Arc<Taken>,
    pub(super) options: DevicesOptions,
}

reasons! {
    /// Why the driver of devices writes.
    pub enum Why {
        /// The driver starts.
        Publish => "the driver has these devices",
        /// A pod waits for a claim.
        Allocate { pod: Istr } => "pod {pod} waits for it",
    }
}

// === impl Devices ===

impl Reconciler for Devices {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        if *key == published() {
            self.publish(cx, CLASSES, &object::class()).await?;
            self.publish(cx, SLICES, &object::slice(self.options.count)).await?;
            return Ok(Action::Done);
        }
        let Some(claim) = self.claims.get(key).filter(|claim| is_waiting(claim)) else { return Ok(Action::Done) };
        let user = self.users.get(key).into_iter().min_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        let Some(pod) = user else { return Ok(Action::Done) };
        // The view has no selectors.
        let Some(live) = cx.live.get_json(CLAIMS, key).await? else { return Ok(Action::Done) };
        let is_same = live["metadata"]["uid"] == json!(claim.meta().uid) && live["status"]["allocation"].is_null();
        let Some(requests) = requests(&live["spec"]).filter(|_| is_same) else { return Ok(Action::Done) };
        let rules = taint_rules(&cx.live.get_document(RULES).await?.unwrap_or_default());
        let has_user = |claim: &ObjectKey| !self.users.get(claim).is_empty();
        let pick = |used: &_| pick(&requests, self.options.count, used, &rules);
        let uid = &claim.meta().uid;
        let Some(picked) = self.taken.take(uid, &self.claims.list(), has_user, pick) else {
            // When a device is free, the claim is enqueued.
            return Ok(if rules.is_empty() { Action::Done } else { Action::After(TAINTED_PAUSE) });
        };
        match self.allocate(cx, &claim, live, &pod, results(&requests, &picked)).await {
            Ok(version) => {
                self.taken.written(uid, &version);
                Ok(Action::Done)
            }
            Err(WriteError::NotFound) => Ok(Action::Done),
            Err(WriteError::Conflict) => Ok(Action::Again),
            Err(error) => Err(error.into()),
        }
    }
}

impl Devices {
    async fn publish(&self, cx: &Context, resource: &Resource, object: &Value) -> Result<(), Error> {
        let body = object.to_string().into_bytes();
        match cx.writer.unowned().create_in(None, resource, body, &Why::Publish).await {
            Ok(_) | Err(WriteError::AlreadyExists) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Protects the claim, and allocates it. Returns its version then.
    async fn allocate(
        &self,
        cx: &Context,
        claim: &ResourceClaimView,
        live: Value,
        pod: &SimPodView,
        results: Vec<Value>,
    ) -> Result<ResourceVersion, WriteError> {
        let meta = claim.meta();
        let key = meta.key();
        let write = cx.writer.on_behalf_of(meta);
        let why = Why::Allocate { pod: pod.metadata.name.clone() };
        let mut version = live["metadata"]["resourceVersion"].clone();
        let mut finalizers = live["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        if !finalizers.iter().any(|held| held == object::FINALIZER) {
            finalizers.push(object::FINALIZER.into());
            let patch =
                json!({ "metadata": { "uid": meta.uid, "resourceVersion": version, "finalizers": finalizers } });
            version = json!(write.patch(CLAIMS, &key, Patch::Merge(&patch), &why).await?.resource_version);
        }
        let user = json!({ "resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid });
        let status = json!({ "allocation": { "devices": { "results": results } }, "reservedFor": [user] });
        let patch = json!({ "metadata": { "uid": meta.uid, "resourceVersion": version }, "status": status });
        let written = write.patch_subresource(CLAIMS, &key, "status", Patch::Merge(&patch), &why).await?;
        Ok(written.resource_version)
    }
}

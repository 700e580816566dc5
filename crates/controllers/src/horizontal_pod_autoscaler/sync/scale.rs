//! The scale of a target: any kind that has the subresource.

use std::time::Duration;

use serde_json::Value;
use steersman_base::{ObjectKey, Resource};
use steersman_model::View;
use steersman_model::autoscaling::HorizontalPodAutoscalerView;
use steersman_runtime::{Context, WriteError};

use super::{Autoscalers, Why};
use crate::horizontal_pod_autoscaler::metrics::Fault;
use crate::horizontal_pod_autoscaler::plan::{Decision, group_of};
use crate::scale;

/// The scale of a target, as it was read.
pub(super) struct Scale {
    resource: Resource,
    key: ObjectKey,
    body: Value,
}

/// Why a scale could not be read.
pub(super) struct NoScale {
    /// The message of the event.
    pub(super) note: String,
    /// The error of the pass.
    pub(super) error: String,
    pub(super) fault: Fault,
}

/// The maximum number of times that the scale is written if others change it, and the delay after each time:
/// client-go's figures.
const TRIES_MAX: usize = 5;
const TRY_EVERY: Duration = Duration::from_millis(10);

// === impl Scale ===

impl Scale {
    /// Returns the desired number of replicas.
    pub(super) fn replicas(&self) -> i32 {
        self.number("spec")
    }

    /// Returns the number of replicas that the target has counted.
    pub(super) fn counted(&self) -> i32 {
        self.number("status")
    }

    /// Returns the selector of the pods.
    pub(super) fn selector(&self) -> &str {
        self.body["status"]["selector"].as_str().unwrap_or_default()
    }

    fn number(&self, part: &str) -> i32 {
        let number = self.body[part]["replicas"].as_i64();
        number.and_then(|number| i32::try_from(number).ok()).unwrap_or_default()
    }

    /// Returns the body of a write.
    fn with_replicas(&self, replicas: i32) -> Vec<u8> {
        let mut body = self.body.clone();
        if !body["spec"].is_object() {
            body["spec"] = Value::Object(serde_json::Map::new());
        }
        body["spec"]["replicas"] = replicas.into();
        body.to_string().into_bytes()
    }
}

// === impl Autoscalers ===

impl Autoscalers {
    /// Reads the scale of the target, in the preferred version of its kind.
    pub(super) async fn scale(&self, hpa: &HorizontalPodAutoscalerView) -> Result<Scale, NoScale> {
        let target = &hpa.spec.scale_target_ref;
        let group = group_of(&target.api_version).map_err(|note| NoScale {
            error: format!("invalid API version in scale target reference: {note}"),
            note,
            fault: Fault::Spec,
        })?;
        let failed =
            |what: &str, note: String| NoScale { error: format!("{what}: {note}"), note, fault: Fault::Internal };
        let found = self.mapper.resource_for(group, None, &target.kind).await;
        let found = found
            .map_err(|error| failed("unable to determine resource for scale target reference", error.to_string()))?;
        let resource = found.resource.clone();
        let key = ObjectKey { namespace: hpa.meta().namespace.clone(), name: target.name.clone() };
        let read = if found.is_namespaced() {
            self.read_scale(&resource, &key).await
        } else {
            // An autoscaler must not reach out of its namespace.
            Err(format!("the server could not find the requested resource (get {} {})", resource.plural, key.name))
        };
        let read = read.and_then(|body| scale::check(&body).map(|()| body));
        let what = || format!("failed to query scale subresource for {}", reference(hpa));
        let body = read.map_err(|note| failed(&what(), note))?;
        Ok(Scale { resource, key, body })
    }

    async fn read_scale(&self, resource: &Resource, key: &ObjectKey) -> Result<Value, String> {
        let what = format!("{} {}", resource.plural, key.name);
        self.fetch.json(&resource.subresource_path(key, "scale"), &what).await
    }

    /// Writes the number of replicas. Where somebody else was first, the scale is read and written again.
    pub(super) async fn rescale(
        &self,
        cx: &Context,
        hpa: &HorizontalPodAutoscalerView,
        mut scale: Scale,
        decision: &Decision,
    ) -> Result<(), WriteError> {
        let write = cx.writer.on_behalf_of(hpa.meta());
        let why = Why::Rescale { size: decision.replicas, reason: decision.reason.clone() };
        let mut tries = 1;
        loop {
            let body = scale.with_replicas(decision.replicas);
            match write.put_subresource(&scale.resource, &scale.key, "scale", body, &why).await {
                Ok(_) => return Ok(()),
                Err(WriteError::Conflict) if tries < TRIES_MAX => tries += 1,
                Err(error) => return Err(error),
            }
            tokio::time::sleep(TRY_EVERY).await;
            if let Ok(body) = self.read_scale(&scale.resource, &scale.key).await {
                scale.body = body;
            }
        }
    }
}

/// Returns the target of an autoscaler as errors name it.
pub(super) fn reference(hpa: &HorizontalPodAutoscalerView) -> String {
    let target = &hpa.spec.scale_target_ref;
    format!("{}/{}/{}", target.kind, hpa.meta().namespace, target.name)
}

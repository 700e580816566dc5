//! The shell: observe → create the claims that are missing.

use std::time::Duration;

use steersman_base::{Istr, ObjectKey, Resource};
use steersman_informer::Lister;
use steersman_model::core::{PersistentVolumeClaimView, PodView};
use steersman_model::{Kind, View};
use steersman_runtime::events::About;
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Error, Reconciler, WriteError, reasons};

use super::map::needs_claims;
use super::metrics::Metrics;
use super::plan::{Needed, needed};
use crate::pod_claims::is_made_for;

const PODS: &Resource = &PodView::RESOURCE;
const CLAIMS: &Resource = &PersistentVolumeClaimView::RESOURCE;
/// Upstream's reason of the warning.
const FAILED: &str = "FailedBinding";

/// The delay before a pod is reconciled again whose claim the cache does not show: if the claim is deleted before the cache has
/// shown it, there is no event.
const UNSEEN_PAUSE: Duration = Duration::from_secs(30);

/// The controller's shell: the caches that it reads from.
pub(super) struct EphemeralVolumes {
    pub(super) pods: Lister<PodView>,
    pub(super) claims: Lister<PersistentVolumeClaimView>,
    pub(super) metrics: Metrics,
}

/// Another claim has the name.
#[derive(Debug, thiserror::Error)]
#[error("pod {pod}, ephemeral volume {volume}: {problem}")]
struct NotOurs {
    pod: ObjectKey,
    volume: Istr,
    problem: String,
}

reasons! {
    /// Why the ephemeral-volume controller writes.
    pub enum Why {
        /// An ephemeral volume has no claim.
        NoClaim { volume: Istr, claim: Istr } => "ephemeral volume {volume} has no claim"
            or "FailedBinding" |error| "ephemeral volume {volume}: create PVC {claim}: {error}",
    }
}

// === impl EphemeralVolumes ===

impl Reconciler for EphemeralVolumes {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(pod) = self.pods.get(key).filter(|pod| needs_claims(pod)) else { return Ok(Action::Done) };
        let mut action = Action::Done;
        for volume in needed(&pod) {
            match self.claims.namespace(&key.namespace).get(&volume.claim) {
                Some(claim) if is_made_for(claim.meta(), pod.meta()) => {}
                Some(_) => return Err(refuse(cx, &pod, &volume)),
                None if self.create(cx, &pod, &volume).await? => {}
                None => action = Action::After(UNSEEN_PAUSE),
            }
        }
        Ok(action)
    }
}

impl EphemeralVolumes {
    /// Creates the claim of a volume. Returns false if it is there already, and the cache does not show it.
    async fn create(&self, cx: &Context, pod: &PodView, volume: &Needed<'_>) -> Result<bool, Error> {
        let body = volume.body(pod.meta()).to_string().into_bytes();
        let why = Why::NoClaim { volume: volume.volume.clone(), claim: volume.claim.clone() };
        let created = cx.writer.on_behalf_of(pod.meta()).create(CLAIMS, body, &why).await;
        self.metrics.count(created.is_err());
        match created {
            // The cache does not show it yet. It may be ours: made by another manager, or by a request without an answer.
            Err(WriteError::AlreadyExists) => {
                let key = ObjectKey { namespace: pod.meta().namespace.clone(), name: volume.claim.clone() };
                let claim = cx.live.get_meta(CLAIMS, &key).await?;
                match claim {
                    Some(claim) if !is_made_for(&claim, pod.meta()) => Err(refuse(cx, pod, volume)),
                    Some(_) => Ok(false),
                    // One that is gone by now is created by the next pass.
                    None => Err(WriteError::AlreadyExists.into()),
                }
            }
            // Nothing can be created in a terminating namespace.
            created => Ok(created.ok_if_terminating().map(|()| true)?),
        }
    }
}

/// Reports that another claim has the name.
fn refuse(cx: &Context, pod: &PodView, volume: &Needed<'_>) -> Error {
    let problem = volume.not_ours(pod);
    let note = format!("ephemeral volume {}: {problem}", volume.volume);
    cx.events.warning(&About::new(PODS, pod.meta()), FAILED, note);
    NotOurs { pod: pod.meta().key(), volume: volume.volume.clone(), problem }.into()
}

//! The shell of recycling: a pod deletes the content of a released volume, and the volume is free again.

use std::sync::Arc;

use serde_json::Value;
use steersman_base::ObjectKey;
use steersman_model::View;
use steersman_model::core::{PersistentVolumeView, PodView};
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Context, Error, Propagation, WriteError};

use super::{Binder, PODS, VOLUMES, Why, live, send_event};
use crate::persistentvolume_binder::plan::{self, Note};
use crate::persistentvolume_binder::recycle::{self, Recycler, Step};
use crate::persistentvolume_binder::{map, matching};
use crate::pod_claims;

impl Binder {
    /// Takes the next step of recycling a released volume.
    pub(super) async fn recycle(&self, cx: &Context, volume: &PersistentVolumeView) -> Result<(), Error> {
        let used_by = self.users(volume);
        if !used_by.is_empty() {
            let text = format!("Volume is used by pods: {}", used_by.join(","));
            send_event(cx, VOLUMES, volume.meta(), &Note::normal("VolumeFailedRecycle", text));
            return Ok(());
        }
        let Some(recycler) = recycle::of_volume(volume, &self.options.host_path, &self.options.nfs) else {
            return Ok(());
        };
        let uid = &volume.meta().uid;
        let key = ObjectKey::new(self.recycler_namespace(recycler), &recycle::name(&volume.meta().name));
        let pod = self.pods.get(&key);
        let failure = match recycle::step(pod.as_deref(), self.memory.recycler(uid).as_ref()) {
            Step::Wait => return Ok(()),
            Step::Create => {
                let live = live::<PersistentVolumeView>(cx, volume.meta()).await?;
                if !live.is_some_and(|live| plan::is_still_to_recycle(volume, &live.view)) {
                    // The cache will show what has become of it.
                    return Ok(());
                }
                match self.create(cx, volume, recycler).await? {
                    None => return Ok(()),
                    Some(failure) => failure,
                }
            }
            Step::Succeeded => {
                self.end(cx, volume, pod.as_deref()).await?;
                send_event(cx, VOLUMES, volume.meta(), &Note::normal("VolumeRecycled", "Volume recycled"));
                return self.unbind(cx, volume).await;
            }
            Step::Failed => {
                let live = cx.live.get_json(PODS, &key).await?;
                self.end(cx, volume, pod.as_deref()).await?;
                let message = live.as_ref().and_then(|pod: &Value| pod["status"]["message"].as_str());
                let message = message.filter(|message| !message.is_empty());
                format!("failed to recycle volume: {}", message.unwrap_or("pod failed, pod.Status.Message unknown"))
            }
            Step::Foreign => {
                self.end(cx, volume, pod.as_deref()).await?;
                "old recycler pod found, will retry later".to_owned()
            }
            Step::Gone => {
                self.memory.set_recycler(uid, None);
                "failed to recycle volume: recycler pod was deleted".to_owned()
            }
        };
        let text = format!("Recycle failed: {failure}");
        self.fail(cx, volume, &Note::warning("VolumeFailedRecycle", text)).await
    }

    /// Returns the namespace of recyclers: the template's, or the only one that is seen.
    fn recycler_namespace<'a>(&'a self, recycler: &'a Recycler) -> &'a str {
        self.scope.as_deref().unwrap_or_else(|| recycle::namespace(recycler))
    }

    /// Returns the pods that still use a volume, by the name of its claim. A new claim of that name has another volume.
    fn users(&self, volume: &PersistentVolumeView) -> Vec<String> {
        let Some(claim) = map::claim_of(volume) else { return Vec::new() };
        if self.claims.get(&claim).is_some() {
            return Vec::new();
        }
        let pods = self.pods_by_claim.get(&claim);
        let uses = |pod: &&Arc<PodView>| !pod_claims::is_terminated(pod);
        let mut names: Vec<String> = pods.iter().filter(uses).map(|pod| pod.meta().key().to_string()).collect();
        names.sort_unstable();
        names
    }

    /// Creates the recycler of a volume; returns why it could not be created.
    async fn create(
        &self,
        cx: &Context,
        volume: &PersistentVolumeView,
        recycler: &Recycler,
    ) -> Result<Option<String>, Error> {
        let size = matching::size_of_volume(volume).value();
        let namespace = self.recycler_namespace(recycler);
        let body = recycle::pod(recycler, namespace, volume, size).to_string().into_bytes();
        let write = cx.writer.on_behalf_of(volume.meta());
        match write.create_in(Some(namespace), PODS, body, &Why::Recycle).await {
            Ok(pod) => {
                self.memory.set_recycler(&volume.meta().uid, Some(pod.uid));
                Ok(None)
            }
            // The cache will show it, and it is deleted then: only the pod that this process created is believed.
            Err(WriteError::AlreadyExists) => Ok(None),
            Err(WriteError::Rejected(rejection)) => {
                Ok(Some(format!("unexpected error creating recycler pod:  {}", rejection.message)))
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn end(&self, cx: &Context, volume: &PersistentVolumeView, pod: Option<&PodView>) -> Result<(), Error> {
        if let Some(pod) = pod {
            let write = cx.writer.on_behalf_of(volume.meta());
            let deleted = write.delete(PODS, pod.meta(), Propagation::Background, &Why::EndRecycler).await;
            deleted.ok_if_gone().ok_if_replaced()?;
        }
        self.memory.set_recycler(&volume.meta().uid, None);
        Ok(())
    }
}

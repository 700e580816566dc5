//! The shell of volumes: observe → plan → phase, release, reclaim.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_base::{Istr, ObjectKey};
use steersman_model::core::{PersistentVolumeClaimView, PersistentVolumeStatus, PersistentVolumeView};
use steersman_model::{Encoded, View, status_body};
use steersman_runtime::{Action, Context, Error, Reconciler, WriteError};

use super::{Binder, CLAIMS, VOLUMES, Why, send_event};
use crate::csi_migration;
use crate::persistentvolume_binder::plan::{self, Note, Reclaim, VolumeStep};
use crate::persistentvolume_binder::{class, edit, map, plugin};
use crate::rewrite::rewrite;

/// Reconciles volumes.
pub(in crate::persistentvolume_binder) struct Volumes(pub(in crate::persistentvolume_binder) Arc<Binder>);

impl Reconciler for Volumes {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let binder = &*self.0;
        let Some(volume) = binder.volumes.get(key) else {
            binder.memory.end(key, cx.clock.now_micros());
            return Ok(Action::Done);
        };
        if !binder.sees_claim_of(&volume) {
            return Ok(Action::Done);
        }
        let meta = volume.meta();
        if csi_migration::of_volume(&meta.annotations).is_some() || plan::finalizers(&volume).is_some() {
            rewrite(cx, VOLUMES, meta, "", &Why::Migrated, anneal).await?;
            return Ok(Action::Done);
        }
        let claim = binder.claim_of(cx, &volume).await?;
        match plan::volume(&volume, claim.as_deref()) {
            VolumeStep::Nothing => {}
            VolumeStep::Phase(phase) => binder.set_phase(cx, &volume, phase, "").await.map(drop)?,
            VolumeStep::Release if plan::is_released(&volume) => binder.reclaim(cx, &volume).await?,
            // The volume is reclaimed when the cache shows that it is released.
            VolumeStep::Release => binder.set_phase(cx, &volume, "Released", "").await.map(drop)?,
            VolumeStep::Unbind => binder.unbind(cx, &volume).await?,
            VolumeStep::Mismatch(of_volume, of_claim) => {
                send_event(cx, VOLUMES, meta, &of_volume);
                if let Some(claim) = &claim {
                    send_event(cx, CLAIMS, claim.meta(), &of_claim);
                }
            }
        }
        Ok(Action::Done)
    }
}

/// Brings annotations and finalizers of a volume up to date, as the server has it.
fn anneal(live: &mut Value) -> bool {
    let Ok(view) = PersistentVolumeView::decode(Encoded::Json(live.to_string().as_bytes())) else { return false };
    let finalizers = plan::finalizers(&view);
    let is_migrated =
        csi_migration::of_volume(&view.meta().annotations).is_some_and(|change| edit::migrate(live, change));
    finalizers.is_some_and(|wanted| edit::set_finalizers(live, &wanted)) || is_migrated
}

// === impl Binder ===

impl Binder {
    /// Returns the claim with the uid that a volume refers to. That there is none is asked from the server, unless nothing
    /// would follow from it.
    async fn claim_of(
        &self,
        cx: &Context,
        volume: &PersistentVolumeView,
    ) -> Result<Option<Arc<PersistentVolumeClaimView>>, Error> {
        let Some(held) = volume.spec.claim_ref.as_ref().filter(|held| !held.uid.is_empty()) else { return Ok(None) };
        let Some(key) = map::claim_of(volume) else { return Ok(None) };
        let is_it = |claim: &PersistentVolumeClaimView| claim.meta().uid == held.uid;
        let cached = self.claims.get(&key).filter(|claim| is_it(claim));
        if cached.is_some() || (plan::is_released(volume) && plan::reclaim(volume) == Reclaim::Nothing) {
            return Ok(cached);
        }
        let live = cx.live.get::<PersistentVolumeClaimView>(&key).await?;
        Ok(live.filter(is_it).map(Arc::new))
    }

    /// Sets the phase of a volume. Returns whether it was written.
    pub(super) async fn set_phase(
        &self,
        cx: &Context,
        volume: &PersistentVolumeView,
        phase: &'static str,
        message: &str,
    ) -> Result<bool, Error> {
        if volume.status.phase == phase {
            return Ok(false);
        }
        let status = PersistentVolumeStatus {
            phase: Istr::interned(phase),
            message: Istr::new(message),
            ..volume.status.clone()
        };
        let meta = volume.meta();
        let body = status_body::<PersistentVolumeView>(meta, &status);
        let write = cx.writer.on_behalf_of(meta);
        match write.put_status(VOLUMES, &meta.key(), body, &Why::Phase { phase }).await {
            Ok(_) => Ok(true),
            // A volume that was changed or deleted meanwhile has an event of its own.
            Err(WriteError::Conflict | WriteError::NotFound) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a volume free again; one that a user reserved for a claim, for that name.
    pub(super) async fn unbind(&self, cx: &Context, volume: &PersistentVolumeView) -> Result<(), Error> {
        let uid = volume.spec.claim_ref.as_ref().map(|claim| claim.uid.clone());
        let unbind = |live: &mut Value| live["spec"]["claimRef"]["uid"] == json!(uid) && edit::unbind(live);
        rewrite(cx, VOLUMES, volume.meta(), "", &Why::Unbind, unbind).await
    }

    async fn reclaim(&self, cx: &Context, volume: &PersistentVolumeView) -> Result<(), Error> {
        let key = volume.meta().key();
        let reclaim = plan::reclaim(volume);
        if volume.spec.persistent_volume_reclaim_policy == "Delete" {
            let class = self.class(class::of_volume(volume));
            let plugin = plugin::measured_name(volume, class.as_deref());
            self.memory.begin(&key, &plugin, "delete", cx.clock.now_micros());
        }
        match reclaim {
            Reclaim::Nothing => Ok(()),
            Reclaim::Recycle => self.recycle(cx, volume).await,
            Reclaim::DeleteHostPath => {
                self.memory.fail(&key);
                self.fail(cx, volume, &Note::warning("VolumeFailedDelete", host_path_refusal(volume))).await
            }
            Reclaim::Fail(note) => self.fail(cx, volume, &note).await,
        }
    }

    /// Reports that a volume cannot be reclaimed, once.
    pub(super) async fn fail(&self, cx: &Context, volume: &PersistentVolumeView, note: &Note) -> Result<(), Error> {
        if self.set_phase(cx, volume, "Failed", &note.text).await? {
            send_event(cx, VOLUMES, volume.meta(), note);
        }
        Ok(())
    }
}

/// Returns why a host path is not deleted: outside of `/tmp` as upstream, and inside because this program never deletes files.
fn host_path_refusal(volume: &PersistentVolumeView) -> String {
    let path = volume.spec.source.host_path.as_ref().map_or("", |path| path.path.as_str());
    if path.strip_prefix("/tmp/").is_some_and(|rest| !rest.is_empty()) {
        return format!("host_path deleter is not available: delete {path} and the volume by hand");
    }
    format!("host_path deleter only supports /tmp/.+ but received provided {path}")
}

//! The shell: observe → plan → write.

use std::sync::Arc;

use steersman_base::{Istr, ObjectKey, Resource};
use steersman_informer::{Index, Lister};
use steersman_model::core::{PersistentVolumeClaimView, PodView};
use steersman_model::{Kind, View};
use steersman_runtime::events::{About, Recorder};
use steersman_runtime::{Action, Context, Delete, Error, Patch, Reconciler, WriteError, reasons};

use super::plan::{Observed, Step, plan};
use super::view::{ClassView, VolumeView};
use super::{NAME, ProvisionerOptions, default_class, object};

const CLAIMS: &Resource = &PersistentVolumeClaimView::RESOURCE;
const VOLUMES: &Resource = &VolumeView::RESOURCE;
const CLASSES: &Resource = &ClassView::RESOURCE;

/// The provisioner's shell.
pub(super) struct Provisioner {
    pub(super) claims: Lister<PersistentVolumeClaimView>,
    pub(super) classes: Lister<ClassView>,
    pub(super) by_claim: Index<ObjectKey, VolumeView>,
    pub(super) users: Index<ObjectKey, PodView>,
    pub(super) events: Recorder,
    pub(super) options: ProvisionerOptions,
}

reasons! {
    /// Why the provisioner writes.
    pub enum Why {
        /// The cluster has no default class.
        Class => "claims that name no class get this one",
        /// A claim has no volume.
        Provision { claim: Istr } => "claim {claim} has no volume",
        /// A claim and its volume are not bound to each other.
        Bind { claim: Istr } => "the volume is the one of claim {claim}",
        /// The claim of a volume is gone.
        Release => "its claim is gone",
    }
}

// === impl Provisioner ===

impl Reconciler for Provisioner {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        if *key == default_class() {
            return self.create_class(cx).await;
        }
        let claim = self.claims.get(key);
        let class = claim.as_ref().and_then(|claim| self.class(claim));
        let volumes = self.by_claim.get(key);
        let observed = Observed {
            claim: claim.as_deref(),
            class: class.as_deref(),
            volumes: &volumes,
            is_used: !self.users.get(key).is_empty(),
        };
        for step in plan(&observed, self.options) {
            if !self.perform(cx, claim.as_deref(), &step).await? {
                break;
            }
        }
        Ok(Action::Done)
    }
}

impl Provisioner {
    async fn create_class(&self, cx: &Context) -> Result<Action, Error> {
        let body = object::class().to_string().into_bytes();
        match cx.writer.unowned().create_in(None, CLASSES, body, &Why::Class).await {
            Ok(_) | Err(WriteError::AlreadyExists) => Ok(Action::Done),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the class of a claim, if it is one of ours.
    fn class(&self, claim: &PersistentVolumeClaimView) -> Option<Arc<ClassView>> {
        let name = claim.spec.storage_class_name.as_ref().filter(|name| !name.is_empty())?;
        self.classes.get(&ObjectKey::cluster(name)).filter(|class| class.provisioner == NAME)
    }

    /// Performs a step. Returns whether the next one may follow.
    async fn perform(
        &self,
        cx: &Context,
        claim: Option<&PersistentVolumeClaimView>,
        step: &Step<'_>,
    ) -> Result<bool, Error> {
        let write = claim.map_or_else(|| cx.writer.unowned(), |claim| cx.writer.on_behalf_of(claim));
        let key = |volume: &VolumeView| ObjectKey::cluster(&volume.metadata.name);
        let bind = |claim: &PersistentVolumeClaimView| Why::Bind { claim: claim.meta().name.clone() };
        let outcome = match (step, claim) {
            (Step::Release(volume), _) => {
                let patch = object::phase(volume, "Released");
                write
                    .patch_subresource(VOLUMES, &key(volume), "status", Patch::Merge(&patch), &Why::Release)
                    .await
                    .map(drop)
            }
            (Step::Delete(volume), _) => {
                write.delete(VOLUMES, &volume.metadata, Delete::default(), &Why::Release).await
            }
            (Step::BindVolume(volume), Some(claim)) => {
                let patch = object::phase(volume, "Bound");
                write
                    .patch_subresource(VOLUMES, &key(volume), "status", Patch::Merge(&patch), &bind(claim))
                    .await
                    .map(drop)
            }
            (Step::BindClaim(volume), Some(claim)) => {
                let patch = object::binding(claim, volume);
                write.patch(CLAIMS, &claim.meta().key(), Patch::Merge(&patch), &bind(claim)).await.map(drop)
            }
            (Step::ReportBound(volume), Some(claim)) => {
                let patch = object::bound(claim, volume);
                let key = claim.meta().key();
                write.patch_subresource(CLAIMS, &key, "status", Patch::Merge(&patch), &bind(claim)).await.map(drop)
            }
            (Step::Await, Some(claim)) => {
                let note = "waiting for first consumer to be created before binding";
                self.events.normal(&About::new(CLAIMS, claim.meta()), "WaitForFirstConsumer", note);
                Ok(())
            }
            (Step::Provision(class), Some(claim)) => return self.provision(cx, claim, class).await,
            (_, None) => Ok(()),
        };
        match outcome {
            Ok(()) => Ok(true),
            // Deleted or changed meanwhile: the cache will show it.
            Err(WriteError::NotFound | WriteError::Conflict) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    async fn provision(
        &self,
        cx: &Context,
        claim: &PersistentVolumeClaimView,
        class: &ClassView,
    ) -> Result<bool, Error> {
        let meta = claim.meta();
        let body = object::volume(claim, class).to_string().into_bytes();
        let why = Why::Provision { claim: meta.name.clone() };
        match cx.writer.on_behalf_of(claim).create_in(None, VOLUMES, body, &why).await {
            Ok(_) => {
                let note = format!("Successfully provisioned volume {}", object::volume_name(&meta.uid));
                self.events.normal(&About::new(CLAIMS, meta), "ProvisioningSucceeded", note);
                Ok(true)
            }
            // The cache will show it, and the next pass binds it.
            Err(WriteError::AlreadyExists) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

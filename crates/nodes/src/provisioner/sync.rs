//! The shell: observe → plan → write.

use std::sync::Arc;

use steersman_base::{Istr, ObjectKey, Resource};
use steersman_informer::{Index, Lister};
use steersman_model::core::{PersistentVolumeClaimView, PersistentVolumeView};
use steersman_model::storage::StorageClassView;
use steersman_model::{Kind, View};
use steersman_runtime::events::{About, Recorder};
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Delete, Error, Patch, Reconciler, WriteError, reasons};

use super::plan::{Observed, Step, plan};
use super::{NAME, default_class, object};

const CLAIMS: &Resource = &PersistentVolumeClaimView::RESOURCE;
const VOLUMES: &Resource = &PersistentVolumeView::RESOURCE;
const CLASSES: &Resource = &StorageClassView::RESOURCE;

/// The provisioner's shell.
pub(super) struct Provisioner {
    pub(super) claims: Lister<PersistentVolumeClaimView>,
    pub(super) classes: Lister<StorageClassView>,
    pub(super) by_claim: Index<ObjectKey, PersistentVolumeView>,
    pub(super) events: Recorder,
}

reasons! {
    /// Why the provisioner writes.
    pub enum Why {
        /// The cluster has no default class.
        Class => "claims that name no class get this one",
        /// A binder asks for a volume for a claim.
        Provision { claim: Istr } => "claim {claim} has no volume",
        /// The claim of a volume is gone.
        Release => "its claim is gone",
        /// Nothing is behind a volume any more, or it is to be kept.
        Unprotect => "nothing is behind the volume that could be lost",
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
        let observed = Observed { claim: claim.as_deref(), class: class.as_deref(), volumes: &volumes };
        for step in plan(&observed) {
            self.perform(cx, claim.as_deref(), &step).await?;
        }
        Ok(Action::Done)
    }
}

impl Provisioner {
    async fn create_class(&self, cx: &Context) -> Result<Action, Error> {
        let body = object::class().to_string().into_bytes();
        cx.writer.unowned().create_in(None, CLASSES, body, &Why::Class).await.ok_if_exists()?;
        Ok(Action::Done)
    }

    /// Returns the class of a claim, if it is one of ours.
    fn class(&self, claim: &PersistentVolumeClaimView) -> Option<Arc<StorageClassView>> {
        let name = claim.spec.storage_class_name.as_ref().filter(|name| !name.is_empty())?;
        self.classes.get(&ObjectKey::cluster(name)).filter(|class| class.provisioner == NAME)
    }

    async fn perform(
        &self,
        cx: &Context,
        claim: Option<&PersistentVolumeClaimView>,
        step: &Step<'_>,
    ) -> Result<(), Error> {
        let write = claim.map_or_else(|| cx.writer.unowned(), |claim| cx.writer.on_behalf_of(claim));
        // A volume that was deleted or changed meanwhile has an event of its own.
        match (step, claim) {
            (Step::Delete(volume), _) => {
                let deleted = write.delete(VOLUMES, &volume.metadata, Delete::default(), &Why::Release).await;
                deleted.ok_if_gone().ok_if_replaced()?;
            }
            (Step::Unprotect(volume), _) => {
                let patch = object::unprotected(volume);
                let key = volume.metadata.key();
                let patched = write.patch(VOLUMES, &key, Patch::Merge(&patch), &Why::Unprotect).await;
                patched.ok_if_gone().ok_if_replaced()?;
            }
            (Step::Provision(class), Some(claim)) => self.provision(cx, claim, class).await?,
            (Step::Provision(_), None) => {}
        }
        Ok(())
    }

    async fn provision(
        &self,
        cx: &Context,
        claim: &PersistentVolumeClaimView,
        class: &StorageClassView,
    ) -> Result<(), Error> {
        let meta = claim.meta();
        let body = object::volume(claim, class).to_string().into_bytes();
        let why = Why::Provision { claim: meta.name.clone() };
        match cx.writer.on_behalf_of(claim).create_in(None, VOLUMES, body, &why).await {
            Ok(_) => {
                let note = format!("Successfully provisioned volume {}", object::volume_name(&meta.uid));
                self.events.normal(&About::new(CLAIMS, meta), "ProvisioningSucceeded", note);
                Ok(())
            }
            Err(WriteError::AlreadyExists) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

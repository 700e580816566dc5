//! The shell: observe → plan → write the finalizer.

use steersman_base::{ObjectKey, Resource};
use steersman_informer::Lister;
use steersman_model::core::PersistentVolumeView;
use steersman_model::{Kind, View};
use steersman_runtime::{Action, Context, Error, Reconciler, reasons};

use super::plan;
use crate::protection::Step;
use crate::rewrite::rewrite;

const VOLUMES: &Resource = &PersistentVolumeView::RESOURCE;

/// The controller's shell: the cache that it reads from.
pub(super) struct VolumeProtection {
    pub(super) volumes: Lister<PersistentVolumeView>,
}

reasons! {
    /// Why the volume protection controller writes.
    pub enum Why {
        /// A volume lacks the finalizer: it was created without the server's admission.
        Unprotected => "a volume must not be deleted while it is bound",
        /// A volume is terminating, and is not bound.
        Released => "the volume is being deleted, and is not bound",
    }
}

// === impl VolumeProtection ===

impl Reconciler for VolumeProtection {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(volume) = self.volumes.get(key) else { return Ok(Action::Done) };
        match plan::plan(&volume) {
            Step::Nothing => {}
            Step::Add => rewrite(cx, VOLUMES, volume.meta(), "", &Why::Unprotected, plan::protect).await?,
            Step::Release => rewrite(cx, VOLUMES, volume.meta(), "", &Why::Released, plan::release).await?,
        }
        Ok(Action::Done)
    }
}

//! The shell: read the volume → say who makes it grow.

use steersman_base::{ObjectKey, Resource};
use steersman_informer::Lister;
use steersman_model::core::{PersistentVolumeClaimView, PersistentVolumeView};
use steersman_model::{Kind, View};
use steersman_runtime::events::About;
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Error, Patch, Reconciler, reasons};

use super::plan::{self, Resizer};

const CLAIMS: &Resource = &PersistentVolumeClaimView::RESOURCE;

/// The controller's shell: the cache that it reads from.
pub(super) struct Expander {
    pub(super) claims: Lister<PersistentVolumeClaimView>,
}

reasons! {
    /// Why the volume expander writes.
    pub enum Why {
        /// A CSI driver has taken over the volume of a claim that is to grow.
        Migrated { driver: &'static str } => "{driver} is to resize the volume",
    }
}

// === impl Expander ===

impl Reconciler for Expander {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let claim = self.claims.get(key).filter(|claim| plan::is_to_grow(claim));
        let Some(claim) = claim else { return Ok(Action::Done) };
        let name = &claim.spec.volume_name;
        let volume = cx.live.get::<PersistentVolumeView>(&ObjectKey::cluster(name)).await?;
        let volume = volume.ok_or_else(|| {
            Error::message(format!("failed to get PV {0:?}: persistentvolumes {0:?} not found", name.as_str()))
        })?;
        if !plan::is_its(&volume, &claim) {
            return Err(Error::message(format!("persistent Volume is not bound to PVC being updated : {key}")));
        }
        let about = About::new(CLAIMS, claim.meta());
        let resizer = plan::resizer(&volume);
        cx.events.normal(&about, "ExternalExpanding", plan::note(resizer));
        let Resizer::Migrated { driver, .. } = resizer else { return Ok(Action::Done) };
        let Some(patch) = plan::naming(&claim, driver) else { return Ok(Action::Done) };
        let write = cx.writer.on_behalf_of(&*claim);
        let patch = Patch::Strategic(&patch);
        let patched = write.patch_subresource(CLAIMS, key, "status", patch, &Why::Migrated { driver }).await;
        if let Err(error) = patched.ok_if_gone().ok_if_replaced() {
            let text = format!("error setting resizer annotation to pvc {key}, with error {error}");
            cx.events.warning(&about, "ExternalExpanding", text);
            return Err(error.into());
        }
        Ok(Action::Done)
    }
}

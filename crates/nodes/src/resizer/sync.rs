//! The shell: observe → plan → write.

use steersman_base::{ObjectKey, Resource};
use steersman_informer::Lister;
use steersman_model::core::{PersistentVolumeClaimView, PersistentVolumeView};
use steersman_model::{Kind, View};
use steersman_runtime::events::{About, Recorder};
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Error, Patch, Reconciler, reasons};

use super::plan::{self, Step};

const CLAIMS: &Resource = &PersistentVolumeClaimView::RESOURCE;
const VOLUMES: &Resource = &PersistentVolumeView::RESOURCE;

/// The resizer's shell.
pub(super) struct Resizer {
    pub(super) claims: Lister<PersistentVolumeClaimView>,
    pub(super) volumes: Lister<PersistentVolumeView>,
    pub(super) events: Recorder,
}

reasons! {
    /// Why the resizer writes.
    pub enum Why {
        /// A claim asks for more than its volume has.
        Grow { size: String } => "its claim asks for {size}",
        /// A claim's volume has grown.
        Report { size: String } => "its volume has {size}",
    }
}

// === impl Resizer ===

impl Reconciler for Resizer {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(claim) = self.claims.get(key) else { return Ok(Action::Done) };
        let Some(volume) = self.volumes.get(&plan::volume_of(&claim)) else { return Ok(Action::Done) };
        let write = cx.writer.on_behalf_of(&*claim);
        // What was changed meanwhile has an event of its own.
        match plan::step(&claim, &volume) {
            None => {}
            Some(Step::Grow(size)) => {
                let patch = plan::grown(&volume, size);
                let why = Why::Grow { size: size.to_string() };
                let patched = write.patch(VOLUMES, &volume.meta().key(), Patch::Merge(&patch), &why).await;
                patched.ok_if_gone().ok_if_replaced()?;
            }
            Some(Step::Report(size)) => {
                let patch = plan::reported(&claim, size);
                let why = Why::Report { size: size.to_string() };
                let patched = write.patch_subresource(CLAIMS, key, "status", Patch::Merge(&patch), &why).await;
                patched.ok_if_gone().ok_if_replaced()?;
                self.events.normal(
                    &About::new(CLAIMS, claim.meta()),
                    "VolumeResizeSuccessful",
                    "Resize volume succeeded",
                );
            }
        }
        Ok(Action::Done)
    }
}

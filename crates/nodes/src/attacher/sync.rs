//! The shell: observe → next step → write.

use steersman_base::{Istr, ObjectKey, Resource};
use steersman_informer::Lister;
use steersman_model::Kind;
use steersman_model::storage::VolumeAttachmentView;
use steersman_runtime::{Action, Context, Error, Patch, Reconciler, WriteError, reasons};

use super::AttacherOptions;
use super::plan::{self, Step};

const ATTACHMENTS: &Resource = &VolumeAttachmentView::RESOURCE;

/// The attacher's shell.
pub(super) struct Attacher {
    pub(super) attachments: Lister<VolumeAttachmentView>,
    pub(super) options: AttacherOptions,
}

reasons! {
    /// Why the attacher writes.
    pub enum Why {
        /// It must not go before its volume is detached.
        Hold { node: Istr } => "its volume is to be attached to {node}",
        /// The volume is attached.
        Attach { node: Istr } => "its volume is attached to {node}",
        /// The volume is detached.
        Detach { node: Istr } => "its volume is not attached to {node} any more",
    }
}

// === impl Attacher ===

impl Reconciler for Attacher {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(attachment) = self.attachments.get(key) else { return Ok(Action::Done) };
        let node = attachment.spec.node_name.clone();
        let write = cx.writer.on_behalf_of(&*attachment);
        let status = |is_attached| plan::status(&attachment, is_attached);
        let held = |is_held| plan::finalizers(&attachment, is_held);
        let outcome = match plan::next(&attachment, self.options.delay, cx.clock.now_micros()) {
            Step::Nothing => return Ok(Action::Done),
            Step::Wait(time) => return Ok(Action::After(time)),
            Step::Hold => write.patch(ATTACHMENTS, key, Patch::Merge(&held(true)), &Why::Hold { node }).await,
            Step::Release => write.patch(ATTACHMENTS, key, Patch::Merge(&held(false)), &Why::Detach { node }).await,
            Step::Attach => {
                let patch = status(true);
                let why = Why::Attach { node };
                write.patch_subresource(ATTACHMENTS, key, "status", Patch::Merge(&patch), &why).await
            }
            Step::Detach => {
                let patch = status(false);
                let why = Why::Detach { node };
                write.patch_subresource(ATTACHMENTS, key, "status", Patch::Merge(&patch), &why).await
            }
        };
        match outcome {
            // The next step follows when the cache shows this one; of what was deleted or changed meanwhile, too.
            Ok(_) | Err(WriteError::NotFound | WriteError::Conflict) => Ok(Action::Done),
            Err(error) => Err(error.into()),
        }
    }
}

//! The external attacher: volumes of CSI drivers are attached to simulated nodes, and detached, without any storage.
//!
//! 1. A VolumeAttachment to one of these nodes gets the finalizer of its attacher, and is attached after
//!    [`AttacherOptions::delay`]. One that is deleted is detached first: then its finalizer is removed.
//! 2. Attachments to other nodes are left alone, so that several sets of nodes can share a cluster. A node that was removed or is
//!    silent does not matter: storage lives elsewhere.
//! 3. Nothing is remembered: the next step follows from the object and the time.
//!
//! With an attacher, the kubelets report `volumesInUse`, and hold pods back until their volumes are attached, where the CSIDriver of a
//! volume says that it has to be: see [`volumes`](crate::volumes).

use std::time::Duration;

use steersman_informer::Change;
use steersman_model::storage::VolumeAttachmentView;
use steersman_runtime::{BuildContext, Controller};

use crate::fleet::Fleet;

mod plan;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::Why;

/// The number of attachments processed concurrently.
const WORKERS: usize = 8;

/// The options of the attacher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttacherOptions {
    /// The time that it takes to attach a volume, and to detach one.
    pub delay: Duration,
}

impl AttacherOptions {
    /// Sets the time that it takes to attach a volume, and to detach one.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }
}

pub(crate) fn build(cx: &BuildContext, options: AttacherOptions, fleet: &Fleet) -> Controller {
    let attachments = cx.informers.informer::<VolumeAttachmentView>();
    let ours = fleet.clone();
    cx.controller_on("simulated-attacher", &attachments)
        .queue_name("attacher")
        .workers(WORKERS)
        .when(move |change: &Change<VolumeAttachmentView>| ours.get(&change.object().spec.node_name).is_some())
        .reconcile_with(sync::Attacher { attachments: attachments.lister(), options })
}

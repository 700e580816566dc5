//! The resizer: volumes of the simulated [provisioner](crate::provisioner) grow when their claims ask for more.
//!
//! 1. A bound claim that asks for more than its status has gets a larger volume, and then a status that says so, as the
//!    external resizer of a CSI driver and a kubelet do.
//! 2. Volumes that others made are left alone.
//! 3. Nothing is remembered: the next step follows from the claim and its volume.

use steersman_model::core::{PersistentVolumeClaimView, PersistentVolumeView};
use steersman_runtime::{BuildContext, Controller};

mod plan;
mod sync;

pub use sync::Why;

pub(crate) fn build(cx: &BuildContext) -> Controller {
    let claims = cx.informers.informer::<PersistentVolumeClaimView>();
    let volumes = cx.informers.informer::<PersistentVolumeView>();
    let builder = cx.controller_on("simulated-resizer", &claims).queue_name("resizer");
    let builder = builder.watch_main(plan::to_resize).watch(&volumes, plan::claim_of);
    let events = cx.events.for_component("simulated-resizer");
    builder.reconcile_with(sync::Resizer { claims: claims.lister(), volumes: volumes.lister(), events })
}

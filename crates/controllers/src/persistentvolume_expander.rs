#![doc = include_str!("../docs/persistentvolume-expander-controller.md")]
//!
//! Follows `pkg/controller/volume/expand` of Kubernetes 1.37.1.

use steersman_model::Kind;
use steersman_model::core::{PersistentVolumeClaimView, PersistentVolumeView};
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext};
use steersman_runtime::Descriptor;

use crate::table;

mod plan;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::Why;

/// The descriptor of the volume expander.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "persistentvolume-expander-controller",
    needs: const { &[PersistentVolumeClaimView::RESOURCE, PersistentVolumeView::RESOURCE] },
    options: |_| (),
    build,
});

fn build(cx: &ControllerContext, (): ()) -> Built {
    let claims = cx.informer::<PersistentVolumeClaimView>();
    let controller = cx.controller(&claims).watch_main(plan::to_expand);
    controller.reconcile(sync::Expander { claims: claims.lister() })
}

#![doc = include_str!("../docs/persistentvolume-protection-controller.md")]
//!
//! Follows `pkg/controller/volume/pvprotection` of Kubernetes 1.37.1.

use steersman_base::names::finalizers::PV_PROTECTION;
use steersman_model::Kind;
use steersman_model::core::PersistentVolumeView;
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext};
use steersman_runtime::Descriptor;

use crate::{protection, table};

mod plan;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::Why;

/// The descriptor of the volume protection controller.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "persistentvolume-protection-controller",
    needs: const { &[PersistentVolumeView::RESOURCE] },
    options: |_| (),
    build,
});

fn build(cx: &ControllerContext, (): ()) -> Built {
    let volumes = cx.informer::<PersistentVolumeView>();
    let controller = cx.controller(&volumes).watch_main(|change| protection::key(change, PV_PROTECTION));
    controller.reconcile(sync::VolumeProtection { volumes: volumes.lister() })
}

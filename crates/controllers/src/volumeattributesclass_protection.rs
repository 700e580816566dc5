#![doc = include_str!("../docs/volumeattributesclass-protection-controller.md")]
//!
//! Follows `pkg/controller/volume/vacprotection` of Kubernetes 1.37.1.

use steersman_base::names::finalizers::VAC_PROTECTION;
use steersman_model::Kind;
use steersman_model::core::{PersistentVolumeClaimView, PersistentVolumeView};
use steersman_model::storage::VolumeAttributesClassView;
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext};
use steersman_runtime::Descriptor;

use crate::{protection, table};

mod map;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::Why;

/// The descriptor of the class protection controller.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "volumeattributesclass-protection-controller",
    needs: const {
        &[VolumeAttributesClassView::RESOURCE, PersistentVolumeClaimView::RESOURCE, PersistentVolumeView::RESOURCE]
    },
    options: |_| (),
    build,
});

fn build(cx: &ControllerContext, (): ()) -> Built {
    let classes = cx.informer::<VolumeAttributesClassView>();
    let claims = cx.informer::<PersistentVolumeClaimView>();
    let volumes = cx.informer::<PersistentVolumeView>();
    cx.controller(&classes)
        .watch_main(|change| protection::key(change, VAC_PROTECTION))
        .watch(&claims, |change| map::classes_left(change, map::classes_of_claim))
        .watch(&volumes, |change| map::classes_left(change, map::classes_of_volume))
        .reconcile(sync::ClassProtection {
            classes: classes.lister(),
            claims: claims.index(map::classes_of_claim),
            volumes: volumes.index(map::classes_of_volume),
        })
}

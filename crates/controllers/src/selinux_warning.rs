#![doc = include_str!("../docs/selinux-warning-controller.md")]
//!
//! Follows `pkg/controller/volume/selinuxwarning` of Kubernetes 1.37.1.

use std::sync::Arc;

use steersman_informer::Change;
use steersman_model::Kind;
use steersman_model::core::{PersistentVolumeClaimView, PersistentVolumeView, PodView};
use steersman_model::storage::CsiDriverView;
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext, Disabled};
use steersman_runtime::Descriptor;

use crate::{pod_claims, table};

mod conflicts;
mod labels;
mod map;
mod memory;
mod metrics;
mod sync;
#[cfg(test)]
mod tests;

/// The descriptor of the SELinux warning controller.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "selinux-warning-controller",
    needs: const {
        &[
            PodView::RESOURCE,
            PersistentVolumeClaimView::RESOURCE,
            PersistentVolumeView::RESOURCE,
            CsiDriverView::RESOURCE,
        ]
    },
    options: |_| (),
    build,
});

fn build(cx: &ControllerContext, (): ()) -> Result<Built, Disabled> {
    let pods = cx.informer::<PodView>();
    let claims = cx.informer::<PersistentVolumeClaimView>();
    let volumes = cx.informer::<PersistentVolumeView>();
    let drivers = cx.informer::<CsiDriverView>();
    let memory = Arc::new(memory::Memory::new(metrics::Metrics::new(cx.metrics())?));
    let by_claim = pods.shared_index(pod_claims::claims_of);
    let of_volumes = by_claim.clone();
    let known = Arc::clone(&memory);
    let builder = cx
        .controller(&pods)
        .watch_main(map::pod)
        .watch(&claims, move |change: &Change<PersistentVolumeClaimView>| {
            map::pods_of_claim(change, |claim| by_claim.get(claim))
        })
        .watch(&volumes, move |change: &Change<PersistentVolumeView>| {
            map::pods_of_volume(change, |claim| of_volumes.get(claim))
        })
        .watch(&drivers, move |change: &Change<CsiDriverView>| {
            if map::changes_mount(change) { known.pods_of_driver(&change.key().name) } else { Vec::new() }
        });
    Ok(builder.reconcile(sync::SeLinuxWarnings {
        pods: pods.lister(),
        claims: claims.lister(),
        volumes: volumes.lister(),
        drivers: drivers.lister(),
        memory,
    }))
}

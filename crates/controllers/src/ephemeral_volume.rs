#![doc = include_str!("../docs/ephemeral-volume-controller.md")]
//!
//! Follows `pkg/controller/volume/ephemeral` of Kubernetes 1.37.1.

use steersman_model::Kind;
use steersman_model::core::{PersistentVolumeClaimView, PodView};
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext, Disabled};
use steersman_runtime::Descriptor;

use crate::{pod_claims, table};

mod map;
mod metrics;
mod plan;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::Why;

/// The descriptor of the ephemeral-volume controller.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "ephemeral-volume-controller",
    needs: const { &[PodView::RESOURCE, PersistentVolumeClaimView::RESOURCE] },
    options: |_| (),
    build,
});

fn build(cx: &ControllerContext, (): ()) -> Result<Built, Disabled> {
    let pods = cx.informer::<PodView>();
    let claims = cx.informer::<PersistentVolumeClaimView>();
    let by_claim = pods.shared_index(pod_claims::claims_of);
    let builder = cx
        .controller(&pods)
        .watch_main(map::new_pod)
        .watch(&claims, move |change| map::pods_without(change, |claim| by_claim.get(claim)));
    Ok(builder.reconcile(sync::EphemeralVolumes {
        pods: pods.lister(),
        claims: claims.lister(),
        metrics: metrics::Metrics::new(cx.metrics())?,
    }))
}

#![doc = include_str!("../docs/persistentvolumeclaim-protection-controller.md")]
//!
//! Follows `pkg/controller/volume/pvcprotection` of Kubernetes 1.37.1.

use steersman_model::Kind;
use steersman_model::core::{PersistentVolumeClaimView, PodView};
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext, Flags};
use steersman_runtime::Descriptor;

use crate::{pod_claims, table};

mod map;
mod plan;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::Why;

/// The descriptor of the claim protection controller.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "persistentvolumeclaim-protection-controller",
    needs: const { &[PersistentVolumeClaimView::RESOURCE, PodView::RESOURCE] },
    options: Options::from_flags,
    build,
});

/// Options of the controller, set by feature gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Whether claims have a condition that says since when no pod uses them (`PersistentVolumeClaimUnusedSinceTime`).
    pub tracks_unused: bool,
}

// === impl Options ===

impl Options {
    /// Returns the options that flags and feature gates set.
    #[must_use]
    pub fn from_flags(flags: &Flags<'_>) -> Self {
        Self { tracks_unused: flags.gate("PersistentVolumeClaimUnusedSinceTime", true) }
    }

    /// Sets whether claims have a condition that says since when no pod uses them.
    #[must_use]
    pub fn tracks_unused(mut self, tracks_unused: bool) -> Self {
        self.tracks_unused = tracks_unused;
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::from_flags(&Flags::defaults())
    }
}

fn build(cx: &ControllerContext, options: Options) -> Built {
    let claims = cx.informer::<PersistentVolumeClaimView>();
    let pods = cx.informer::<PodView>();
    cx.controller(&claims)
        .watch_main(move |change| map::claim(change, options))
        .watch(&pods, move |change| map::claims_of_pod(change, options))
        .reconcile(sync::ClaimProtection {
            claims: claims.lister(),
            unsettled: claims.index(move |claim| map::unsettled(claim, options)),
            pods: pods.shared_index(pod_claims::claims_of),
            options,
        })
}

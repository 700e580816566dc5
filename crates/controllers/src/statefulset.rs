#![doc = include_str!("../docs/statefulset-controller.md")]
//!
//! Follows `pkg/controller/statefulset` of Kubernetes 1.37.1.

use std::time::Duration;

use steersman_base::Selector;
use steersman_informer::Change;
use steersman_model::Kind;
use steersman_model::apps::{ControllerRevisionView, StatefulSetView};
use steersman_model::core::{PersistentVolumeClaimView, PodView};
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext, Flags};
use steersman_runtime::Descriptor;
use steersman_runtime::handler::Keys;

use crate::claim::Selecting;
use crate::claim::map::Owners;
use crate::history::memory::Patches;
use crate::quota_room::room;
use crate::replicaset::GATHERED_FOR;
use crate::{pod, table};

mod identity;
mod map;
mod plan;
mod retention;
mod rolling;
mod status;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::Why;

/// The descriptor of the statefulset controller.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "statefulset-controller",
    needs: const {
        &[
            StatefulSetView::RESOURCE,
            PodView::RESOURCE,
            PersistentVolumeClaimView::RESOURCE,
            ControllerRevisionView::RESOURCE,
        ]
    },
    options: Options::from_flags,
    build,
});

/// Options of the controller, set by feature gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Whether `maxUnavailable` is used: `MaxUnavailableStatefulSet`. Otherwise it is one.
    pub max_unavailable: bool,
    /// Whether the newest revision is kept if it asks for the same pods in other words:
    /// `StatefulSetSemanticRevisionComparison`.
    pub semantic_comparison: bool,
    /// Whether the strategy `Recreate` is known: `StatefulSetRecreateStrategy`.
    pub recreate: bool,
    /// Whether an old pod that is not ready is replaced instead of waited for: `SteersmanReplaceBrokenStatefulSetPods`, a
    /// gate of our own.
    pub replace_broken: bool,
}

/// The maximum number of pods that one pass creates: upstream's figure for a batch.
pub const CREATES_MAX: usize = 500;

// === impl Options ===

impl Options {
    /// Returns the options that flags and feature gates set.
    #[must_use]
    pub fn from_flags(flags: &Flags<'_>) -> Self {
        Self {
            max_unavailable: flags.gate("MaxUnavailableStatefulSet", true),
            semantic_comparison: flags.gate("StatefulSetSemanticRevisionComparison", true),
            recreate: flags.gate("StatefulSetRecreateStrategy", false),
            replace_broken: flags.gate("SteersmanReplaceBrokenStatefulSetPods", false),
        }
    }

    /// Sets whether `maxUnavailable` is used.
    #[must_use]
    pub fn max_unavailable(mut self, max_unavailable: bool) -> Self {
        self.max_unavailable = max_unavailable;
        self
    }

    /// Sets whether the newest revision is kept if it asks for the same pods in other words.
    #[must_use]
    pub fn semantic_comparison(mut self, semantic_comparison: bool) -> Self {
        self.semantic_comparison = semantic_comparison;
        self
    }

    /// Sets whether the strategy `Recreate` is known.
    #[must_use]
    pub fn recreate(mut self, recreate: bool) -> Self {
        self.recreate = recreate;
        self
    }

    /// Sets whether an old pod that is not ready is replaced instead of waited for.
    #[must_use]
    pub fn replace_broken(mut self, replace_broken: bool) -> Self {
        self.replace_broken = replace_broken;
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::from_flags(&Flags::defaults())
    }
}

fn build(cx: &ControllerContext, options: Options) -> Built {
    let sets = cx.informer::<StatefulSetView>();
    let pods = cx.informer::<PodView>();
    let claims = cx.informer::<PersistentVolumeClaimView>();
    let revisions = cx.informer::<ControllerRevisionView>();
    let owners = Owners::new(&sets);
    let lister = sets.lister();
    let sets_of_pod = move |change: &Change<PodView>| {
        let keys = owners.of(change);
        // Pods of a parallel StatefulSet do not wait for each other, so that only its status is late.
        let is_parallel = |key| lister.get(key).is_some_and(|set| is_parallel(&set));
        let waits = pod::changes_status_only(change) && keys.iter().all(is_parallel);
        Keys::after(keys, if waits { GATHERED_FOR } else { Duration::ZERO })
    };
    let lister = sets.lister();
    let set_of_claim =
        move |change: &Change<PersistentVolumeClaimView>| map::set_of_claim(change, |key| lister.get(key).is_some());
    cx.controller(&sets)
        .watch(&pods, sets_of_pod)
        .watch(&claims, set_of_claim)
        .needs_cache(&revisions)
        .source(room(cx, sets.lister(), status::lacks_pods))
        .reads_live()
        .reconcile(sync::Sets {
            sets: sets.lister(),
            claims: claims.lister(),
            pods: cx.children(&pods),
            revisions: cx.children(&revisions),
            patches: Patches::default(),
            options,
        })
}

/// Whether pods do not wait for each other. An absent policy means `OrderedReady`: the API server's default.
fn is_parallel(set: &StatefulSetView) -> bool {
    set.spec.pod_management_policy == "Parallel"
}

impl Selecting for StatefulSetView {
    fn selector(&self) -> Option<Selector> {
        Selector::from_declared(self.spec.selector.as_ref()).ok()
    }
}

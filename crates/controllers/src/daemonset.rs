#![doc = include_str!("../docs/daemonset-controller.md")]
//!
//! Follows `pkg/controller/daemon` of Kubernetes 1.37.1.

use std::time::Duration;

use steersman_base::Selector;
use steersman_informer::Change;
use steersman_model::Kind;
use steersman_model::apps::{ControllerRevisionView, DaemonSetView};
use steersman_model::core::{NodeView, PodView};
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext, Flags};
use steersman_runtime::Descriptor;
use steersman_runtime::handler::Keys;

use crate::claim::Selecting;
use crate::claim::map::Owners;
use crate::history::memory::Patches;
use crate::quota_room::room;
use crate::replicaset::GATHERED_FOR;
use crate::toleration::Comparison;
use crate::{pod, table};

mod map;
mod memory;
mod placement;
mod plan;
mod pods;
mod rolling;
mod status;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::Why;

/// The descriptor of the daemonset controller.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "daemonset-controller",
    needs: const { &[DaemonSetView::RESOURCE, PodView::RESOURCE, NodeView::RESOURCE, ControllerRevisionView::RESOURCE] },
    options: Options::from_flags,
    build,
});

/// Options of the controller, set by feature gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Whether tolerations may compare numbers (the gate `TaintTolerationComparisonOperators`).
    pub compares_numbers: bool,
}

/// The maximum number of pods that one pass creates, and that it deletes: upstream's figure.
pub const BURST: usize = 250;

// === impl Options ===

impl Options {
    /// Returns the options that flags and feature gates set.
    #[must_use]
    pub fn from_flags(flags: &Flags<'_>) -> Self {
        Self { compares_numbers: flags.gate("TaintTolerationComparisonOperators", false) }
    }

    /// Sets whether tolerations may compare numbers.
    #[must_use]
    pub fn compares_numbers(mut self, compares_numbers: bool) -> Self {
        self.compares_numbers = compares_numbers;
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::from_flags(&Flags::defaults())
    }
}

fn build(cx: &ControllerContext, options: Options) -> Built {
    let comparison = Comparison::from(options.compares_numbers);
    let sets = cx.informer::<DaemonSetView>();
    let pods = cx.informer::<PodView>();
    let nodes = cx.informer::<NodeView>();
    let revisions = cx.informer::<ControllerRevisionView>();
    let owners = Owners::new(&sets);
    let sets_of_pod = move |change: &Change<PodView>| {
        let delay = if pod::changes_status_only(change) { GATHERED_FOR } else { Duration::ZERO };
        Keys::after(owners.of(change), delay)
    };
    let owners = Owners::new(&sets);
    let sets_of_revision = move |change: &Change<ControllerRevisionView>| {
        if map::is_made_by_its_owner(change) { Vec::new() } else { owners.of(change) }
    };
    let by_node = map::Nodes { sets: sets.lister(), pods: pods.shared_index(map::node_key), comparison };
    cx.controller(&sets)
        .watch(&pods, sets_of_pod)
        .watch(&revisions, sets_of_revision)
        .watch(&nodes, move |change| by_node.sets_of(change))
        .source(room(cx, sets.lister(), status::lacks_pods))
        .reads_live()
        .reconcile(sync::Sets {
            sets: sets.lister(),
            nodes: nodes.lister(),
            pods: cx.children(&pods),
            revisions: cx.children(&revisions),
            patches: Patches::default(),
            backoff: memory::Backoff::default(),
            comparison,
        })
}

impl Selecting for DaemonSetView {
    fn selector(&self) -> Option<Selector> {
        Selector::from_declared(self.spec.selector.as_ref()).ok()
    }
}

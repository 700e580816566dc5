#![doc = include_str!("../docs/taint-eviction-controller.md")]
//!
//! Follows `pkg/controller/tainteviction` of Kubernetes 1.37.1.

use std::sync::Arc;
use std::time::Duration;

use steersman_informer::Change;
use steersman_model::Kind;
use steersman_model::core::{NodeView, PodView};
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext, Disabled, Flags};
use steersman_runtime::Descriptor;
use steersman_workqueue::limiter::{Bucket, Exponential, MaxOf};

use crate::eviction::Disruption;
use crate::eviction::metrics::Metrics;
use crate::toleration::Comparison;
use crate::{pod, table};

mod map;
mod memory;
mod metrics;
mod plan;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::Why;

/// The descriptor of the taint eviction controller.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "taint-eviction-controller",
    needs: const { &[PodView::RESOURCE, NodeView::RESOURCE] },
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

/// The condition of an evicted pod.
const DISRUPTION: Disruption =
    Disruption { reason: "DeletionByTaintManager", message: "Taint manager: deleting due to NoExecute taint" };
/// The queue of pods: its number in the row.
const PODS: usize = 1;
/// The delays of an eviction that failed: a pod is never given up, and a server that is back soon has its evictions.
const RETRY: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(30));

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

fn build(cx: &ControllerContext, options: Options) -> Result<Built, Disabled> {
    let pods = cx.informer::<PodView>();
    let nodes = cx.informer::<NodeView>();
    let memory = Arc::new(memory::Memory::default());
    let by_node = pods.shared_index(pod::node);

    let of_nodes = Arc::clone(&memory);
    let pods_of_node = move |change: &Change<NodeView>| {
        if map::has_no_taints(change) {
            of_nodes.forget_node(&change.key().name);
        }
        if map::changes_taints(change) { map::keys(&by_node.get(&change.key().name)) } else { Vec::new() }
    };
    let known = nodes.lister();
    let of_pods = Arc::clone(&memory);
    let pods_to_check = move |change: &Change<PodView>| {
        map::pod_to_check(change, |name| known.get(name), |pod| of_pods.pods.is_planned(pod))
    };
    let (min, max) = RETRY;
    let builder = cx
        .controller(&pods)
        .queue(PODS)
        .limiter(MaxOf(Exponential::new(min, max), Bucket::default()))
        .watch_main(pods_to_check)
        .watch(&nodes, pods_of_node);
    Ok(builder.reconcile(sync::TaintEviction {
        pods: pods.lister(),
        nodes: nodes.lister(),
        memory,
        comparison: Comparison::from(options.compares_numbers),
        metrics: Metrics::new(cx.metrics(), &metrics::TEXTS)?,
    }))
}

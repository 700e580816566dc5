#![doc = include_str!("../docs/pod-garbage-collector-controller.md")]
//!
//! Follows `pkg/controller/podgc` of Kubernetes 1.37.1.

use std::time::Duration;

use parking_lot::Mutex;
use steersman_base::ObjectKey;
use steersman_model::Kind;
use steersman_model::core::{NodeView, PodView};
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext, Disabled, Flags};
use steersman_runtime::{Descriptor, source};

use crate::{pod, table};

mod map;
mod metrics;
mod patch;
mod plan;
mod quarantine;
mod sync;
#[cfg(test)]
mod tests;

pub use quarantine::QUARANTINE;
pub use sync::Why;

/// The descriptor of the pod garbage collector.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "pod-garbage-collector-controller",
    needs: const { &[PodView::RESOURCE, NodeView::RESOURCE] },
    options: Options::from_flags,
    build,
});

/// Options of the controller, set by flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The number of terminated pods that are kept (`--terminated-pod-gc-threshold`); all, if it is zero or less.
    pub terminated_pod_threshold: i32,
}

/// The period of passes: upstream's.
const EVERY: Duration = Duration::from_secs(20);
/// The only key: a pass concerns all pods.
const PASS: &str = "all-pods";

// === impl Options ===

impl Options {
    /// Returns the options that flags and feature gates set.
    #[must_use]
    pub fn from_flags(flags: &Flags<'_>) -> Self {
        let threshold = flags.int("terminated-pod-gc-threshold", 12_500);
        // The command line parses it as an int32.
        Self { terminated_pod_threshold: i32::try_from(threshold).unwrap_or_default() }
    }

    /// Sets the number of terminated pods that are kept.
    #[must_use]
    pub fn terminated_pod_threshold(mut self, terminated_pod_threshold: i32) -> Self {
        self.terminated_pod_threshold = terminated_pod_threshold;
        self
    }

    fn threshold(self) -> Option<usize> {
        usize::try_from(self.terminated_pod_threshold).ok().filter(|&threshold| threshold > 0)
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
    let passes = source::ticker(EVERY, || vec![ObjectKey::cluster(PASS)]).immediately();
    // The nodes must be known before the first pass; their changes are seen by the next one.
    let builder = cx.controller(&pods).without_main_watch().needs_cache(&nodes).needs_cache(&pods).source(passes);
    Ok(builder.reconcile(sync::PodGarbageCollector {
        ended: pods.index(|pod: &PodView| pod::has_ended(pod).then_some(())),
        terminating: pods.index(map::terminating),
        by_node: pods.shared_index(pod::node),
        nodes: nodes.lister(),
        quarantine: Mutex::default(),
        threshold: options.threshold(),
        metrics: metrics::Metrics::new(cx.metrics())?,
    }))
}

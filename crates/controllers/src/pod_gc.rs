//! The pod garbage collector: pods that nobody will end any more are ended here.
//!
//! 1. Pods that have ended are kept until there are more than a threshold; then the evicted go first, and the oldest.
//! 2. A pod on a node that is gone goes: when the node has been missing in the cache for [`QUARANTINE`], and the server
//!    says that it is gone, too.
//! 3. A pod that is being deleted goes at once if it was never on a node, or if its node is not ready and marked as out of
//!    service: no kubelet would end it.
//! 4. A pod that has not ended is `Failed` before it goes, so that who counts on it learns of its end; one on a node that
//!    is gone says so with the condition `DisruptionTarget`.
//! 5. Each pod that is deleted is the one that was looked at, never another one that got its name.
//! 6. What was asked for is not asked for again: a pod that only a finalizer keeps is left alone.
//! 7. A pass looks at these pods and at the names of nodes, not at every pod: between passes, indexes keep them apart.
//!
//! Follows `pkg/controller/podgc` of Kubernetes 1.37.1.

use std::time::Duration;

use parking_lot::Mutex;
use steersman_base::ObjectKey;
use steersman_model::core::{NodeView, PodView};
use steersman_model::{Kind, View};
use steersman_runtime::{Build, BuildContext, Descriptor, Enabled, Stage, Workers, source};
use steersman_workqueue::Priority;

use crate::pod;

mod metrics;
mod patch;
mod plan;
mod quarantine;
mod sync;
#[cfg(test)]
mod tests;

pub use quarantine::QUARANTINE;
pub use sync::Why;

/// The controller's row.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "pod-garbage-collector-controller",
    aliases: &["podgc"],
    account: "pod-garbage-collector",
    default: Enabled::Yes,
    gates: &[],
    needs: &[PodView::RESOURCE, NodeView::RESOURCE],
    workers: Workers::fixed(1),
    stage: Stage::Normal,
    build,
};

/// What flags say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many pods that have ended are kept (`--terminated-pod-gc-threshold`); all, if it is zero or less.
    pub terminated_pod_threshold: i32,
}

/// Upstream's: how often a pass is made.
const EVERY: Duration = Duration::from_secs(20);
/// The one key: a pass is about all pods.
const PASS: &str = "all-pods";

fn build(cx: &BuildContext, _workers: usize) -> Build {
    let pods = cx.informers.informer::<PodView>();
    let nodes = cx.informers.informer::<NodeView>();
    let ended = pods.index(|pod: &PodView| pod::has_ended(pod).then_some(()));
    let terminating = pods.index(|pod: &PodView| pod.meta().is_terminating().then_some(()));
    let by_node = pods.index(|pod: &PodView| (!pod.spec.node_name.is_empty()).then(|| pod.spec.node_name.clone()));
    let passes = source::task(|feed, stop| async move {
        loop {
            feed.add_all(&[ObjectKey::cluster(PASS)], Priority::Background);
            if stop.run_until_cancelled(tokio::time::sleep(EVERY)).await.is_none() {
                return;
            }
        }
    });
    cx.controller_on(DESCRIPTOR.name, &pods)
        .queue_name("orphaned_pods_nodes")
        .without_main_watch()
        // What nodes there are must be known before the first pass; what becomes of them is seen by the next one.
        .watch(&nodes, |_| Vec::new())
        .watch(&pods, |_| Vec::new())
        .source(passes)
        .reconcile_with(sync::PodGc {
            client: cx.client.clone(),
            ended,
            terminating,
            by_node,
            nodes: nodes.lister(),
            quarantine: Mutex::default(),
            threshold: usize::try_from(cx.options::<Options>().terminated_pod_threshold).ok().filter(|&it| it > 0),
            metrics: metrics::Metrics::new(cx.manager().metrics()),
        });
    Build::Enabled
}

// === impl Options ===

impl Default for Options {
    fn default() -> Self {
        Self { terminated_pod_threshold: 12_500 }
    }
}

//! The shell: observes, and runs a [`Pass`] for each address family.

mod pass;

use std::sync::Arc;

use steersman_base::{Istr, ObjectKey};
use steersman_informer::Lister;
use steersman_model::core::{NodeView, PodView, ServiceView};
use steersman_model::{EndpointSliceView, View};
use steersman_runtime::__internal::Found;
use steersman_runtime::{Action, Context, Error, Reconciler};

use super::memory::Memory;
use super::metrics::Metrics;
use super::plan::{NodeSeen, by_family};
use super::{endpoint, map};
use crate::service_pods::{self, ServicePods, address};
use pass::Pass;

pub use pass::Why;

/// The controller's shell: the caches that it reads from, and its memory.
pub(super) struct EndpointSlices {
    pub(super) services: Lister<ServiceView>,
    pub(super) nodes: Lister<NodeView>,
    pub(super) slices: Found<ObjectKey, EndpointSliceView>,
    pub(super) pods: ServicePods,
    pub(super) endpoints_per_slice_max: usize,
    pub(super) metrics: Metrics,
    pub(super) memory: Arc<Memory>,
}

// === impl EndpointSlices ===

impl Reconciler for EndpointSlices {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let outcome = self.sync(cx, key).await;
        self.metrics.synced(if outcome.is_ok() { "success" } else { "error" });
        outcome
    }
}

impl EndpointSlices {
    async fn sync(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(service) = self.services.get(key) else {
            // The garbage collector deletes the slices of a deleted service.
            self.forget(key);
            return Ok(Action::Done);
        };
        if !service_pods::has_endpoints(&service) {
            self.forget(key);
            return Ok(Action::Done);
        }
        let pods = self.pods.of(&service);
        self.log_invalid(&pods);
        let families = endpoint::families(&service);
        let slices = self.slices.get(cx, key).await?;
        let known = slices.iter().map(|slice| slice.meta().name.clone()).collect();
        let usable = slices.into_iter().filter(|slice| !slice.meta().is_terminating()).collect();
        let (ours, others) = by_family(usable, &families);
        let (time, seen) = self.memory.times.observe(&service, &pods);
        let mut pass = Pass::new(self, cx, &service, key, &pods, time, known);
        for (family, slices) in ours {
            pass.family(family, slices).await;
        }
        pass.drop_others(others).await;
        self.memory.nodeless.set(key, pass.take_nodeless());
        // A pod whose node is unknown does not prevent the other endpoints from being written.
        if pass.has_written_all() {
            self.memory.times.keep(key, seen);
        }
        pass.end()
    }

    fn node(&self, name: &Istr) -> NodeSeen {
        let node = self.nodes.get(&ObjectKey { namespace: Istr::default(), name: name.clone() });
        node.map_or(NodeSeen::Missing, |node| NodeSeen::Is(map::zone(&node).cloned()))
    }

    fn forget(&self, key: &ObjectKey) {
        self.memory.forget(key);
        self.metrics.forget(key);
    }

    fn log_invalid(&self, pods: &[Arc<PodView>]) {
        for pod in pods {
            if let Some(address) = address::invalid(pod).filter(|_| self.memory.warned.is_first(&pod.meta().uid)) {
                tracing::warn!(pod = %pod.meta().key(), %address, "the address is invalid and left out of the EndpointSlices");
            }
        }
    }
}

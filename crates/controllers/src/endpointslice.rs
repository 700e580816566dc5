#![doc = include_str!("../docs/endpointslice-controller.md")]
//!
//! Follows `pkg/controller/endpointslice` of Kubernetes 1.37.1 and `k8s.io/endpointslice` 0.37.1.

use std::sync::Arc;
use std::time::Duration;

use steersman_base::names;
use steersman_informer::Change;
use steersman_model::core::{NodeView, PodView, ServiceView};
use steersman_model::{EndpointSliceView, Kind, View};
use steersman_runtime::__internal::Found;
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext, Disabled, Flags};
use steersman_runtime::Descriptor;
use steersman_runtime::handler::Keys;

use self::memory::Memory;
use self::metrics::Metrics;
use crate::service_pods::ServicePods;
use crate::service_pods::managed::Manager;
use crate::table;

mod endpoint;
mod hints;
mod map;
mod memory;
mod metrics;
mod packing;
mod plan;
mod sync;
#[cfg(test)]
mod tests;
mod zones;

pub use sync::Why;

/// The descriptor of the endpointslice controller.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "endpointslice-controller",
    needs: const { &[ServiceView::RESOURCE, PodView::RESOURCE, NodeView::RESOURCE, EndpointSliceView::RESOURCE] },
    options: Options::from_flags,
    build,
});

/// Options of the controller, set by flags.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The maximum number of endpoints of a slice: `--max-endpoints-per-slice`.
    pub endpoints_per_slice_max: usize,
    /// The time for which pod changes are batched before a service is reconciled:
    /// `--endpointslice-updates-batch-period`.
    pub updates_batch_period: Duration,
}

/// The manager of the slices of this controller.
const MANAGER: Manager = Manager("endpointslice-controller.k8s.io");
/// Changes of slices are batched for at least this long, so that a change of many slices is one pass.
const SLICES_BATCH_MIN: Duration = Duration::from_secs(1);

// === impl Options ===

impl Options {
    /// Returns the options that flags and feature gates set.
    #[must_use]
    pub fn from_flags(flags: &Flags<'_>) -> Self {
        Self {
            // The command line accepts 1 to 1000.
            endpoints_per_slice_max: usize::try_from(flags.int("max-endpoints-per-slice", 100)).unwrap_or(1),
            updates_batch_period: flags.duration("endpointslice-updates-batch-period", Duration::ZERO),
        }
    }

    /// Sets the maximum number of endpoints of a slice.
    #[must_use]
    pub fn endpoints_per_slice_max(mut self, endpoints_per_slice_max: usize) -> Self {
        self.endpoints_per_slice_max = endpoints_per_slice_max;
        self
    }

    /// Sets how long pod changes are batched before a service is reconciled.
    #[must_use]
    pub fn updates_batch_period(mut self, updates_batch_period: Duration) -> Self {
        self.updates_batch_period = updates_batch_period;
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::from_flags(&Flags::defaults())
    }
}

fn build(cx: &ControllerContext, options: Options) -> Result<Built, Disabled> {
    let services = cx.informer::<ServiceView>();
    let pods = cx.informer::<PodView>();
    let nodes = cx.informer::<NodeView>();
    let slices = cx.informer::<EndpointSliceView>();
    let memory = Arc::new(Memory::new(nodes.lister()));
    let batch = options.updates_batch_period;

    let of_slices = Arc::clone(&memory);
    let services_of_slice = move |change: &Change<EndpointSliceView>| {
        Keys::after(MANAGER.services_of(change, &of_slices.tracker), batch.max(SLICES_BATCH_MIN))
    };
    let of_nodes = Arc::clone(&memory);
    let services_of_node = move |change: &Change<NodeView>| of_nodes.services_of_node(change);
    let service_pods = ServicePods::new(&services, &pods);
    let builder = cx
        .controller(&services)
        .watch(&pods, service_pods.services_of_pod(batch))
        .watch(&slices, services_of_slice)
        .watch(&nodes, services_of_node);
    Ok(builder.reads_live().reconcile(sync::EndpointSlices {
        services: services.lister(),
        nodes: nodes.lister(),
        slices: Found::new(&slices, |slice| MANAGER.service_of(slice.meta()), |key| MANAGER.slices_of(key)),
        pods: service_pods,
        endpoints_per_slice_max: options.endpoints_per_slice_max.max(1),
        metrics: Metrics::new(cx.metrics(), options.endpoints_per_slice_max)?,
        memory,
    }))
}

/// Whether the annotations request topology hints. The older of the two names takes precedence.
fn asks_for_topology_hints(service: &ServiceView) -> bool {
    let annotations = &service.meta().annotations;
    let mode = annotations.get(names::annotations::SERVICE_TOPOLOGY_AWARE_HINTS);
    let mode = mode.or_else(|| annotations.get(names::annotations::SERVICE_TOPOLOGY_MODE));
    mode.is_some_and(|mode| matches!(&**mode, "Auto" | "auto"))
}

#![doc = include_str!("../docs/endpointslice-mirroring-controller.md")]
//!
//! Follows `pkg/controller/endpointslicemirroring` of Kubernetes 1.37.1.

use std::sync::Arc;
use std::time::Duration;

use steersman_informer::Change;
use steersman_model::core::ServiceView;
use steersman_model::{EndpointSliceView, EndpointsView, Kind, View};
use steersman_runtime::__internal::Found;
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext, Disabled, Flags};
use steersman_runtime::Descriptor;
use steersman_runtime::handler::Keys;

use crate::service_pods::managed::Manager;
use crate::service_pods::memory::Tracker;
use crate::table;

mod map;
mod metrics;
mod plan;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::Why;

/// The descriptor of the endpointslice-mirroring controller.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "endpointslice-mirroring-controller",
    needs: const { &[EndpointsView::RESOURCE, EndpointSliceView::RESOURCE, ServiceView::RESOURCE] },
    options: Options::from_flags,
    build,
});

/// Options of the controller, set by flags.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The maximum number of addresses of a subset that are mirrored: `--mirroring-max-endpoints-per-subset`.
    pub endpoints_per_subset_max: usize,
    /// The time for which changes of slices are batched: `--mirroring-endpointslice-updates-batch-period`.
    pub updates_batch_period: Duration,
}

/// The manager of mirrored slices.
const MANAGER: Manager = Manager("endpointslicemirroring-controller.k8s.io");

// === impl Options ===

impl Options {
    /// Returns the options that flags and feature gates set.
    #[must_use]
    pub fn from_flags(flags: &Flags<'_>) -> Self {
        Self {
            // The command line accepts 1 to 1000.
            endpoints_per_subset_max: usize::try_from(flags.int("mirroring-max-endpoints-per-subset", 1000))
                .unwrap_or(1),
            updates_batch_period: flags.duration("mirroring-endpointslice-updates-batch-period", Duration::ZERO),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::from_flags(&Flags::defaults())
    }
}

fn build(cx: &ControllerContext, options: Options) -> Result<Built, Disabled> {
    let endpoints = cx.informer::<EndpointsView>();
    let slices = cx.informer::<EndpointSliceView>();
    let services = cx.informer::<ServiceView>();
    let tracker = Arc::new(Tracker::default());
    let batch = options.updates_batch_period;

    let of_slices = Arc::clone(&tracker);
    let endpoints_of_slice =
        move |change: &Change<EndpointSliceView>| Keys::after(map::endpoints_of_slice(change, &of_slices), batch);
    let builder = cx
        .controller(&endpoints)
        .watch_main(map::endpoints)
        .watch(&services, map::endpoints_of_service)
        .watch(&slices, endpoints_of_slice);
    Ok(builder.reads_live().reconcile(sync::Mirror {
        endpoints: endpoints.lister(),
        services: services.lister(),
        slices: Found::new(&slices, |slice| MANAGER.service_of(slice.meta()), |key| MANAGER.slices_of(key)),
        endpoints_per_subset_max: options.endpoints_per_subset_max.max(1),
        metrics: metrics::Metrics::new(cx.metrics(), options.endpoints_per_subset_max)?,
        tracker,
    }))
}

#![doc = include_str!("../docs/endpoints-controller.md")]
//!
//! Follows `pkg/controller/endpoint` of Kubernetes 1.37.1.

use std::time::Duration;

use steersman_informer::Change;
use steersman_model::Kind;
use steersman_model::core::{EndpointsView, PodView, ServiceView};
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext, Flags};
use steersman_runtime::Descriptor;

use crate::service_pods::ServicePods;
use crate::table;

mod map;
mod plan;
mod subsets;
mod sync;
#[cfg(test)]
mod tests;

pub use subsets::ADDRESSES_MAX;
pub(crate) use subsets::repack;
pub use sync::Why;

/// The descriptor of the endpoints controller.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "endpoints-controller",
    needs: const { &[ServiceView::RESOURCE, PodView::RESOURCE, EndpointsView::RESOURCE] },
    options: Options::from_flags,
    build,
});

/// Options of the controller, set by flags.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The time for which pod changes are batched before a service is reconciled: `--endpoint-updates-batch-period`.
    pub updates_batch_period: Duration,
}

/// The value of the label that marks Endpoints as managed by this controller.
const KEEPER: &str = "endpoint-controller";

// === impl Options ===

impl Options {
    /// Returns the options that flags and feature gates set.
    #[must_use]
    pub fn from_flags(flags: &Flags<'_>) -> Self {
        Self { updates_batch_period: flags.duration("endpoint-updates-batch-period", Duration::ZERO) }
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

fn build(cx: &ControllerContext, options: Options) -> Built {
    let services = cx.informer::<ServiceView>();
    let pods = cx.informer::<PodView>();
    let endpoints = cx.informer::<EndpointsView>();
    let lister = services.lister();
    let service_of = move |change: &Change<EndpointsView>| map::service_of(change, |key| lister.get(key).is_some());
    let service_pods = ServicePods::new(&services, &pods);
    cx.controller(&services)
        .watch(&pods, service_pods.services_of_pod(options.updates_batch_period))
        .watch(&endpoints, service_of)
        .reads_live()
        .reconcile(sync::Endpoints {
            services: services.lister(),
            endpoints: endpoints.lister(),
            pods: service_pods,
            times: Default::default(),
            warned: Default::default(),
        })
}

#![doc = include_str!("../docs/endpoints-controller.md")]
//!
//! Follows `pkg/controller/endpoint` of Kubernetes 1.37.1.

use std::time::Duration;

use steersman_model::Kind;
use steersman_model::core::{EndpointsView, PodView, ServiceView};
use steersman_runtime::Descriptor;
use steersman_runtime::descriptor::{Built, BuiltIn, ControllerContext, Flags};
use steersman_runtime::event::Event;
use steersman_runtime::handler::Keys;
use steersman_runtime::source::Watch;

use crate::service_pods::ServicePods;
use crate::table;

mod map;
mod plan;
mod subsets;
mod sync;
#[cfg(test)]
mod tests;

pub use subsets::ADDRESSES_MAX;
pub use sync::Why;

/// The controller.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "endpoints-controller",
    needs: const { &[ServiceView::RESOURCE, PodView::RESOURCE, EndpointsView::RESOURCE] },
    options: Options::from_flags,
    build,
});

/// The options, which flags set.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long changes of pods are gathered before a service is reconciled: `--endpoint-updates-batch-period`.
    pub updates_batch_period: Duration,
}

/// Who keeps Endpoints of ours, as their label says.
const KEEPER: &str = "endpoint-controller";

// === impl Options ===

impl Options {
    fn from_flags(flags: &Flags<'_>) -> Self {
        Self { updates_batch_period: flags.duration("endpoint-updates-batch-period", Duration::ZERO) }
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
    let of_endpoints = Watch::new(&endpoints, move |event: Event<'_, EndpointsView>, keys: &mut Keys| {
        keys.extend(map::service_of(event, |key| lister.get(key).is_some()));
    });
    let service_pods = ServicePods::new(&services, &pods);
    cx.controller(&services)
        .source(service_pods.watch(&pods, options.updates_batch_period))
        .source(of_endpoints)
        .reads_live()
        .reconcile(sync::Endpoints {
            services: services.lister(),
            endpoints: endpoints.lister(),
            pods: service_pods,
            times: Default::default(),
            told: Default::default(),
        })
}

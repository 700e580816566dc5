//! The endpoints controller: for each service with a selector, one Endpoints object with the addresses of its pods.
//!
//! 1. An address is there as soon as its pod has one, among the ready ones or the others; a service that publishes
//!    addresses that are not ready has all among the ready ones, those of pods that are about to go included.
//! 2. The object is in a canonical form, and what is the same in another order is left as it is: taking over from another
//!    controller manager writes nothing.
//! 3. Beyond [`ADDRESSES_MAX`] addresses it is cut, ready ones first and each subset in proportion, and says so in the
//!    annotation `endpoints.kubernetes.io/over-capacity`.
//! 4. Services without selector and those of type `ExternalName` are left to others; their Endpoints are not touched.
//! 5. When a service is gone, so are its Endpoints; those that a stopped manager left behind go at the next start.
//! 6. Nothing is decided from a cache that does not show what was written before: however fast pods flap, the last state is
//!    the one that stays.
//!
//! Follows `pkg/controller/endpoint` of Kubernetes 1.37.1.

use std::time::Duration;

use steersman_informer::Change;
use steersman_model::Kind;
use steersman_model::core::{EndpointsView, PodView, ServiceView};
use steersman_runtime::handler::Keys;
use steersman_runtime::{Build, BuildContext, Descriptor, Enabled, Stage, Workers};

use crate::service_pods::{self, ServicePods};

mod map;
mod plan;
mod subsets;
mod sync;
#[cfg(test)]
mod tests;

pub use subsets::ADDRESSES_MAX;
pub use sync::Why;

/// The controller's row.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "endpoints-controller",
    aliases: &["endpoint"],
    account: "endpoint-controller",
    default: Enabled::Yes,
    gates: &[],
    needs: &[ServiceView::RESOURCE, PodView::RESOURCE, EndpointsView::RESOURCE],
    workers: Workers::flag("concurrent-endpoint-syncs", 5),
    stage: Stage::Normal,
    build,
};

/// What flags set.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How long changes of pods are gathered before a service is looked at: `--endpoint-updates-batch-period`.
    pub updates_batch_period: Duration,
}

/// Upstream's figure: with its limiter, retries go on for some minutes.
const RETRIES_MAX: u32 = 15;
/// The source of its events.
const COMPONENT: &str = "endpoint-controller";

fn build(cx: &BuildContext, workers: usize) -> Build {
    let options = cx.options::<Options>();
    let services = cx.informers.informer::<ServiceView>();
    let pods = cx.informers.informer::<PodView>();
    let endpoints = cx.informers.informer::<EndpointsView>();

    let by_selector = services.shared_index(service_pods::selector_hashes);
    let batch = options.updates_batch_period;
    let services_of_pod = move |change: &Change<PodView>| {
        Keys::after(service_pods::services_of(change, |hash| by_selector.get(hash)), batch)
    };
    let lister = services.lister();
    let service_of = move |change: &Change<EndpointsView>| map::service_of(change, |key| lister.get(key).is_some());

    let mut cx = cx.clone();
    cx.events = cx.events.for_component(COMPONENT);
    cx.controller_on(DESCRIPTOR.name, &services)
        .queue_name("endpoint")
        .watch(&pods, services_of_pod)
        .watch(&endpoints, service_of)
        .give_up_after(RETRIES_MAX)
        .workers(workers)
        .reads_live()
        .reconcile_with(sync::Endpoints {
            client: cx.client.clone(),
            services: services.lister(),
            endpoints: endpoints.lister(),
            pods: ServicePods::new(&pods),
            times: Default::default(),
            told: Default::default(),
        });
    Build::Enabled
}

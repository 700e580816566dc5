//! The endpointslice controller: for each service with a selector, slices of at most 100 endpoints each.
//!
//! 1. A pod with an address is an endpoint, until it has ended: `ready`, `serving` and `terminating` say what may be sent to
//!    it. One whose node is not known is left out and looked for again.
//! 2. Slices are per family of addresses and per set of ports. Changes are packed into as few writes as can be, and never move
//!    an endpoint from one slice to another ([`packing`]).
//! 3. A service without endpoints has one empty slice per family, so that its consumers know that there are none.
//! 4. Zone and node hints follow `trafficDistribution`, or the annotation `service.kubernetes.io/topology-mode: Auto`.
//! 5. What others do to our slices is undone, a second later and all at once; what we did ourselves wakes nobody.
//! 6. Nothing is decided from a cache that does not show what was written before: however fast pods flap, the last state is
//!    the one that stays, and no endpoint is in two slices for long.
//!
//! Follows `pkg/controller/endpointslice` of Kubernetes 1.37.1 and `k8s.io/endpointslice` 0.37.1.

use std::sync::Arc;
use std::time::Duration;

use steersman_base::names;
use steersman_informer::Change;
use steersman_model::core::{NodeView, PodView, ServiceView};
use steersman_model::{EndpointSliceView, Kind, View};
use steersman_runtime::handler::Keys;
use steersman_runtime::{Build, BuildContext, Descriptor, Enabled, Stage, Workers};
use steersman_workqueue::limiter::{Bucket, Exponential, MaxOf};

use self::metrics::Metrics;
use self::topology::Topology;
use self::tracker::Tracker;
use crate::service_pods::{self, ServicePods};

mod endpoint;
mod hints;
mod map;
mod metrics;
mod nodeless;
mod packing;
mod plan;
mod sync;
#[cfg(test)]
mod tests;
mod topology;
mod tracker;
mod zones;

pub use sync::Why;

/// The controller's row.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "endpointslice-controller",
    aliases: &["endpointslice"],
    account: "endpointslice-controller",
    default: Enabled::Yes,
    gates: &[],
    needs: &[ServiceView::RESOURCE, PodView::RESOURCE, NodeView::RESOURCE, EndpointSliceView::RESOURCE],
    workers: Workers::flag("concurrent-service-endpoint-syncs", 5),
    stage: Stage::Normal,
    build,
};

/// What flags set.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many endpoints a slice holds at most: `--max-endpoints-per-slice`.
    pub endpoints_per_slice_max: usize,
    /// How long changes of pods are gathered before a service is looked at: `--endpointslice-updates-batch-period`.
    pub updates_batch_period: Duration,
}

/// Whose slices ours are, as their label says.
const MANAGER: &str = "endpointslice-controller.k8s.io";
/// The source of its events.
const COMPONENT: &str = "endpoint-slice-controller";
/// Upstream's figure: with its limiter, retries go on for more than an hour.
const RETRIES_MAX: u32 = 15;
/// A retry waits longer than elsewhere, for one pass may write many slices: upstream's figures.
const RETRY_AFTER_MIN: Duration = Duration::from_secs(1);
const RETRY_AFTER_MAX: Duration = Duration::from_secs(1000);
/// Changes of slices are gathered for at least this long, so that a change of many is one pass.
const SLICES_BATCH_MIN: Duration = Duration::from_secs(1);

// === impl Options ===

impl Default for Options {
    fn default() -> Self {
        Self { endpoints_per_slice_max: 100, updates_batch_period: Duration::ZERO }
    }
}

fn build(cx: &BuildContext, workers: usize) -> Build {
    let options = cx.options::<Options>();
    let services = cx.informers.informer::<ServiceView>();
    let pods = cx.informers.informer::<PodView>();
    let nodes = cx.informers.informer::<NodeView>();
    let slices = cx.informers.informer::<EndpointSliceView>();
    let metrics = Metrics::of(cx.manager().metrics(), options.endpoints_per_slice_max).unwrap_or_else(|error| {
        tracing::error!(%error, "endpoint slices are not counted");
        Metrics::default()
    });
    let state = Arc::new(sync::State {
        topology: Topology::new(nodes.lister()),
        tracker: Tracker::default(),
        metrics,
        ..sync::State::default()
    });

    let by_selector = services.shared_index(service_pods::selector_hashes);
    let batch = options.updates_batch_period;
    let services_of_pod = move |change: &Change<PodView>| {
        Keys::after(service_pods::services_of(change, |hash| by_selector.get(hash)), batch)
    };
    let shared = Arc::clone(&state);
    let services_of_slice = move |change: &Change<EndpointSliceView>| {
        Keys::after(map::services_of(change, &shared.tracker), batch.max(SLICES_BATCH_MIN))
    };
    let shared = Arc::clone(&state);
    let services_of_node = move |change: &Change<NodeView>| {
        let mut keys = Keys::default();
        if map::changes_zones(change) {
            keys.extend(shared.topology.nodes_changed());
        }
        if let Change::Added { new, .. } = change {
            keys.extend(shared.nodeless.waiting_for(&new.meta().name));
        }
        keys
    };

    let mut cx = cx.clone();
    cx.events = cx.events.for_component(COMPONENT);
    cx.controller_on(DESCRIPTOR.name, &services)
        .queue_name("endpoint_slice")
        .watch(&pods, services_of_pod)
        .watch(&slices, services_of_slice)
        .watch(&nodes, services_of_node)
        .limiter(MaxOf(Exponential::new(RETRY_AFTER_MIN, RETRY_AFTER_MAX), Bucket::default()))
        .give_up_after(RETRIES_MAX)
        .workers(workers)
        .reads_live()
        .reconcile_with(sync::EndpointSlices {
            client: cx.client.clone(),
            services: services.lister(),
            nodes: nodes.lister(),
            slices_of: slices.index(|slice: &EndpointSliceView| map::service_of(slice.meta())),
            pods: ServicePods::new(&pods),
            endpoints_per_slice_max: options.endpoints_per_slice_max.max(1),
            state,
        });
    Build::Enabled
}

/// Whether the annotations ask for hints by topology. The older name of the two counts first.
fn asks_for_topology_hints(service: &ServiceView) -> bool {
    let annotations = &service.meta().annotations;
    let mode = annotations.get(names::annotations::SERVICE_TOPOLOGY_AWARE_HINTS);
    let mode = mode.or_else(|| annotations.get(names::annotations::SERVICE_TOPOLOGY_MODE));
    mode.is_some_and(|mode| matches!(&**mode, "Auto" | "auto"))
}

#![doc = include_str!("../docs/node-lifecycle-controller.md")]
//!
//! Follows `pkg/controller/nodelifecycle` of Kubernetes 1.37.1.

use std::sync::Arc;
use std::time::Duration;

use steersman_base::ObjectKey;
use steersman_informer::{Change, Selection};
use steersman_model::core::{NodeView, PodView};
use steersman_model::{Kind, NodeLeaseView};
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext, Disabled, Flags};
use steersman_runtime::{Descriptor, source};
use steersman_workqueue::Priority;
use steersman_workqueue::limiter::default_controller_limiter;

use crate::{pod, table};

mod health;
mod limiter;
mod map;
mod memory;
mod metrics;
mod plan;
mod status;
mod sync;
mod taints;
#[cfg(test)]
mod tests;
mod zones;

use memory::Memory;
pub use sync::Why;
use zones::Rates;

/// The descriptor of the node lifecycle controller.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "node-lifecycle-controller",
    needs: const { &[NodeView::RESOURCE, PodView::RESOURCE, NodeLeaseView::RESOURCE] },
    options: Options::from_flags,
    build,
});

/// Options of the controller, set by flags.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// The period of health checks (`--node-monitor-period`).
    pub monitor_period: Duration,
    /// The time for which a node may be silent (`--node-monitor-grace-period`).
    pub monitor_grace_period: Duration,
    /// The time for which a node that never reported may be silent (`--node-startup-grace-period`).
    pub startup_grace_period: Duration,
    /// Nodes per second that get a `NoExecute` taint in a healthy zone (`--node-eviction-rate`).
    pub eviction_rate: f64,
    /// The same in a large zone that is partially disrupted (`--secondary-node-eviction-rate`).
    pub secondary_eviction_rate: f64,
    /// The number of nodes up to which a zone is small: while disrupted, it evicts nothing
    /// (`--large-cluster-size-threshold`).
    pub large_cluster_threshold: i64,
    /// The share of nodes that are not ready from which a zone is disrupted (`--unhealthy-zone-threshold`).
    pub unhealthy_zone_threshold: f64,
    /// Whether a lease is read from the server before its node is called unhealthy (the gate
    /// `NodeControllerLeaseCircuitBreaker`).
    pub checks_leases: bool,
}

/// The namespace of the leases of nodes.
const LEASES_IN: &str = "kube-node-lease";
/// For how long heartbeats may wait: short beside the period of checks, and long enough for some dozens of them in a large cluster.
const HEARTBEATS_WAIT: Duration = Duration::from_millis(100);
/// The queue of health checks, and its only key: a check concerns all nodes.
const CHECKS: (&str, &str) = ("node-lifecycle-health", "node_lifecycle_controller_health");
const CHECK: &str = "all-nodes";
/// The queue of zones, whose nodes get `NoExecute` taints one after the other.
const ZONES: (&str, &str) = ("node-lifecycle-zones", "node_lifecycle_controller_zones");
/// The queue of pods that were bound to a node: its name, and its number in the row.
const PODS: (&str, usize) = ("node-lifecycle-pods", 1);
/// The number of workers for pods: upstream's.
const POD_WORKERS: usize = 4;

// === impl Options ===

impl Options {
    /// Returns the options that flags and feature gates set.
    #[must_use]
    pub fn from_flags(flags: &Flags<'_>) -> Self {
        Self {
            monitor_period: flags.duration("node-monitor-period", Duration::from_secs(5)),
            monitor_grace_period: flags.duration("node-monitor-grace-period", Duration::from_secs(50)),
            startup_grace_period: flags.duration("node-startup-grace-period", Duration::from_secs(60)),
            eviction_rate: flags.float("node-eviction-rate", 0.1),
            secondary_eviction_rate: flags.float("secondary-node-eviction-rate", 0.01),
            large_cluster_threshold: flags.int("large-cluster-size-threshold", 50),
            unhealthy_zone_threshold: flags.float("unhealthy-zone-threshold", 0.55),
            checks_leases: flags.gate("NodeControllerLeaseCircuitBreaker", true),
        }
    }

    /// Sets the period of health checks.
    #[must_use]
    pub fn monitor_period(mut self, monitor_period: Duration) -> Self {
        self.monitor_period = monitor_period;
        self
    }

    /// Sets how long a node may be silent.
    #[must_use]
    pub fn monitor_grace_period(mut self, monitor_grace_period: Duration) -> Self {
        self.monitor_grace_period = monitor_grace_period;
        self
    }

    /// Sets the number of nodes per second that get a `NoExecute` taint in a healthy zone.
    #[must_use]
    pub fn eviction_rate(mut self, eviction_rate: f64) -> Self {
        self.eviction_rate = eviction_rate;
        self
    }

    /// Sets whether a lease is read from the server before its node is called unhealthy.
    #[must_use]
    pub fn checks_leases(mut self, checks_leases: bool) -> Self {
        self.checks_leases = checks_leases;
        self
    }

    fn rates(self) -> Rates {
        Rates {
            primary: self.eviction_rate,
            secondary: self.secondary_eviction_rate,
            large: usize::try_from(self.large_cluster_threshold).unwrap_or_default(),
            threshold: self.unhealthy_zone_threshold,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::from_flags(&Flags::defaults())
    }
}

fn build(cx: &ControllerContext, options: Options) -> Result<Built, Disabled> {
    let nodes = cx.informer::<NodeView>();
    let pods = cx.informer::<PodView>();
    // Leases of all namespaces, although only those of nodes are read: the garbage collector reads the metadata of all leases, and
    // shares this watch, but not one of a single namespace. A manager that sees one namespace needs that of the nodes' leases.
    let leases = match cx.informers.namespace() {
        None => cx.informer::<NodeLeaseView>(),
        Some(_) => cx.informers.informer_in::<NodeLeaseView>(Selection::namespace(LEASES_IN)),
    };
    leases.gather(HEARTBEATS_WAIT);
    let by_node = pods.shared_index(pod::node);
    let memory = Arc::new(Memory::new(options.rates()));
    let metrics = Arc::new(metrics::Metrics::new(cx.metrics())?);

    let of_nodes = cx
        .controller(&nodes)
        .when(map::needs_a_pass)
        .limiter(default_controller_limiter())
        .reconcile(sync::Nodes { nodes: nodes.lister() });

    let known = nodes.lister();
    let pods_to_mark = move |change: &Change<PodView>| map::bound_to_unready(change, |name| known.get(name));
    let (name, number) = PODS;
    let of_pods = cx
        .another(name, &pods)
        .queue(number)
        .workers(POD_WORKERS)
        .limiter(default_controller_limiter())
        .needs_cache(&nodes)
        .watch_main(pods_to_mark)
        .reconcile(sync::Pods { pods: pods.lister(), nodes: nodes.lister() });

    let (name, queue) = CHECKS;
    let ticks = source::ticker(options.monitor_period, || vec![ObjectKey::cluster(CHECK)]).immediately();
    let checks = cx
        .another_of_keys(name)
        .queue_name(queue)
        .workers(1)
        .needs_cache(&nodes)
        .needs_cache(&pods)
        .needs_cache(&leases)
        .source(ticks)
        .reconcile(sync::Monitor {
            nodes: nodes.lister(),
            leases: leases.clone(),
            by_node,
            memory: Arc::clone(&memory),
            metrics: Arc::clone(&metrics),
            options,
        });

    let (name, queue) = ZONES;
    let waiting = Arc::clone(&memory);
    let zones_with_nodes = source::task(move |feed, stop| async move {
        while stop.run_until_cancelled(waiting.changed()).await.is_some() {
            feed.add_all(&waiting.zones_to_taint(), Priority::Live);
        }
    });
    let zones = cx
        .another_of_keys(name)
        .queue_name(queue)
        .needs_cache(&nodes)
        .source(zones_with_nodes)
        .reconcile(sync::Tainter { nodes: nodes.lister(), memory, metrics });
    Ok(of_nodes.and(of_pods).and(checks).and(zones))
}

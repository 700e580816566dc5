#![doc = include_str!("../docs/node-ipam-controller.md")]
//!
//! Follows `pkg/controller/nodeipam` of Kubernetes 1.37.1.

use std::sync::Arc;

use steersman_informer::Change;
use steersman_model::Kind;
use steersman_model::core::NodeView;
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext, Disabled, Flags};
use steersman_runtime::health::{Probe, Unhealthy};
use steersman_runtime::manager::runnable;
use steersman_runtime::{Descriptor, Group};

use crate::table;

mod allocator;
mod cidr_set;
mod map;
mod memory;
mod metrics;
mod plan;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::Why;

/// The descriptor of the node IPAM controller.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "node-ipam-controller",
    needs: const { &[NodeView::RESOURCE] },
    options: Options::from_flags,
    build,
});

/// Options of the controller, set by flags. Sizes of zero are the defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Whether nodes get ranges at all (`--allocate-node-cidrs`).
    pub allocate: bool,
    /// The way ranges are chosen (`--cidr-allocator-type`).
    pub allocator: String,
    /// The pod addresses of the cluster: a range, or one of each family (`--cluster-cidr`).
    pub cluster: String,
    /// The addresses of services, which no node gets (`--service-cluster-ip-range`).
    pub services: String,
    /// The prefix length of the range of a node (`--node-cidr-mask-size`).
    pub mask: i64,
    /// The same for IPv4 (`--node-cidr-mask-size-ipv4`).
    pub mask_ipv4: i64,
    /// The same for IPv6 (`--node-cidr-mask-size-ipv6`).
    pub mask_ipv6: i64,
}

/// The readiness check that fails if the flags make no sense.
const CHECK: &str = "node-ipam-flags";

// === impl Options ===

impl Options {
    /// Returns the options that flags and feature gates set.
    #[must_use]
    pub fn from_flags(flags: &Flags<'_>) -> Self {
        Self {
            allocate: flags.is_on("allocate-node-cidrs", false),
            allocator: flags.text("cidr-allocator-type", plan::RANGE_ALLOCATOR),
            cluster: flags.text("cluster-cidr", ""),
            services: flags.text("service-cluster-ip-range", ""),
            mask: flags.int("node-cidr-mask-size", 0),
            mask_ipv4: flags.int("node-cidr-mask-size-ipv4", 0),
            mask_ipv6: flags.int("node-cidr-mask-size-ipv6", 0),
        }
    }

    /// Sets whether nodes get ranges of pod addresses.
    #[must_use]
    pub fn allocate(mut self, allocate: bool) -> Self {
        self.allocate = allocate;
        self
    }

    /// Sets the pod addresses of the cluster.
    #[must_use]
    pub fn cluster(mut self, cluster: impl Into<String>) -> Self {
        self.cluster = cluster.into();
        self
    }

    /// Sets the addresses of services, which no node gets.
    #[must_use]
    pub fn services(mut self, services: impl Into<String>) -> Self {
        self.services = services.into();
        self
    }

    /// Sets the prefix length of the range of a node.
    #[must_use]
    pub fn mask(mut self, mask: i64) -> Self {
        self.mask = mask;
        self
    }

    /// Sets the prefix length of the IPv4 range of a node.
    #[must_use]
    pub fn mask_ipv4(mut self, mask_ipv4: i64) -> Self {
        self.mask_ipv4 = mask_ipv4;
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::from_flags(&Flags::defaults())
    }
}

#[allow(clippy::needless_pass_by_value, reason = "the signature of every `build` function")]
fn build(cx: &ControllerContext, options: Options) -> Result<Built, Disabled> {
    if !options.allocate {
        return Err(Disabled::because("--allocate-node-cidrs is not set"));
    }
    let metrics = metrics::Metrics::new(cx.metrics())?;
    let ranges = plan::ranges(&options).map_err(|error| disabled(cx, &error))?;
    let memory = memory::Memory::new(&ranges, metrics).map_err(|error| disabled(cx, &error))?;
    let memory = Arc::new(memory);
    let running = metrics::running(cx.metrics())?;
    cx.manager().add(runnable("node-ipam-controller", Group::Leading, move |stop| async move {
        running.set(1);
        stop.cancelled().await;
        running.set(0);
        Ok(())
    }));
    let nodes = cx.informer::<NodeView>();
    let known = Arc::clone(&memory);
    // Ranges in use are known before the first pass: handlers see all nodes before workers start.
    let lister = nodes.lister();
    let nodes_to_serve = move |change: &Change<NodeView>| {
        known.note(change);
        match change {
            // Its ranges are for those that wait.
            Change::Deleted { .. } => map::waiting(&lister.list()),
            _ => map::without_range(change),
        }
    };
    let builder = cx.controller(&nodes).watch_main(nodes_to_serve);
    Ok(builder.reconcile(sync::NodeIpam { nodes: nodes.lister(), memory }))
}

/// Flags that make no sense disable this controller, and the manager is not ready until they are corrected.
fn disabled(cx: &ControllerContext, error: &dyn std::fmt::Display) -> Disabled {
    let why = error.to_string();
    let unhealthy = Unhealthy(why.clone());
    cx.manager().health().add(&[Probe::Readyz], CHECK, move || Err(unhealthy.clone()));
    Disabled::because(why)
}

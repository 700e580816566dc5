//! Pure: the pools of a driver, and how many of their devices are in use.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};
use steersman_base::{Istr, Quantity};
use steersman_model::View;
use steersman_model::core::Taint;
use steersman_model::resource::{
    DeviceTaintRuleView, PooledDevice, PooledSliceView, ResourceClaimView, ResourcePoolStatusRequestView,
};

use super::{partitions, shareable};
use crate::device_taint_eviction::matches_device;

/// The observed devices of a cluster.
pub(super) struct Known<'a> {
    pub(super) slices: &'a [Arc<PooledSliceView>],
    pub(super) claims: &'a [Arc<ResourceClaimView>],
    pub(super) rules: &'a [Arc<DeviceTaintRuleView>],
}

/// A pool, and what of it is in use.
pub(super) struct Pool<'a> {
    pub(super) driver: &'a Istr,
    pub(super) name: &'a Istr,
    /// The slices of its newest generation, by name.
    pub(super) slices: Vec<&'a PooledSliceView>,
    pub(super) usage: Usage<'a>,
    unavailable: usize,
    /// Why the pool, or a part of its status, cannot be computed.
    pub(super) problem: Option<String>,
    partitions: Option<Vec<Value>>,
    shared: Option<Value>,
}

/// The devices of a pool that claims use. Administrators' claims do not count.
#[derive(Default)]
pub(super) struct Usage<'a> {
    pub(super) devices: BTreeSet<&'a Istr>,
    /// The capacity that is used of devices that several may share.
    pub(super) capacity: BTreeMap<&'a Istr, Quantity>,
}

/// The beginning of the problem of a pool whose slices are not all there yet: the only one that time solves.
const INCOMPLETE: &str = "PoolIncomplete:";
/// The longest problem that the API takes, in bytes.
const PROBLEM_MAX: usize = 256;

/// Returns the pools of a request, by name.
pub(super) fn pools<'a>(request: &ResourcePoolStatusRequestView, known: &Known<'a>) -> Vec<Pool<'a>> {
    let mut by_name: BTreeMap<&Istr, Vec<&PooledSliceView>> = BTreeMap::new();
    for slice in known.slices.iter().filter(|slice| slice.spec.driver == request.spec.driver) {
        let name = &slice.spec.pool.name;
        if request.spec.pool_name.as_ref().is_none_or(|wanted| wanted.is_empty() || wanted == name) {
            by_name.entry(name).or_default().push(slice);
        }
    }
    let pools = by_name.into_iter().filter_map(|(name, mut slices)| {
        let generation = slices.iter().map(|slice| slice.spec.pool.generation).max()?;
        slices.retain(|slice| slice.spec.pool.generation == generation);
        slices.sort_by(|a, b| a.meta().name.cmp(&b.meta().name));
        Some(Pool::new(request, name, slices, known))
    });
    pools.collect()
}

fn usage<'a>(driver: &Istr, pool: &Istr, claims: &'a [Arc<ResourceClaimView>]) -> Usage<'a> {
    let mut usage = Usage::default();
    let allocations = claims.iter().filter_map(|claim| claim.status.allocation.as_ref());
    for device in allocations.flat_map(|allocation| &allocation.devices.results) {
        if device.driver != *driver || device.pool != *pool || device.admin_access == Some(true) {
            continue;
        }
        usage.devices.insert(&device.device);
        for (name, amount) in device.consumed_capacity.iter() {
            *usage.capacity.entry(name).or_default() += *amount;
        }
    }
    usage
}

fn is_unavailable(taint: &Taint) -> bool {
    matches!(&*taint.effect, "NoSchedule" | "NoExecute")
}

// === impl Pool ===

impl<'a> Pool<'a> {
    fn new(
        request: &ResourcePoolStatusRequestView,
        name: &'a Istr,
        slices: Vec<&'a PooledSliceView>,
        known: &Known<'a>,
    ) -> Self {
        let driver = &slices[0].spec.driver;
        let mut pool = Self {
            driver,
            name,
            usage: usage(driver, name, known.claims),
            slices,
            unavailable: 0,
            problem: None,
            partitions: None,
            shared: None,
        };
        let first = &pool.slices[0].spec.pool;
        let found = pool.slices.len();
        if i64::try_from(found).unwrap_or(i64::MAX) < first.resource_slice_count {
            let wanted = first.resource_slice_count;
            let generation = first.generation;
            pool.problem = Some(format!(
                "{INCOMPLETE} pool {driver}/{name} is incomplete: observed {found}/{wanted} slices at generation {generation}"
            ));
            return pool;
        }
        let is_tainted = |device: &PooledDevice| {
            let by_rule = |rule: &Arc<DeviceTaintRuleView>| {
                is_unavailable(&rule.spec.taint) && matches_device(rule, driver, name, &device.name)
            };
            device.taints.iter().any(is_unavailable) || known.rules.iter().any(by_rule)
        };
        let free = pool.devices().filter(|device| !pool.usage.devices.contains(&device.name));
        pool.unavailable = free.filter(|device| is_tainted(device)).count();
        let partitions = partitions::summary(&pool, request.spec.default_partition_type_attribute.as_ref());
        let shared = shareable::summary(&pool);
        match (partitions, shared) {
            (Ok(partitions), Ok(shared)) => {
                pool.partitions = partitions;
                pool.shared = shared;
            }
            (Err(problem), shared) => {
                pool.problem = Some(problem);
                pool.shared = shared.unwrap_or_default();
            }
            (Ok(_), Err(problem)) => pool.problem = Some(problem),
        }
        pool
    }

    /// Returns the devices of the pool.
    pub(super) fn devices(&self) -> impl Iterator<Item = &'a PooledDevice> {
        self.slices.iter().flat_map(|slice| &slice.spec.devices)
    }

    /// Whether slices of it are missing: its driver may be about to publish them.
    pub(super) fn is_incomplete(&self) -> bool {
        self.problem.as_ref().is_some_and(|problem| problem.starts_with(INCOMPLETE))
    }

    /// Returns the status of the pool.
    pub(super) fn status(&self) -> Value {
        let spec = &self.slices[0].spec;
        let mut status = json!({ "driver": self.driver, "poolName": self.name, "generation": spec.pool.generation });
        let is_one_node = self.slices.iter().all(|slice| slice.spec.node_name == spec.node_name);
        if let Some(node) = spec.node_name.as_ref().filter(|node| is_one_node && !node.is_empty()) {
            status["nodeName"] = json!(node);
        }
        if let Some(problem) = &self.problem {
            status["validationError"] = json!(problem[..problem.floor_char_boundary(PROBLEM_MAX)]);
        }
        if self.is_incomplete() {
            return status;
        }
        let total = self.devices().count();
        let used = self.devices().filter(|device| self.usage.devices.contains(&device.name)).count();
        status["resourceSliceCount"] = json!(self.slices.len());
        status["totalDevices"] = json!(total);
        status["allocatedDevices"] = json!(self.usage.devices.len());
        status["unavailableDevices"] = json!(self.unavailable);
        status["availableDevices"] = json!(total - used - self.unavailable);
        if let Some(partitions) = &self.partitions {
            status["partitionSummary"] = json!(partitions);
        }
        if let Some(shared) = &self.shared {
            status["shareableSummary"] = shared.clone();
        }
        status
    }
}

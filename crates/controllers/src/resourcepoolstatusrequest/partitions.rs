//! Pure: how many partitions of each type a pool still has room for.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use steersman_base::{Istr, Quantity};
use steersman_model::resource::{CounterConsumption, PooledDevice};

use super::pools::Pool;

/// The most entries that the API takes.
pub(super) const ENTRIES_MAX: usize = 32;

/// An amount of each counter of each set.
type Counters<'a> = BTreeMap<(&'a Istr, &'a Istr), Quantity>;

/// The partitions of one type.
#[derive(Default)]
struct Group<'a> {
    total: usize,
    /// Those that nothing uses.
    free: Vec<&'a PooledDevice>,
    /// The counters that each of them uses.
    cost: Counters<'a>,
}

/// Returns the partitions of a pool by type: how many there are, and how many more could be allocated, each type by itself.
/// `None` if neither the driver nor the request says which attribute is the type.
///
/// # Errors
/// The pool contradicts itself: the text says how, in upstream's words.
pub(super) fn summary(pool: &Pool<'_>, by_request: Option<&Istr>) -> Result<Option<Vec<Value>>, String> {
    let driver = pool.driver;
    let name = pool.name;
    // The attribute of the request is for drivers that declare none at all.
    let mut with_devices = pool.slices.iter().filter(|slice| !slice.spec.devices.is_empty());
    let declares = with_devices.any(|slice| attribute_of(slice).is_some());
    let fallback = by_request.filter(|_| !declares);
    let attributed = pool.slices.iter().flat_map(|slice| {
        let attribute = attribute_of(slice).or(fallback);
        slice.spec.devices.iter().filter_map(move |device| Some((attribute?, device)))
    });
    let attributed: Vec<(&Istr, &PooledDevice)> = attributed.collect();
    if attributed.is_empty() {
        return Ok(None);
    }
    if pool.slices.iter().all(|slice| slice.spec.shared_counters.is_empty()) {
        return Err(format!(
            "PartitionTypeMissing: pool {driver}/{name} declares partitionTypeAttribute but publishes no sharedCounters"
        ));
    }
    let mut groups: BTreeMap<(&Istr, &Istr), Group<'_>> = BTreeMap::new();
    for (attribute, device) in attributed.into_iter().filter(|(_, device)| !device.consumes_counters.is_empty()) {
        let Some(type_) = type_of(device, driver, attribute) else {
            return Err(format!(
                "PartitionTypeMissing: device {:?} in pool {driver}/{name} does not carry partition type attribute {attribute:?}",
                &*device.name
            ));
        };
        let cost = cost(&device.consumes_counters);
        let group = groups.entry((attribute, type_)).or_default();
        if group.total > 0 && group.cost != cost {
            return Err(format!(
                "PartitionCostMismatch: devices of partition type {type_:?} in pool {driver}/{name} consume different counters"
            ));
        }
        group.cost = cost;
        group.total += 1;
        if !pool.usage.devices.contains(&device.name) {
            group.free.push(device);
        }
    }
    if groups.len() > ENTRIES_MAX {
        return Err(format!(
            "PartitionSummaryOverCap: pool {driver}/{name} has {} partition types, exceeding the maximum of {ENTRIES_MAX}",
            groups.len()
        ));
    }
    let left = left(pool);
    let reported = groups.iter().map(|((attribute, type_), group)| {
        let allocatable = group.allocatable(left.clone());
        json!({ "attribute": attribute, "type": type_, "total": group.total, "allocatable": allocatable })
    });
    Ok(Some(reported.collect()))
}

fn attribute_of(slice: &steersman_model::resource::PooledSliceView) -> Option<&Istr> {
    slice.spec.partition_type_attribute.as_ref().filter(|attribute| !attribute.is_empty())
}

/// Returns the type of a partition. An attribute in the domain of its driver may be declared without the domain.
fn type_of<'a>(device: &'a PooledDevice, driver: &str, attribute: &str) -> Option<&'a Istr> {
    let bare = attribute.strip_prefix(driver).and_then(|rest| rest.strip_prefix('/'));
    let found = device.attributes.get(attribute).or_else(|| device.attributes.get(bare?));
    found?.string.as_ref()
}

fn cost(counters: &[CounterConsumption]) -> Counters<'_> {
    let sets = counters.iter().flat_map(|set| set.counters.iter().map(move |(name, counter)| (set, name, counter)));
    sets.map(|(set, name, counter)| ((&set.counter_set, name), counter.value)).collect()
}

/// Returns what devices that are in use leave of the counters. A device counts once, however many claims share it.
fn left<'a>(pool: &Pool<'a>) -> Counters<'a> {
    let sets = pool.slices.iter().flat_map(|slice| &slice.spec.shared_counters);
    let counters =
        sets.flat_map(|set| set.counters.iter().map(move |(name, counter)| ((&set.name, name), counter.value)));
    let mut left: Counters<'_> = counters.collect();
    for device in pool.devices().filter(|device| pool.usage.devices.contains(&device.name)) {
        take(&mut left, &cost(&device.consumes_counters));
    }
    left
}

fn take<'a>(left: &mut Counters<'a>, cost: &Counters<'a>) {
    for (counter, amount) in cost {
        if let Some(left) = left.get_mut(counter) {
            *left -= *amount;
        }
    }
}

// === impl Group ===

impl<'a> Group<'a> {
    /// Returns how many of the free devices the counters suffice for.
    fn allocatable(&self, mut left: Counters<'a>) -> usize {
        let mut count = 0;
        for _ in &self.free {
            let fits = self.cost.iter().all(|(counter, amount)| left.get(counter).is_some_and(|left| left >= amount));
            if !fits {
                break;
            }
            take(&mut left, &self.cost);
            count += 1;
        }
        count
    }
}

//! Pure: topology hints. Each zone gets endpoints in proportion to the CPUs of its nodes, from its own zone where
//! possible.
//!
//! No hints are set where they would do harm: where a node has no zone label or CPU capacity, where there are fewer
//! endpoints than zones, or where an endpoint would be overloaded by more than 20 %.
//!
//! Follows `topologycache/` of k8s.io/endpointslice 0.37.1.

use std::collections::BTreeMap;

use steersman_base::{Istr, names};
use steersman_model::core::NodeView;
use steersman_model::discovery::Endpoint;
use steersman_model::{EndpointSliceView, View};

use super::hints;
use super::map;
use super::packing::Packed;

/// The share of the cluster's CPUs of each zone.
pub(super) type Shares = BTreeMap<Istr, f64>;
/// The number of endpoints assigned to each zone.
pub(super) type Allotted = BTreeMap<Istr, usize>;

/// The number of endpoints that a zone should get.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Allocation {
    maximum: usize,
    desired: f64,
}

/// The maximum overload of an endpoint.
const OVERLOAD_MAX: f64 = 0.2;

/// Returns the shares of the zones; `None` if the zone or capacity of a node is unknown, or there is only one zone.
pub(super) fn shares<'a>(nodes: impl IntoIterator<Item = &'a NodeView>) -> Option<Shares> {
    let mut by_zone: BTreeMap<Istr, i64> = BTreeMap::new();
    for node in nodes.into_iter().filter(|node| !runs_control_plane(node) && map::is_ready(node)) {
        let cpus = node.status.allocatable.get("cpu").map_or(0, |cpus| cpus.milli_value());
        let zone = map::zone(node).filter(|_| cpus > 0)?;
        *by_zone.entry(zone.clone()).or_default() += cpus;
    }
    let total: i64 = by_zone.values().sum();
    if by_zone.len() < 2 || total == 0 {
        return None;
    }
    Some(by_zone.into_iter().map(|(zone, cpus)| (zone, cpus as f64 / total as f64)).collect())
}

/// Whether a service with these endpoints per zone has too few for a zone, given the current shares.
pub(super) fn is_overloaded(allotted: &Allotted, shares: Option<&Shares>) -> bool {
    if allotted.is_empty() {
        return false;
    }
    let Some(shares) = shares else { return true };
    let total: usize = allotted.values().sum();
    shares
        .iter()
        .any(|(zone, share)| allotted.get(zone).is_none_or(|endpoints| *endpoints < minimum(*share * total as f64)))
}

/// Sets hints on all endpoints, and returns the number per zone. If that is not possible, returns upstream's message
/// and changes nothing.
pub(super) fn spread(packed: &mut Packed, shares: Option<&Shares>) -> Result<Allotted, String> {
    let allocations = allocations(packed, shares)?;
    let ready = |endpoint: &&Endpoint| hints::is_ready(endpoint);
    let drafted = packed.drafts.iter().flat_map(|draft| &draft.endpoints);
    let kept = packed.unchanged.iter().flat_map(|slice| &slice.endpoints);
    if drafted.chain(kept).filter(ready).any(|endpoint| endpoint.zone.as_ref().is_none_or(|zone| zone.is_empty())) {
        return Err("One or more endpoints do not have a zone specified".to_owned());
    }
    let mut allotted = keep_good(packed, &allocations);
    // Every endpoint is assigned to its own zone first.
    for endpoint in packed.drafts.iter_mut().flat_map(|draft| &mut draft.endpoints) {
        endpoint.hints =
            endpoint.zone.as_ref().filter(|_| endpoint.conditions.ready == Some(true)).map(hints::for_zone);
        if let (Some(_), Some(zone)) = (&endpoint.hints, &endpoint.zone) {
            *allotted.entry(zone.clone()).or_default() += 1;
        }
    }
    redistribute(packed, &allocations, &mut allotted);
    if allotted.is_empty() {
        return Err("No hints allocated for zones".to_owned());
    }
    Ok(allotted)
}

/// Returns the number of endpoints that each zone should get.
fn allocations(packed: &Packed, shares: Option<&Shares>) -> Result<BTreeMap<Istr, Allocation>, String> {
    let Some(shares) = shares else {
        let why = "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes";
        return Err(why.to_owned());
    };
    let drafted = packed.drafts.iter().flat_map(|draft| &draft.endpoints);
    let kept = packed.unchanged.iter().flat_map(|slice| &slice.endpoints);
    let total = drafted.chain(kept).filter(|endpoint| hints::is_ready(endpoint)).count();
    let figures = format!("({total} endpoints, {} zones)", shares.len());
    if shares.len() > total {
        return Err(format!("Insufficient number of endpoints {figures}"));
    }
    let minima: usize = shares.values().map(|share| minimum(share * total as f64)).sum();
    if minima > total {
        let why = "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold";
        return Err(format!("{why} {figures}"));
    }
    let allocation = |share: f64| {
        let minimum = minimum(share * total as f64);
        Allocation { maximum: minimum + total - minima, desired: (share * total as f64).max(minimum as f64) }
    };
    Ok(shares.iter().map(|(zone, share)| (zone.clone(), allocation(*share))).collect())
}

/// Returns the least number of endpoints that can do the work of `desired` ones without being overloaded.
fn minimum(desired: f64) -> usize {
    // Not negative, and not above the number of endpoints.
    (desired / (1.0 + OVERLOAD_MAX)).ceil() as usize
}

/// Keeps slices with valid hints; the others are written. Returns the number of endpoints per zone in the kept ones.
fn keep_good(packed: &mut Packed, allocations: &BTreeMap<Istr, Allocation>) -> Allotted {
    let mut allotted = Allotted::new();
    hints::rewrite(packed, |slice| match hinted(slice, &allotted, allocations) {
        None => true,
        Some(hinted) => {
            for (zone, count) in hinted {
                *allotted.entry(zone).or_default() += count;
            }
            false
        }
    });
    allotted
}

/// Returns the number of endpoints of a slice per zone; `None` if a hint is missing, names a zone that needs none, or
/// exceeds what the zone needs.
fn hinted(
    slice: &EndpointSliceView,
    allotted: &Allotted,
    allocations: &BTreeMap<Istr, Allocation>,
) -> Option<Allotted> {
    let mut hinted = Allotted::new();
    for endpoint in slice.endpoints.iter().filter(|endpoint| hints::is_ready(endpoint)) {
        let zones = endpoint.hints.as_ref().map(|hints| &hints.for_zones).filter(|zones| !zones.is_empty())?;
        for zone in zones {
            *hinted.entry(zone.name.clone()).or_default() += 1;
        }
    }
    let fits = |(zone, count): (&Istr, &usize)| {
        let before = allotted.get(zone).copied().unwrap_or(0);
        allocations.get(zone).is_some_and(|allocation| before + count <= allocation.maximum)
    };
    hinted.iter().all(fits).then_some(hinted)
}

/// Reassigns endpoints from zones with too many to zones with too few.
fn redistribute(packed: &mut Packed, allocations: &BTreeMap<Istr, Allocation>, allotted: &mut Allotted) {
    let (mut giving, mut receiving) = exchange(allocations, allotted);
    for endpoint in packed.drafts.iter_mut().flat_map(|draft| &mut draft.endpoints) {
        if giving.is_empty() || receiving.is_empty() {
            return;
        }
        let Some(from) = endpoint.zone.clone().filter(|zone| hints::is_ready(endpoint) && giving.contains_key(zone))
        else {
            continue;
        };
        let Some(to) = receiving.keys().next().cloned() else { return };
        endpoint.hints = Some(hints::for_zone(&to));
        take_one(&mut giving, &from);
        take_one(&mut receiving, &to);
        *allotted.entry(to).or_default() += 1;
        take_one(allotted, &from);
    }
}

fn take_one(counts: &mut Allotted, zone: &Istr) {
    if let Some(count) = counts.get_mut(zone) {
        *count -= 1;
        if *count == 0 {
            counts.remove(zone);
        }
    }
}

/// Returns the whole number of endpoints that zones should give and receive.
fn exchange(allocations: &BTreeMap<Istr, Allocation>, allotted: &Allotted) -> (Allotted, Allotted) {
    let surplus = allocations
        .iter()
        .map(|(zone, allocation)| (zone.clone(), allotted.get(zone).copied().unwrap_or(0) as f64 - allocation.desired));
    let (mut over, mut under): (BTreeMap<_, f64>, BTreeMap<_, f64>) = surplus.partition(|(_, surplus)| *surplus > 0.0);
    under.values_mut().for_each(|missing| *missing = -*missing);
    let mut giving = Allotted::new();
    let mut receiving = Allotted::new();
    while let (Some((from, gives)), Some((to, takes))) = (most(&over), most(&under)) {
        if (gives < 1.0 && takes < 1.0) || gives < 0.5 || takes < 0.5 {
            break;
        }
        *giving.entry(from.clone()).or_default() += 1;
        *receiving.entry(to.clone()).or_default() += 1;
        over.insert(from, gives - 1.0);
        under.insert(to, takes - 1.0);
    }
    (giving, receiving)
}

/// Returns the zone with the largest positive number; of several, the first.
fn most(zones: &BTreeMap<Istr, f64>) -> Option<(Istr, f64)> {
    let mut best = None;
    for (zone, number) in zones {
        if *number > best.as_ref().map_or(0.0, |(_, most)| *most) {
            best = Some((zone.clone(), *number));
        }
    }
    best
}

fn runs_control_plane(node: &NodeView) -> bool {
    let labels = &node.meta().labels;
    labels.contains_key(names::labels::NODE_ROLE_CONTROL_PLANE) || labels.contains_key(names::labels::NODE_ROLE_MASTER)
}

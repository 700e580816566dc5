//! Pure: when a pod has to leave because of the taints of its devices.

use std::sync::Arc;
use std::time::Duration;

use steersman_base::{Istr, MicroTime, Uid};
use steersman_model::View;
use steersman_model::core::Taint;
use steersman_model::resource::{
    AllocatedDevice, Device, DeviceTaintRuleView, DeviceTaintSelector, ResourceClaimView, ResourceSliceView,
};

use crate::toleration::{Comparison, tolerates};

/// The time at which a pod is evicted, and the rules that demand it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Eviction {
    pub(super) at: MicroTime,
    /// The rules whose taints the pod does not tolerate, or not for ever; in order.
    pub(super) rules: Vec<Uid>,
}

/// The effect of taints that evict.
const EVICTS: &str = "NoExecute";

/// Whether a taint evicts.
pub(super) fn is_evicting(taint: &Taint) -> bool {
    taint.effect == EVICTS
}

/// Returns a rule as if it evicted: what it would do follows from the tolerations of that effect.
pub(super) fn as_if_evicting(rule: &DeviceTaintRuleView) -> DeviceTaintRuleView {
    let mut evicting = rule.clone();
    evicting.spec.taint.effect = EVICTS.into();
    evicting
}

/// Returns the devices of a claim.
pub(super) fn devices(claim: &ResourceClaimView) -> impl Iterator<Item = &AllocatedDevice> {
    claim.status.allocation.iter().flat_map(|allocation| &allocation.devices.results)
}

/// Whether a rule is about a device of the claim.
pub(super) fn selects(rule: &DeviceTaintRuleView, claim: &ResourceClaimView) -> bool {
    devices(claim).any(|device| matches(rule, &device.driver, &device.pool, &device.device))
}

/// Whether a rule is about a device. A rule without a selector is about none.
pub(crate) fn matches(rule: &DeviceTaintRuleView, driver: &str, pool: &str, device: &str) -> bool {
    let is = |wanted: &Option<Istr>, given: &str| wanted.as_ref().is_none_or(|wanted| *wanted == given);
    let meant = |selector: &DeviceTaintSelector| {
        is(&selector.driver, driver) && is(&selector.pool, pool) && is(&selector.device, device)
    };
    rule.spec.device_selector.as_ref().is_some_and(meant)
}

/// Returns the slices of a pool that count: those of the newest generation.
pub(super) fn newest(slices: &[Arc<ResourceSliceView>]) -> impl Iterator<Item = &Arc<ResourceSliceView>> {
    let generation = slices.iter().map(|slice| slice.spec.pool.generation).max();
    slices.iter().filter(move |slice| Some(slice.spec.pool.generation) == generation)
}

/// Returns a device of a pool.
pub(super) fn find<'a>(slices: &'a [Arc<ResourceSliceView>], name: &str) -> Option<&'a Device> {
    newest(slices).flat_map(|slice| &slice.spec.devices).find(|device| device.name == *name)
}

/// Returns when the users of an allocated device have to leave because of a taint; `None` if they tolerate it for ever. Of
/// several tolerations the shortest counts, and a time is counted from when the taint was added, or from `seen` if it does
/// not say.
pub(super) fn leaves(device: &AllocatedDevice, taint: &Taint, seen: MicroTime) -> Option<MicroTime> {
    let matching = device.tolerations.iter().filter(|toleration| tolerates(toleration, taint, Comparison::Off));
    let mut shortest: Option<u64> = None;
    for toleration in matching {
        let seconds = u64::try_from(toleration.toleration_seconds?).unwrap_or_default();
        shortest = Some(shortest.map_or(seconds, |other| other.min(seconds)));
    }
    let added = taint.time_added.map_or(seen, MicroTime::from);
    Some(added + Duration::from_secs(shortest.unwrap_or_default()))
}

/// Returns when a pod with these claims has to leave; `None` if it may stay. `slices_of` returns the slices of the pool of a
/// device, `rules` are those that evict.
pub(super) fn eviction(
    claims: &[Arc<ResourceClaimView>],
    slices_of: impl Fn(&AllocatedDevice) -> Vec<Arc<ResourceSliceView>>,
    rules: &[Arc<DeviceTaintRuleView>],
    seen: MicroTime,
) -> Option<Eviction> {
    let mut first: Option<MicroTime> = None;
    let mut because = Vec::new();
    for device in claims.iter().flat_map(|claim| devices(claim)) {
        let slices = slices_of(device);
        let own = find(&slices, &device.device).into_iter().flat_map(|found| &found.taints);
        let own = own.filter(|taint| is_evicting(taint)).filter_map(|taint| leaves(device, taint, seen));
        for at in own {
            first = Some(first.map_or(at, |other| other.min(at)));
        }
        for rule in rules.iter().filter(|rule| matches(rule, &device.driver, &device.pool, &device.device)) {
            if let Some(at) = leaves(device, &rule.spec.taint, seen) {
                first = Some(first.map_or(at, |other| other.min(at)));
                because.push(rule.meta().uid.clone());
            }
        }
    }
    because.sort();
    because.dedup();
    first.map(|at| Eviction { at, rules: because })
}

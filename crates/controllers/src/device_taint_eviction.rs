#![doc = include_str!("../docs/device-taint-eviction-controller.md")]
//!
//! Follows `pkg/controller/devicetainteviction` of Kubernetes 1.37.1.

use std::sync::Arc;

use steersman_base::ObjectKey;
use steersman_informer::{Change, Lister, SharedInformer};
use steersman_model::core::PodView;
use steersman_model::resource::{DeviceTaintRuleView, ResourceClaimView, ResourceSliceView};
use steersman_model::{Kind, View};
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext, Disabled, Flags};
use steersman_runtime::Descriptor;
use steersman_runtime::handler::Keys;

use crate::eviction::metrics::Metrics;
use crate::resource_claims::{GroupClaims, group_of};
use crate::table;

mod map;
mod memory;
mod metrics;
mod plan;
mod status;
mod sync;
#[cfg(test)]
mod tests;

pub(crate) use plan::matches as matches_device;
pub use sync::Why;

/// The descriptor of the device taint eviction controller.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "device-taint-eviction-controller",
    needs: const { &[PodView::RESOURCE, ResourceClaimView::RESOURCE, ResourceSliceView::RESOURCE] },
    options: Options::from_flags,
    build,
});

/// Options of the controller, set by feature gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Whether DeviceTaintRules add taints to devices (the gate `DRADeviceTaintRules`).
    pub rules: bool,
    /// Whether pod groups may have claims (the gate `DRAWorkloadResourceClaims`).
    pub workload_claims: bool,
}

/// The queue of rules.
const RULES: &str = "device-taint-eviction-rules";

/// The caches of the controller.
struct Caches {
    pods: SharedInformer<PodView>,
    claims: SharedInformer<ResourceClaimView>,
    slices: SharedInformer<ResourceSliceView>,
    /// Absent if there are no rules.
    rules: Option<SharedInformer<DeviceTaintRuleView>>,
}

// === impl Options ===

impl Options {
    /// Returns the options that feature gates set.
    #[must_use]
    pub fn from_flags(flags: &Flags<'_>) -> Self {
        Self {
            rules: flags.gate("DRADeviceTaintRules", true),
            workload_claims: flags.gate("DRAWorkloadResourceClaims", false),
        }
    }

    /// Sets whether DeviceTaintRules add taints to devices.
    #[must_use]
    pub fn rules(mut self, rules: bool) -> Self {
        self.rules = rules;
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::from_flags(&Flags::defaults())
    }
}

fn build(cx: &ControllerContext, options: Options) -> Result<Built, Disabled> {
    let caches = Caches {
        pods: cx.informer::<PodView>(),
        claims: cx.informer::<ResourceClaimView>(),
        slices: cx.informer::<ResourceSliceView>(),
        rules: options.rules.then(|| cx.informer::<DeviceTaintRuleView>()),
    };
    let observed = Arc::new(sync::Observed {
        pods: caches.pods.lister(),
        claims: caches.claims.lister(),
        slices: caches.slices.shared_index(map::pool_of_slice),
        rules: caches.rules.as_ref().map(SharedInformer::lister),
        members: options.workload_claims.then(|| caches.pods.shared_index(group_of)),
        groups: if options.workload_claims { GroupClaims::On } else { GroupClaims::Off },
    });
    let memory = Arc::new(memory::Memory::default());
    let metrics = Metrics::new(cx.metrics(), &metrics::TEXTS)?;
    let evictions = of_pods(cx, &caches, &observed, &memory, metrics);
    Ok(match &caches.rules {
        None => evictions,
        Some(rules) => evictions.and(of_rules(cx, &caches, rules, observed, memory)),
    })
}

/// Builds the queue of pods: those with tainted devices are evicted.
fn of_pods(
    cx: &ControllerContext,
    caches: &Caches,
    observed: &Arc<sync::Observed>,
    memory: &Arc<memory::Memory>,
    metrics: Metrics,
) -> Built {
    let by_pool = caches.claims.shared_index(map::pools_of_claim);
    let planned = Arc::clone(memory);
    let of_claims = Arc::clone(observed);
    let of_slices = Arc::clone(observed);
    let builder = cx
        .controller(&caches.pods)
        .watch_main(move |change| map::pod(change, |pod| planned.pods.is_planned(pod)))
        .watch(&caches.claims, move |change: &Change<ResourceClaimView>| {
            let users = |claim: &ResourceClaimView| of_claims.users(claim);
            map::users_of_changed(change, users)
        })
        .watch(&caches.slices, move |change: &Change<ResourceSliceView>| -> Vec<ObjectKey> {
            let pool = map::pool_of_slice(change.object())[0].clone();
            if !map::changes_taints(change, || of_slices.slices.get(&pool)) {
                return Vec::new();
            }
            by_pool.get(&pool).iter().flat_map(|claim| of_slices.users(claim)).collect()
        });
    let builder = match &caches.rules {
        None => builder,
        Some(rules) => {
            let of_rules = Arc::clone(observed);
            builder.watch(rules, move |change: &Change<DeviceTaintRuleView>| -> Vec<ObjectKey> {
                let evicting = map::evicting_rules(change);
                if evicting.is_empty() {
                    return Vec::new();
                }
                let claims = of_rules.claims.filter(|claim| evicting.iter().any(|rule| plan::selects(rule, claim)));
                claims.iter().flat_map(|claim| of_rules.users(claim)).collect()
            })
        }
    };
    builder.reconcile(sync::Pods { observed: Arc::clone(observed), memory: Arc::clone(memory), metrics })
}

/// Builds the queue of rules: their status says how many pods they evict.
fn of_rules(
    cx: &ControllerContext,
    caches: &Caches,
    rules: &SharedInformer<DeviceTaintRuleView>,
    observed: Arc<sync::Observed>,
    memory: Arc<memory::Memory>,
) -> Built {
    let forgetting = Arc::clone(&memory);
    let itself = move |change: &Change<DeviceTaintRuleView>| {
        if let Change::Deleted { last, .. } = change {
            forgetting.forget_rule(&last.meta().uid);
        }
        map::changed_rule(change)
    };
    let of_claims = rules.lister();
    let of_pods = Arc::clone(&observed);
    cx.another(RULES, rules)
        .watch_main(itself)
        .watch(&caches.claims, move |change: &Change<ResourceClaimView>| {
            if !map::changes_users(change) {
                return Keys::default();
            }
            let claims: Vec<_> = change.before().into_iter().chain([change.object()]).cloned().collect();
            later(&of_claims, &claims)
        })
        .watch(&caches.pods, move |change: &Change<PodView>| match &of_pods.rules {
            Some(rules) if map::changes_pending(change) => later(rules, &of_pods.claims_of(change.object())),
            _ => Keys::default(),
        })
        .needs_cache(&caches.slices)
        .reconcile(sync::Rules { observed, memory })
}

/// Returns the rules that evict from these claims, to be looked at after a while: others may follow.
fn later(rules: &Lister<DeviceTaintRuleView>, claims: &[Arc<ResourceClaimView>]) -> Keys {
    if claims.is_empty() {
        return Keys::default();
    }
    let found = rules
        .filter(|rule| plan::is_evicting(&rule.spec.taint) && claims.iter().any(|claim| plan::selects(rule, claim)));
    Keys::after(found.iter().map(|rule| rule.meta().key()), status::PERIOD)
}

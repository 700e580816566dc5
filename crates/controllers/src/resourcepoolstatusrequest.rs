#![doc = include_str!("../docs/resourcepoolstatusrequest-controller.md")]
//!
//! Follows `pkg/controller/resourcepoolstatusrequest` of Kubernetes 1.37.1.

use std::time::Duration;

use steersman_base::ObjectKey;
use steersman_informer::{Change, SharedInformer};
use steersman_model::resource::{
    DeviceTaintRuleView, PooledSliceView, ResourceClaimView, ResourcePoolStatusRequestView,
};
use steersman_model::{Kind, View};
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext, Disabled, Flags};
use steersman_runtime::{Descriptor, source};

use crate::table;

mod metrics;
mod partitions;
mod plan;
mod pools;
mod shareable;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::Why;

/// The descriptor of the controller of pool status requests.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "resourcepoolstatusrequest-controller",
    needs: const { &[ResourcePoolStatusRequestView::RESOURCE, PooledSliceView::RESOURCE, ResourceClaimView::RESOURCE] },
    options: Options::from_flags,
    build,
});

/// Options of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Whether DeviceTaintRules make devices unavailable (the gate `DRADeviceTaintRules`).
    pub rules: bool,
    /// The period in which old requests are looked for.
    pub clean_every: Duration,
}

/// The queue of the clean-up.
const CLEANER: &str = "resourcepoolstatusrequest-cleaner";
/// The only key of the clean-up: a pass concerns all requests.
const PASS: &str = "all-requests";

// === impl Options ===

impl Options {
    /// Returns the options that feature gates set.
    #[must_use]
    pub fn from_flags(flags: &Flags<'_>) -> Self {
        Self { rules: flags.gate("DRADeviceTaintRules", true), clean_every: Duration::from_secs(600) }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::from_flags(&Flags::defaults())
    }
}

fn build(cx: &ControllerContext, options: Options) -> Result<Built, Disabled> {
    let requests = cx.informer::<ResourcePoolStatusRequestView>();
    let slices = cx.informer::<PooledSliceView>();
    let claims = cx.informer::<ResourceClaimView>();
    let rules = options.rules.then(|| cx.informer::<DeviceTaintRuleView>());

    let waiting = requests.lister();
    let builder = cx
        .controller(&requests)
        .watch_main(plan::new_request)
        .watch(&slices, move |change: &Change<PooledSliceView>| -> Vec<ObjectKey> {
            let driver = &change.object().spec.driver;
            let found = waiting.filter(|request| plan::is_pending(request) && request.spec.driver == *driver);
            found.iter().map(|request| request.meta().key()).collect()
        })
        .needs_cache(&claims);
    let builder = match &rules {
        None => builder,
        Some(rules) => builder.needs_cache(rules),
    };
    let answered = builder.reconcile(sync::Requests {
        requests: requests.lister(),
        slices: slices.lister(),
        claims: claims.lister(),
        rules: rules.as_ref().map(SharedInformer::lister),
        metrics: metrics::Metrics::new(cx.metrics())?,
    });
    let passes = source::ticker(options.clean_every, || vec![ObjectKey::cluster(PASS)]).immediately();
    let cleaner = cx.another(CLEANER, &requests).without_main_watch().source(passes).needs_cache(&requests);
    Ok(answered.and(cleaner.reconcile(sync::Cleaner { requests: requests.lister() })))
}

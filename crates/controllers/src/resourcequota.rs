#![doc = include_str!("../docs/resourcequota-controller.md")]
//!
//! Follows `pkg/controller/resourcequota` and `pkg/quota/v1` of Kubernetes 1.37.1.

use std::sync::Arc;
use std::time::Duration;

use steersman_informer::Change;
use steersman_model::Kind;
use steersman_model::core::{PersistentVolumeClaimView, PodView, ResourceQuotaView, ServiceView};
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext, Flags};
use steersman_runtime::handler::Keys;
use steersman_runtime::manager::runnable;
use steersman_runtime::source;
use steersman_runtime::{Descriptor, Group};

use crate::table;

mod map;
mod memory;
mod plan;
mod sync;
#[cfg(test)]
mod tests;
mod usage;

use memory::Monitored;
pub use sync::Why;
#[doc(hidden)]
pub use usage::of_pods;

/// The descriptor of the resourcequota controller.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "resourcequota-controller",
    needs: const {
        &[ResourceQuotaView::RESOURCE, PodView::RESOURCE, ServiceView::RESOURCE, PersistentVolumeClaimView::RESOURCE]
    },
    options: Options::from_flags,
    build,
});

/// The queue of quotas whose status lacks limits or usage: its name, and its number in the row.
const URGENT: (&str, usize) = ("resourcequota-priority", 1);

/// Options of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The period at which all quotas are counted again; zero for never: `--resource-quota-sync-period`.
    pub resync: Duration,
    /// Whether pods are charged for resources at pod level: `PodLevelResources`.
    pub pod_level_resources: bool,
}

// === impl Options ===

impl Options {
    /// Returns the options that flags and feature gates set.
    #[must_use]
    pub fn from_flags(flags: &Flags<'_>) -> Self {
        Self {
            resync: flags.duration("resource-quota-sync-period", Duration::from_secs(300)),
            pod_level_resources: flags.gate("PodLevelResources", true),
        }
    }

    /// Sets whether pods are charged for resources at pod level.
    #[must_use]
    pub fn pod_level_resources(mut self, pod_level_resources: bool) -> Self {
        self.pod_level_resources = pod_level_resources;
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::from_flags(&Flags::defaults())
    }
}

fn build(cx: &ControllerContext, options: Options) -> Built {
    let quotas = cx.informer::<ResourceQuotaView>();
    let caches = sync::Caches {
        quotas: quotas.lister(),
        pods: cx.informer::<PodView>(),
        services: cx.informer::<ServiceView>(),
        claims: cx.informer::<PersistentVolumeClaimView>(),
    };
    let monitored = Arc::new(Monitored::default());
    let monitors = sync::Monitors::new(cx, &quotas, &caches, &monitored);
    let shell = sync::Quotas { caches, monitored: Arc::clone(&monitored), options };
    let when = |is_urgent: bool| {
        move |change: &Change<ResourceQuotaView>| {
            let is_due = map::is_counted_again(change) && map::is_urgent(change.object()) == is_urgent;
            if is_due { Keys::after([change.key()], Duration::ZERO) } else { Keys::default() }
        }
    };
    let begun = Arc::clone(&monitored);
    let freed = source::task(move |feed, stop| async move {
        begun.begin(feed);
        stop.cancelled().await;
    });
    let mut usual = cx.controller(&quotas).watch_main(when(false)).source(freed);
    if !options.resync.is_zero() {
        let all = quotas.lister();
        usual = usual.source(source::ticker(options.resync, move || map::keys(&all.list())));
    }
    let (name, number) = URGENT;
    let urgent = cx.another(name, &quotas).queue(number).watch_main(when(true)).reconcile(shell.clone());
    cx.add(runnable("resourcequota-monitors", Group::Caches, move |stop| monitors.run(stop)));
    usual.reconcile(shell).and(urgent)
}

#![doc = include_str!("../docs/namespace-controller.md")]
//!
//! Follows `pkg/controller/namespace` of Kubernetes 1.37.1.

use std::sync::Arc;
use std::time::Duration;

use steersman_base::ObjectKey;
use steersman_informer::{Change, MetaSource, Selection, SharedInformer};
use steersman_model::Kind;
use steersman_model::core::{NamespaceView, PodView};
use steersman_runtime::__internal::descriptor::{ApiServers, Built, BuiltIn, ControllerContext, Flags};
use steersman_runtime::handler::Keys;
use steersman_runtime::source::{self, Source};
use steersman_runtime::{BuildContext, Descriptor};
use steersman_workqueue::Priority;

use crate::table;

mod content;
mod map;
mod memory;
mod plan;
mod pods;
mod status;
mod sync;
#[cfg(test)]
mod tests;

use memory::LastPods;
pub use sync::Why;

/// The descriptor of the namespace controller.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "namespace-controller",
    needs: const { &[NamespaceView::RESOURCE] },
    options: Options::from_flags,
    build,
});

/// Options of the controller, set by flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The delay between the deletion of a namespace and the first pass. Upstream waits 5 s ([`FIRST_PASS_AFTER`]), so
    /// that all of several API servers know of the deletion and refuse creates; a single one knows at once.
    pub first_pass_after: Duration,
    /// The period in which every terminating namespace is reconciled without an event (`--namespace-sync-period`).
    pub sync_period: Duration,
}

/// Upstream's delay before the first pass: for clusters with several API servers.
pub const FIRST_PASS_AFTER: Duration = Duration::from_secs(5);
const SYNC_PERIOD: Duration = Duration::from_secs(300);

// === impl Options ===

impl Options {
    /// Returns the options that flags and feature gates set.
    #[must_use]
    pub fn from_flags(flags: &Flags<'_>) -> Self {
        Self {
            first_pass_after: match flags.api_servers() {
                ApiServers::One => Duration::ZERO,
                ApiServers::Several => FIRST_PASS_AFTER,
            },
            sync_period: flags.duration("namespace-sync-period", SYNC_PERIOD),
        }
    }

    /// Sets the delay between the deletion of a namespace and the first pass.
    #[must_use]
    pub fn first_pass_after(mut self, first_pass_after: Duration) -> Self {
        self.first_pass_after = first_pass_after;
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::from_flags(&Flags::defaults())
    }
}

fn build(cx: &ControllerContext, options: Options) -> Built {
    let namespaces = informer(cx);
    let last_pods = Arc::new(LastPods::default());
    let wait = options.first_pass_after;
    let terminating = move |change: &Change<NamespaceView>| Keys::after(map::terminating(change), wait);
    cx.controller(&namespaces)
        .watch_main(terminating)
        .resync(options.sync_period)
        .source(last_pods_source(cx, &last_pods))
        .reconcile(sync::Namespaces {
            mapper: cx.manager().mapper().clone(),
            namespaces: namespaces.lister(),
            last_pods,
        })
}

/// Returns the informer of namespaces: of all, or of the manager's own.
pub(crate) fn informer(cx: &BuildContext) -> SharedInformer<NamespaceView> {
    match cx.informers.namespace() {
        None => cx.informers.informer(),
        Some(name) => cx.informers.informer_in(Selection::everything().with_fields(&format!("metadata.name={name}"))),
    }
}

/// Enqueues a namespace that waits for its pods when the last one is deleted.
fn last_pods_source(cx: &BuildContext, last_pods: &Arc<LastPods>) -> Source {
    let metadata = cx.informers.meta(&PodView::RESOURCE);
    let last_pods = Arc::clone(last_pods);
    source::task(move |feed, stop| async move {
        let _subscription = metadata.subscribe_meta(Box::new(move |change| {
            if let Some(emptied) = last_pods.note(change) {
                feed.add_all(&[ObjectKey::cluster(&emptied)], Priority::Live);
            }
        }));
        stop.cancelled().await;
    })
}

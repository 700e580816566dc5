//! The namespace controller: what is in a deleted namespace goes, and then the namespace does.
//!
//! 1. Everything that lives in namespaces and can be deleted is deleted, of every kind that the server knows at that
//!    moment: the pods first, and the rest when no pod is left, so that nothing runs without what it relies on.
//! 2. What cannot be asked does not stop what can: a kind whose API is broken leaves all others to be deleted. The
//!    namespace waits, and its conditions say for what.
//! 3. Five conditions tell what stands in the way, with counts per resource and per finalizer.
//! 4. Nothing is decided from a cache: the namespace and its content are read from the server, and what was deleted is
//!    looked at again before the namespace is let go.
//! 5. While others have something to finish, nothing is asked of them twice.
//! 6. The namespace is looked at again after half of what the pods were given to end, and a second; as soon as its last
//!    pod is gone; and, after a failure, at least once a minute.
//!
//! Follows `pkg/controller/namespace` of Kubernetes 1.37.1.

use std::sync::Arc;
use std::time::Duration;

use steersman_base::ObjectKey;
use steersman_informer::{Change, MetaSource, Scope, SharedInformer};
use steersman_model::Kind;
use steersman_model::core::{NamespaceView, PodView};
use steersman_runtime::handler::Keys;
use steersman_runtime::source::{self, Source};
use steersman_runtime::{Build, BuildContext, Descriptor, Enabled, Stage, Workers};
use steersman_workqueue::Priority;
use steersman_workqueue::limiter::{Bucket, Exponential, MaxOf};

mod conditions;
mod content;
mod map;
mod pods;
mod sync;
#[cfg(test)]
mod tests;
mod work;

use pods::LastPods;
pub use sync::Why;

/// The controller's row.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "namespace-controller",
    aliases: &["namespace"],
    account: "namespace-controller",
    default: Enabled::Yes,
    gates: &[],
    needs: &[NamespaceView::RESOURCE],
    workers: Workers::flag("concurrent-namespace-syncs", 10),
    stage: Stage::Normal,
    build,
};

/// What flags say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How long a deleted namespace is left alone first. Upstream waits for 5 s ([`FIRST_PASS_AFTER`]), so that all of
    /// several API servers know of the deletion and let nothing more be created; a single one knows at once.
    pub first_pass_after: Duration,
    /// How often every terminating namespace is looked at anyway (`--namespace-sync-period`).
    pub sync_period: Duration,
}

/// How long upstream leaves a deleted namespace alone: for clusters with several API servers.
pub const FIRST_PASS_AFTER: Duration = Duration::from_secs(5);
const SYNC_PERIOD: Duration = Duration::from_secs(300);
/// Upstream's: a namespace that could not be emptied is tried again within a minute, whatever happens.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(60));
/// Upstream's: how many retries there are per second, over all namespaces, and in a burst.
const RETRIES: (f64, u32) = (10.0, 100);

fn build(cx: &BuildContext, workers: usize) -> Build {
    let options = cx.options::<Options>();
    let namespaces = informer(cx);
    let last_pods = Arc::new(LastPods::default());
    let wait = options.first_pass_after;
    let terminating = move |change: &Change<NamespaceView>| Keys::after(map::terminating(change), wait);
    cx.controller_on(DESCRIPTOR.name, &namespaces)
        .queue_name("namespace")
        .watch_main(terminating)
        .resync(options.sync_period)
        .source(tell_of_last_pods(cx, &last_pods))
        .limiter(MaxOf(Exponential::new(BACK_OFF.0, BACK_OFF.1), Bucket::new(RETRIES.0, RETRIES.1)))
        .workers(workers)
        .reconcile_with(sync::Namespaces {
            client: cx.client.clone(),
            mapper: cx.manager().mapper().clone(),
            namespaces: namespaces.lister(),
            last_pods,
        });
    Build::Enabled
}

/// The informer of namespaces: of all, or of the one that the manager works in.
pub(crate) fn informer(cx: &BuildContext) -> SharedInformer<NamespaceView> {
    match cx.informers.namespace() {
        None => cx.informers.informer(),
        Some(name) => cx.informers.informer_in(Scope::everything().with_fields(&format!("metadata.name={name}"))),
    }
}

/// Looks again at a namespace that waits for its pods when the last one is gone, not only when it may be.
fn tell_of_last_pods(cx: &BuildContext, last_pods: &Arc<LastPods>) -> Source {
    let (metadata, last_pods) = (cx.informers.meta(&PodView::RESOURCE), Arc::clone(last_pods));
    source::task(move |feed, stop| async move {
        let _subscription = metadata.subscribe_meta(Box::new(move |change| {
            if let Some(emptied) = last_pods.note(change) {
                feed.add_all(&[ObjectKey::cluster(&emptied)], Priority::Live);
            }
        }));
        stop.cancelled().await;
    })
}

// === impl Options ===

impl Default for Options {
    fn default() -> Self {
        Self { first_pass_after: Duration::ZERO, sync_period: SYNC_PERIOD }
    }
}

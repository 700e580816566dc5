//! Workloads that a quota has refused are reconciled as soon as a quota of their namespace has room: retries with back-off
//! are a quarter of an hour apart after some hours (upstream 136853).

mod map;
#[cfg(test)]
mod tests;

use steersman_base::ObjectKey;
use steersman_informer::Lister;
use steersman_model::View;
use steersman_model::core::ResourceQuotaView;
use steersman_runtime::__internal::descriptor::ControllerContext;
use steersman_runtime::source::{self, Source};
use steersman_workqueue::Priority;

/// Returns the source of a controller whose objects a quota may refuse: it enqueues the owners of a namespace that lack some
/// when a quota there gets room. It never delays the start of the controller.
pub(crate) fn room<V: View>(cx: &ControllerContext, owners: Lister<V>, lacks: fn(&V) -> bool) -> Source {
    let quotas = cx.informer::<ResourceQuotaView>();
    source::task(move |feed, stop| async move {
        let subscription = quotas.subscribe(move |change| {
            if map::makes_room(change) {
                let namespace = &change.object().meta().namespace;
                let waiting = owners.namespace(namespace).filter(lacks);
                let mut keys: Vec<ObjectKey> = waiting.iter().map(|owner| owner.meta().key()).collect();
                keys.sort();
                feed.add_all(&keys, Priority::Live);
            }
        });
        stop.cancelled().await;
        subscription.close().await;
    })
}

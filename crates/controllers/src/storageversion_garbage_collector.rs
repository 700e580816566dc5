#![doc = include_str!("../docs/storageversion-garbage-collector-controller.md")]
//!
//! Follows `pkg/controller/storageversiongc` of Kubernetes 1.37.1.

use steersman_base::Meta;
use steersman_informer::Selection;
use steersman_model::Kind;
use steersman_model::apiserverinternal::StorageVersionView;
use steersman_model::coordination::LeaseView;
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext};
use steersman_runtime::Descriptor;

use crate::table;

mod map;
mod plan;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::Why;

/// The descriptor of the collector of storage versions.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "storageversion-garbage-collector-controller",
    needs: const { &[StorageVersionView::RESOURCE, LeaseView::RESOURCE] },
    options: |_| (),
    build,
});

/// The name of the second queue's controller: storage versions that name API servers without a Lease.
pub const STORAGE_VERSIONS: &str = "storageversion-garbage-collector-storageversions";

fn build(cx: &ControllerContext, (): ()) -> Built {
    let selector = format!("{}={}", plan::IDENTITY_LABEL, plan::KUBE_APISERVER);
    let of_servers = Selection::namespace(plan::LEASES_IN).with_labels(&selector);
    let leases = cx.informers.informer_for::<Meta>(LeaseView::RESOURCE, of_servers);
    let versions = cx.informer::<StorageVersionView>();
    let alive = leases.lister();
    cx.controller(&leases).watch_main(map::deleted_lease).reconcile(sync::DeadServers).and(
        cx.another(STORAGE_VERSIONS, &versions)
            .queue(1)
            .needs_cache(&leases)
            .watch_main(move |change| map::version_to_check(change, |server| alive.get(&plan::lease(server)).is_some()))
            .reconcile(sync::UnknownServers),
    )
}

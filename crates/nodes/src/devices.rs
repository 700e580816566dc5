//! The driver of devices: claims get devices, without hardware.
//!
//! 1. [`DevicesOptions::count`] devices of the driver [`DRIVER`] are published in one slice, which all nodes have access to, and
//!    a class of them, [`CLASS`].
//! 2. A claim that a pod uses which is to be scheduled gets the first free devices: first the finalizer, then the allocation
//!    and the reservation for the pod, as kube-scheduler writes them. Two claims never have one device.
//! 3. A pod is scheduled when all its claims are allocated, and says so while it waits, in upstream's words.
//! 4. Claims that ask for more than a number of devices of the class (selectors, constraints, alternatives, all devices, access
//!    for administration) are left alone, and so are claims of other classes: another driver may be there for them.
//! 5. A device that a rule taints (`NoSchedule`, `NoExecute`) is given to claims that tolerate it only.
//! 6. Devices are free again when their claim is not allocated any more, which is resourceclaim-controller's to do.
//!
//! Follows `pkg/scheduler/framework/plugins/dynamicresources` of Kubernetes 1.37.1 in what it writes.

use std::sync::Arc;

use steersman_base::ObjectKey;
use steersman_informer::{Change, SharedInformer};
use steersman_model::View;
use steersman_model::resource::ResourceClaimView;
use steersman_runtime::handler::Keys;
use steersman_runtime::{BuildContext, Controller};

use crate::view::SimPodView;

mod memory;
mod object;
mod plan;
mod sync;
#[cfg(test)]
mod tests;

pub(crate) use plan::{claims_of, has_new_claims, lacking};
pub use sync::Why;

/// The name of the driver.
pub const DRIVER: &str = "nodes.steersman.dev";
/// The name of the class of its devices.
pub const CLASS: &str = "simulated.steersman.dev";

/// The options of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DevicesOptions {
    /// The number of devices; the API takes 128 in a slice.
    pub count: usize,
}

impl Default for DevicesOptions {
    fn default() -> Self {
        Self { count: 8 }
    }
}

impl DevicesOptions {
    /// Sets the number of devices.
    #[must_use]
    pub fn count(mut self, count: usize) -> Self {
        self.count = count;
        self
    }
}

/// The key that stands for the class and the slice.
fn published() -> ObjectKey {
    ObjectKey::cluster("published")
}

pub(crate) fn build(cx: &BuildContext, pods: &SharedInformer<SimPodView>, options: DevicesOptions) -> Controller {
    let claims = cx.informers.informer::<ResourceClaimView>();
    let waiting = claims.lister();
    let of_claims = move |change: &Change<ResourceClaimView>| {
        let mut keys = Keys::from(change.key());
        if plan::frees(change) {
            let others = waiting.filter(|claim| claim.status.allocation.is_none());
            others.iter().for_each(|claim| keys.add(claim.meta().key()));
        }
        keys
    };
    let builder = cx
        .controller_on("simulated-devices", &claims)
        .queue_name("devices")
        .watch_main(of_claims)
        .watch(pods, |change: &Change<SimPodView>| claims_of(change.object()));
    let controller = builder.reconcile_with(sync::Devices {
        claims: claims.lister(),
        users: pods.index(claims_of),
        taken: Arc::default(),
        options,
    });
    controller.trigger(published());
    controller
}

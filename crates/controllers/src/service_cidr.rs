#![doc = include_str!("../docs/service-cidr-controller.md")]
//!
//! Follows `pkg/controller/servicecidrs` and `pkg/api/servicecidr` of Kubernetes 1.37.1.

use steersman_model::Kind;
use steersman_model::networking::{IpAddressView, ServiceCidrView};
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext};
use steersman_runtime::Descriptor;

use crate::table;

mod map;
mod plan;
mod ranges;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::Why;

/// The descriptor of the controller of Service ranges.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "service-cidr-controller",
    needs: const { &[ServiceCidrView::RESOURCE, IpAddressView::RESOURCE] },
    options: |_| (),
    build,
});

fn build(cx: &ControllerContext, (): ()) -> Built {
    let ranges = cx.informer::<ServiceCidrView>();
    let addresses = cx.informer::<IpAddressView>();
    // Few ranges terminate at a time, and only they wait for addresses and for other ranges.
    let terminating = ranges.index(|range: &ServiceCidrView| range.metadata.is_terminating().then_some(()));
    let waiting = terminating.clone();
    cx.controller(&ranges)
        .watch_main(move |change| map::ranges_to_check(change, &terminating.get(&())))
        .watch(&addresses, move |change| map::ranges_of_address(change, &waiting.get(&())))
        .reconcile(sync::ServiceRanges { ranges: ranges.lister(), addresses: addresses.lister() })
}

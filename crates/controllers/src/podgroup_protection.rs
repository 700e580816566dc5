#![doc = include_str!("../docs/podgroup-protection-controller.md")]
//!
//! Follows `pkg/controller/scheduling/podgroupprotection` of Kubernetes 1.37.1.

use steersman_model::Kind;
use steersman_model::core::PodView;
use steersman_model::scheduling::PodGroupView;
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext};
use steersman_runtime::Descriptor;

use crate::table;

mod map;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::Why;

/// The descriptor of the pod group protection controller.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "podgroup-protection-controller",
    needs: const { &[PodGroupView::RESOURCE, PodView::RESOURCE] },
    options: |_| (),
    build,
});

fn build(cx: &ControllerContext, (): ()) -> Built {
    let groups = cx.informer::<PodGroupView>();
    let pods = cx.informer::<PodView>();
    cx.controller(&groups)
        .watch_main(map::group)
        .watch(&pods, map::group_of_pod)
        .reconcile(sync::GroupProtection { groups: groups.lister(), members: pods.shared_index(map::active_member) })
}

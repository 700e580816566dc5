#![doc = include_str!("../docs/clusterrole-aggregation-controller.md")]
//!
//! Follows `pkg/controller/clusterroleaggregation` of Kubernetes 1.37.1.

use steersman_model::Kind;
use steersman_model::rbac::ClusterRoleView;
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext};
use steersman_runtime::Descriptor;

use crate::table;

mod map;
mod plan;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::Why;

/// The descriptor of the role aggregation controller.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "clusterrole-aggregation-controller",
    needs: const { &[ClusterRoleView::RESOURCE] },
    options: |_| (),
    build,
});

fn build(cx: &ControllerContext, (): ()) -> Built {
    let roles = cx.informer::<ClusterRoleView>();
    let aggregated = roles.index(|role: &ClusterRoleView| role.aggregation_rule.is_some().then_some(()));
    cx.controller(&roles)
        .watch_main(move |change| map::roles_to_check(change, &aggregated.get(&())))
        .reconcile(sync::Aggregation { roles: roles.lister() })
}

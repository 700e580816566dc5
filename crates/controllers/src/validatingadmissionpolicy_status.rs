#![doc = include_str!("../docs/validatingadmissionpolicy-status-controller.md")]
//!
//! Follows `pkg/controller/validatingadmissionpolicystatus` of Kubernetes 1.37.1, and of `k8s.io/apiserver` 0.37.1
//! `pkg/admission/plugin/policy/validating/typechecking.go` and `pkg/cel/openapi/resolver`.

use steersman_model::Kind;
use steersman_model::admissionregistration::ValidatingAdmissionPolicyView;
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext};
use steersman_runtime::Descriptor;

use crate::table;

mod kinds;
mod map;
mod openapi;
mod plan;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::Why;

/// The descriptor of the controller of policy statuses.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "validatingadmissionpolicy-status-controller",
    needs: const { &[ValidatingAdmissionPolicyView::RESOURCE] },
    options: |_| (),
    build,
});

fn build(cx: &ControllerContext, (): ()) -> Built {
    let policies = cx.informer::<ValidatingAdmissionPolicyView>();
    let mapper = cx.manager().mapper().clone();
    cx.controller(&policies)
        .watch_main(map::unchecked)
        .reconcile(sync::PolicyStatus { policies: policies.lister(), mapper })
}

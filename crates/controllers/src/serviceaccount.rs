#![doc = include_str!("../docs/serviceaccount-controller.md")]
//!
//! Follows `pkg/controller/serviceaccount/serviceaccounts_controller.go` of Kubernetes 1.37.1.

use steersman_model::Kind;
use steersman_model::core::{NamespaceView, ServiceAccountView};
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext};
use steersman_runtime::Descriptor;

use crate::{namespace, table};

mod map;
mod plan;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::Why;

/// The descriptor of the serviceaccount controller.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "serviceaccount-controller",
    needs: const { &[NamespaceView::RESOURCE, ServiceAccountView::RESOURCE] },
    options: |_| (),
    build,
});

/// The account of pods that name none.
const DEFAULT: &str = "default";

fn build(cx: &ControllerContext, (): ()) -> Built {
    let namespaces = namespace::informer(cx);
    let accounts = cx.informer::<ServiceAccountView>();
    cx.controller(&namespaces)
        .watch(&accounts, map::namespace_of)
        .reconcile(sync::ServiceAccounts { namespaces: namespaces.lister(), accounts: accounts.lister() })
}

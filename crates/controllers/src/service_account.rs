//! The service account controller: every namespace has an account called `default`.
//!
//! 1. An active namespace gets its account when it is made, and again when somebody deletes it.
//! 2. A namespace that is going away gets nothing.
//!
//! Follows `pkg/controller/serviceaccount/serviceaccounts_controller.go` of Kubernetes 1.37.1.

use steersman_base::ObjectKey;
use steersman_informer::Change;
use steersman_model::core::{NamespaceView, ServiceAccountView};
use steersman_model::{Kind, View};
use steersman_runtime::{Build, BuildContext, Descriptor, Enabled, Stage, Workers};

use crate::namespace;

mod sync;

pub use sync::Why;

/// The controller's row.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "serviceaccount-controller",
    aliases: &["serviceaccount"],
    account: "service-account-controller",
    default: Enabled::Yes,
    gates: &[],
    needs: &[NamespaceView::RESOURCE, ServiceAccountView::RESOURCE],
    workers: Workers::fixed(1),
    stage: Stage::Normal,
    build,
};

/// The account that pods have if they ask for none.
const DEFAULT: &str = "default";

fn build(cx: &BuildContext, workers: usize) -> Build {
    let namespaces = namespace::informer(cx);
    let accounts = cx.informers.informer::<ServiceAccountView>();
    let namespace_of_deleted = |change: &Change<ServiceAccountView>| match change {
        Change::Deleted { last, .. } if last.meta().name == DEFAULT => Some(ObjectKey::cluster(&last.meta().namespace)),
        _ => None,
    };
    cx.controller_on(DESCRIPTOR.name, &namespaces)
        .queue_name("serviceaccount")
        .watch(&accounts, namespace_of_deleted)
        .workers(workers)
        .reconcile_with(sync::ServiceAccounts { namespaces: namespaces.lister(), accounts: accounts.lister() });
    Build::Enabled
}

#![doc = include_str!("../docs/bootstrap-signer-controller.md")]
//!
//! Follows `pkg/controller/bootstrap/bootstrapsigner.go` and `k8s.io/cluster-bootstrap/token/jws` of Kubernetes 1.37.1.

use steersman_informer::Selection;
use steersman_model::Kind;
use steersman_model::core::{BootstrapTokenView, ConfigMapView};
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext};
use steersman_runtime::Descriptor;

use crate::{bootstrap_token, table};

mod map;
mod plan;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::Why;

/// The descriptor of the signer of the cluster's information for new nodes.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "bootstrap-signer-controller",
    needs: const { &[ConfigMapView::RESOURCE, BootstrapTokenView::RESOURCE] },
    options: |_| (),
    build,
});

/// The ConfigMap that is signed.
const NAMESPACE: &str = "kube-public";
const NAME: &str = "cluster-info";

fn build(cx: &ControllerContext, (): ()) -> Built {
    let of_this_name = Selection::namespace(NAMESPACE).with_fields(&format!("metadata.name={NAME}"));
    let maps = cx.informers.informer_in::<ConfigMapView>(of_this_name);
    let tokens = bootstrap_token::informer(cx);
    let builder = cx.controller(&maps).watch_main(map::changed_map).watch(&tokens, map::changed_token);
    builder.reconcile(sync::BootstrapSigner { maps: maps.lister(), tokens: tokens.lister() })
}

#![doc = include_str!("../docs/certificatesigningrequest-approving-controller.md")]
//!
//! Follows `pkg/controller/certificates/approver` of Kubernetes 1.37.1.

use steersman_model::Kind;
use steersman_model::certificates::CertificateSigningRequestView;
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext};
use steersman_runtime::Descriptor;

use crate::{certificates, table};

mod plan;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::Why;

/// The descriptor of the controller that approves certificates of kubelets.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "certificatesigningrequest-approving-controller",
    needs: const { &[CertificateSigningRequestView::RESOURCE] },
    options: |_| (),
    build,
});

fn build(cx: &ControllerContext, (): ()) -> Built {
    let requests = cx.informer::<CertificateSigningRequestView>();
    let reviews = sync::Reviews::new(cx.client.clone());
    let builder = cx.controller(&requests).watch_main(certificates::unissued);
    builder.reconcile(sync::Approving { requests: requests.lister(), reviews })
}

#![doc = include_str!("../docs/kube-apiserver-serving-clustertrustbundle-publisher-controller.md")]
//!
//! Follows `pkg/controller/certificates/clustertrustbundlepublisher` of Kubernetes 1.37.1.

use std::sync::Arc;

use steersman_base::ObjectKey;
use steersman_informer::{Change, Selection};
use steersman_model::Kind;
use steersman_model::certificates::ClusterTrustBundleView;
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext, Disabled, Flags};
use steersman_runtime::{Descriptor, source};
use steersman_workqueue::Priority;

use crate::{root_ca_certificate_publisher, table};

mod metrics;
mod plan;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::Why;

/// The descriptor of the publisher of the API server's certificate authority.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "kube-apiserver-serving-clustertrustbundle-publisher-controller",
    needs: const { &[ClusterTrustBundleView::RESOURCE] },
    options: Options::from_flags,
    build,
});

/// Options of the controller, set by flags.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The published certificates, as PEM (`--root-ca-file`, else the certificate authority of the kubeconfig). Without
    /// any, the controller does not run.
    pub root_ca: Option<Arc<str>>,
}

/// The signer of the API server's certificate.
const SIGNER: &str = "kubernetes.io/kube-apiserver-serving";
/// The only key: all bundles of the signer.
const KEY: &str = "bundles";

// === impl Options ===

impl Options {
    /// Returns the options that flags and feature gates set.
    #[must_use]
    pub fn from_flags(flags: &Flags<'_>) -> Self {
        Self { root_ca: root_ca_certificate_publisher::root_ca_of(flags) }
    }

    /// Sets the published certificates, as PEM. Without any, the controller does not run.
    #[must_use]
    pub fn root_ca(mut self, root_ca: impl Into<Option<Arc<str>>>) -> Self {
        self.root_ca = root_ca.into();
        self
    }
}

fn build(cx: &ControllerContext, options: Options) -> Result<Built, Disabled> {
    let Some(root_ca) = options.root_ca else {
        return Err(Disabled::because("there is no root certificate to publish: see --root-ca-file"));
    };
    let key = || ObjectKey::cluster(KEY);
    let of_signer = Selection::everything().with_fields(&format!("spec.signerName={SIGNER}"));
    let bundles = cx.informers.informer_in::<ClusterTrustBundleView>(of_signer);
    // Without a bundle there is no event.
    let start = source::task(move |feed, _| async move { feed.add_all(&[key()], Priority::Live) });
    let builder = cx.controller(&bundles).watch_main(move |_: &Change<ClusterTrustBundleView>| key()).source(start);
    Ok(builder.reconcile(sync::Publisher {
        bundles: bundles.lister(),
        name: plan::name(&root_ca),
        root_ca,
        metrics: metrics::Metrics::new(cx.metrics())?,
    }))
}

#![doc = include_str!("../docs/root-ca-certificate-publisher-controller.md")]
//!
//! Follows `pkg/controller/certificates/rootcacertpublisher` of Kubernetes 1.37.1.

use std::sync::Arc;

use steersman_informer::Selection;
use steersman_model::Kind;
use steersman_model::core::{ConfigMapView, NamespaceView};
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext, Disabled, FlagFile, Flags};
use steersman_runtime::Descriptor;

use crate::{namespace, table};

mod map;
mod metrics;
mod plan;
mod sync;
#[cfg(test)]
mod tests;

pub(crate) use metrics::code;
pub use sync::Why;

/// The descriptor of the root CA certificate publisher.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "root-ca-certificate-publisher-controller",
    needs: const { &[NamespaceView::RESOURCE, ConfigMapView::RESOURCE] },
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

/// The name of the ConfigMap.
pub const NAME: &str = "kube-root-ca.crt";

// === impl Options ===

impl Options {
    /// Returns the options that flags and feature gates set.
    #[must_use]
    pub fn from_flags(flags: &Flags<'_>) -> Self {
        Self { root_ca: root_ca_of(flags) }
    }

    /// Sets the published certificates, as PEM. Without any, the controller does not run.
    #[must_use]
    pub fn root_ca(mut self, root_ca: impl Into<Option<Arc<str>>>) -> Self {
        self.root_ca = root_ca.into();
        self
    }
}

/// Returns the certificates of the API server's certificate authority, as PEM.
pub(crate) fn root_ca_of(flags: &Flags<'_>) -> Option<Arc<str>> {
    flags.file("root-ca-file", |FlagFile { path, text }| {
        let is_pem = text.contains("-----BEGIN CERTIFICATE-----");
        if is_pem { Ok(Arc::from(text.as_str())) } else { Err(format!("there is no certificate in PEM in {path}")) }
    })
}

fn build(cx: &ControllerContext, options: Options) -> Result<Built, Disabled> {
    let Some(root_ca) = options.root_ca else {
        return Err(Disabled::because("there is no root certificate to publish: see --root-ca-file"));
    };
    let namespaces = namespace::informer(cx);
    let of_this_name = Selection::everything().with_fields(&format!("metadata.name={NAME}"));
    let maps = cx.informers.informer_in::<ConfigMapView>(of_this_name);
    Ok(cx.controller(&namespaces).watch(&maps, map::namespace_of).reconcile(sync::Publisher {
        live: cx.live_as_manager(),
        namespaces: namespaces.lister(),
        maps: maps.lister(),
        root_ca,
        metrics: metrics::Metrics::new(cx.metrics())?,
    }))
}

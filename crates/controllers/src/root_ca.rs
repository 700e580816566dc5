//! The publisher of the root certificate: every namespace has a ConfigMap `kube-root-ca.crt` with which pods know the API
//! server.
//!
//! 1. Every namespace gets it, and gets it back if somebody deletes or changes it. What else is in its metadata stays.
//! 2. Only ConfigMaps of this name are watched whole.
//! 3. A namespace that is going away gets nothing.
//!
//! Follows `pkg/controller/certificates/rootcacertpublisher` of Kubernetes 1.37.1.

use std::sync::Arc;

use steersman_base::ObjectKey;
use steersman_informer::{Change, Scope};
use steersman_model::core::{ConfigMapView, NamespaceView};
use steersman_model::{Kind, View};
use steersman_runtime::{Build, BuildContext, Descriptor, Enabled, Stage, Workers};

use crate::namespace;

mod metrics;
mod plan;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::Why;

/// The controller's row.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "root-ca-certificate-publisher-controller",
    aliases: &["root-ca-cert-publisher"],
    account: "root-ca-cert-publisher",
    default: Enabled::Yes,
    gates: &[],
    needs: &[NamespaceView::RESOURCE, ConfigMapView::RESOURCE],
    workers: Workers::fixed(1),
    stage: Stage::Normal,
    build,
};

/// What flags say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The certificates that are published, as PEM (`--root-ca-file`, else the authority of the kubeconfig). Without any
    /// there is nothing to publish.
    pub root_ca: Option<Arc<str>>,
}

/// The ConfigMap's name.
pub const NAME: &str = "kube-root-ca.crt";

fn build(cx: &BuildContext, workers: usize) -> Build {
    let Some(root_ca) = cx.options::<Options>().root_ca else {
        return Build::Disabled("there is no root certificate to publish: see --root-ca-file".into());
    };
    let namespaces = namespace::informer(cx);
    let maps =
        cx.informers.informer_in::<ConfigMapView>(Scope::everything().with_fields(&format!("metadata.name={NAME}")));
    let namespace_of = |change: &Change<ConfigMapView>| match change {
        Change::Added { .. } => None,
        Change::Updated { new: map, .. } | Change::Deleted { last: map, .. } => {
            Some(ObjectKey::cluster(&map.meta().namespace))
        }
    };
    cx.controller_on(DESCRIPTOR.name, &namespaces)
        .queue_name("root_ca_cert_publisher")
        .watch(&maps, namespace_of)
        .workers(workers)
        .reconcile_with(sync::Publisher {
            client: cx.manager().kube_client().clone(),
            namespaces: namespaces.lister(),
            maps: maps.lister(),
            root_ca,
            metrics: metrics::Metrics::new(cx.manager().metrics()),
        });
    Build::Enabled
}

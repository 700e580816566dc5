//! The shell: observe → create or correct the bundle → delete the others.

use std::sync::Arc;

use steersman_base::{ObjectKey, Resource};
use steersman_informer::Lister;
use steersman_model::certificates::ClusterTrustBundleView;
use steersman_model::{Kind, View, object_body};
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Delete, Error, Reconciler, WriteError, reasons};
use tokio::time::Instant;

use super::metrics::Metrics;
use super::plan;
use crate::root_ca_certificate_publisher::code;

const BUNDLES: &Resource = &ClusterTrustBundleView::RESOURCE;

/// Publishes the bundle.
pub(super) struct Publisher {
    pub(super) bundles: Lister<ClusterTrustBundleView>,
    pub(super) name: String,
    pub(super) root_ca: Arc<str>,
    pub(super) metrics: Metrics,
}

reasons! {
    /// Why the publisher of the API server's certificate authority writes.
    pub enum Why {
        /// There is no bundle of the certificates.
        Missing => "the API server's certificate authority is not published",
        /// The bundle is wrong.
        Changed => "the bundle is not the API server's certificate authority",
        /// A bundle is not that of the current certificates.
        Old => "the API server's certificate authority is another one",
    }
}

// === impl Publisher ===

impl Reconciler for Publisher {
    async fn reconcile(&self, cx: &Context, _key: &ObjectKey) -> Result<Action, Error> {
        let began = Instant::now();
        let outcome = self.publish(cx).await;
        self.metrics.note(code(outcome.as_ref().copied()), began.elapsed());
        outcome?;
        Ok(Action::Done)
    }
}

impl Publisher {
    async fn publish(&self, cx: &Context) -> Result<(), WriteError> {
        let key = ObjectKey::cluster(&self.name);
        match self.bundles.get(&key) {
            None => {
                let body = object_body(&plan::bundle(&self.name, &self.root_ca, None));
                let created = cx.writer.unowned().create_in(None, BUNDLES, body, &Why::Missing).await;
                // Another manager may have been faster.
                created.ok_if_exists()?;
            }
            Some(bundle) if *bundle.spec.trust_bundle == *self.root_ca => {}
            Some(bundle) => {
                let body = object_body(&plan::bundle(&self.name, &self.root_ca, Some(bundle.meta())));
                let write = cx.writer.on_behalf_of(bundle.meta());
                let written = write.put(BUNDLES, &key, body, &Why::Changed).await;
                // It was changed or deleted by others, which is an event.
                written.ok_if_gone().ok_if_replaced()?;
            }
        }
        let mut failed = Ok(());
        for old in self.bundles.list() {
            let meta = old.meta();
            if *meta.name == *self.name || meta.is_terminating() {
                continue;
            }
            let deleted = cx.writer.on_behalf_of(meta).delete(BUNDLES, meta, Delete::default(), &Why::Old).await;
            // One bundle does not hold back the others.
            failed = failed.and(deleted.ok_if_gone().ok_if_replaced());
        }
        failed
    }
}

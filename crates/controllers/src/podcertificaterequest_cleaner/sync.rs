//! The shell: go through all requests → delete the old ones.

use steersman_base::{ObjectKey, Resource};
use steersman_informer::Lister;
use steersman_model::certificates::PodCertificateRequestView;
use steersman_model::{Kind, View};
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Delete, Error, Reconciler, reasons};

use super::{Options, plan};

const REQUESTS: &Resource = &PodCertificateRequestView::RESOURCE;

/// Deletes old requests.
pub(super) struct Cleaner {
    pub(super) requests: Lister<PodCertificateRequestView>,
    pub(super) options: Options,
}

reasons! {
    /// Why the cleaner of pods' certificate requests writes.
    pub enum Why {
        /// A request is old.
        Old => "the request is old: its pod has its certificate, or has asked again",
    }
}

// === impl Cleaner ===

impl Reconciler for Cleaner {
    async fn reconcile(&self, cx: &Context, _key: &ObjectKey) -> Result<Action, Error> {
        let now = cx.clock.now();
        for request in self.requests.list() {
            let meta = request.meta();
            if !plan::is_over(meta, self.options.kept_for, now) {
                continue;
            }
            let write = cx.writer.on_behalf_of(meta);
            let deleted = write.delete(REQUESTS, meta, Delete::default(), &Why::Old).await;
            // One request does not hold back the others; the next pass tries again.
            if let Err(error) = deleted.ok_if_gone().ok_if_replaced() {
                tracing::warn!(request = %meta.key(), %error, "a pod's certificate request could not be cleaned up");
            }
        }
        Ok(Action::Done)
    }
}

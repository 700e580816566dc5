//! The shell: go through all requests → delete those that are over.

use steersman_base::{ObjectKey, Resource};
use steersman_informer::Lister;
use steersman_model::certificates::CertificateSigningRequestView;
use steersman_model::{Kind, View};
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Delete, Error, Reconciler, reasons};

use super::{Options, plan};

const REQUESTS: &Resource = &CertificateSigningRequestView::RESOURCE;

/// Deletes old requests.
pub(super) struct Cleaner {
    pub(super) requests: Lister<CertificateSigningRequestView>,
    pub(super) options: Options,
}

reasons! {
    /// Why the cleaner of certificate requests writes.
    pub enum Why {
        /// The certificate was issued a while ago.
        Issued => "the certificate was issued a while ago",
        /// The request was denied a while ago.
        Denied => "the request was denied a while ago",
        /// The request was refused by its signer a while ago.
        Failed => "the request failed a while ago",
        /// Nobody has decided about the request for long.
        Pending => "nobody has decided about the request for a long time",
        /// The certificate has expired.
        Expired => "its certificate has expired",
        /// The request was approved, and nobody has signed it for long.
        Unissued => "the request was approved a long time ago, and nobody has signed it",
    }
}

// === impl Cleaner ===

impl Reconciler for Cleaner {
    async fn reconcile(&self, cx: &Context, _key: &ObjectKey) -> Result<Action, Error> {
        let now = cx.clock.now();
        for request in self.requests.list() {
            let meta = request.meta();
            let Some(why) = plan::over(&request, &self.options, now).filter(|_| !meta.is_terminating()) else {
                continue;
            };
            let write = cx.writer.on_behalf_of(meta);
            let deleted = write.delete(REQUESTS, meta, Delete::default().unchanged_only(), &why).await;
            // One request does not hold back the others; the next pass tries again.
            if let Err(error) = deleted.ok_if_gone().ok_if_replaced() {
                tracing::warn!(request = %meta.name, %error, "a certificate request could not be cleaned up");
            }
        }
        Ok(Action::Done)
    }
}

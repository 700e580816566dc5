//! The shell: wait for the end of a token → delete it.

use steersman_base::{ObjectKey, Resource};
use steersman_informer::Lister;
use steersman_model::core::BootstrapTokenView;
use steersman_model::{Kind, View};
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Delete, Error, Reconciler, reasons};

use crate::bootstrap_token::{Expiry, expiry};

const SECRETS: &Resource = &BootstrapTokenView::RESOURCE;

/// Deletes tokens that have expired.
pub(super) struct Cleaner {
    pub(super) tokens: Lister<BootstrapTokenView>,
}

reasons! {
    /// Why the cleaner of bootstrap tokens writes.
    pub enum Why {
        /// A token has expired.
        Expired => "the token has expired",
    }
}

// === impl Cleaner ===

impl Reconciler for Cleaner {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(token) = self.tokens.get(key) else { return Ok(Action::Done) };
        let now = cx.clock.now();
        match expiry(&token, now) {
            Expiry::Never => Ok(Action::Done),
            Expiry::At(time) => Ok(Action::After(time.since(now))),
            Expiry::Expired if token.meta().is_terminating() => Ok(Action::Done),
            Expiry::Expired => {
                // The lifetime of a token may be extended: then it is another version.
                let as_seen = Delete::default().unchanged_only();
                let write = cx.writer.on_behalf_of(token.meta());
                let deleted = write.delete(SECRETS, token.meta(), as_seen, &Why::Expired).await;
                deleted.ok_if_gone().ok_if_replaced()?;
                Ok(Action::Done)
            }
        }
    }
}

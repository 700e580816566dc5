//! The shell: observe → compute the signatures → write them.

use steersman_base::{ObjectKey, Resource};
use steersman_informer::Lister;
use steersman_model::core::{BootstrapTokenView, ConfigMapView};
use steersman_model::{Kind, View};
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Error, Reconciler, WriteError, reasons};

use super::plan::{self, Signatures};

const MAPS: &Resource = &ConfigMapView::RESOURCE;

/// Signs the ConfigMap.
pub(super) struct BootstrapSigner {
    pub(super) maps: Lister<ConfigMapView>,
    pub(super) tokens: Lister<BootstrapTokenView>,
}

reasons! {
    /// Why the bootstrap signer writes.
    pub enum Why {
        /// The signatures do not fit the tokens or the content.
        Signed { tokens: usize } => "the cluster's information is to be signed by {tokens} tokens",
    }
}

// === impl BootstrapSigner ===

impl Reconciler for BootstrapSigner {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(map) = self.maps.get(key) else { return Ok(Action::Done) };
        let tokens = self.tokens.list();
        let now = cx.clock.now();
        let Some(wanted) = plan::wanted(&map, &tokens, now).map_err(Error::terminal)? else { return Ok(Action::Done) };
        if !plan::is_signed(&map, &wanted)
            && let Err(error) = sign(cx, &map, &wanted).await
        {
            // Errors of this queue are not retried, as in upstream; this one should be.
            tracing::warn!(%error, "the cluster's information could not be signed");
            return Ok(Action::Again);
        }
        Ok(plan::next_expiry(&tokens, now).map_or(Action::Done, |ends| Action::After(ends.since(now))))
    }
}

/// Signs the ConfigMap as the server has it, and keeps all other fields.
async fn sign(cx: &Context, map: &ConfigMapView, wanted: &Signatures) -> Result<(), Error> {
    let key = map.meta().key();
    let Some(mut live) = cx.live.get_json(MAPS, &key).await? else { return Ok(()) };
    if !plan::sign(&mut live, map, wanted) {
        return Ok(());
    }
    let write = cx.writer.on_behalf_of(map.meta());
    let why = Why::Signed { tokens: wanted.len() };
    let written: Result<(), WriteError> = write.put(MAPS, &key, live.to_string().into_bytes(), &why).await.map(drop);
    // It was changed or deleted by others, which is an event.
    Ok(written.ok_if_gone().ok_if_replaced()?)
}

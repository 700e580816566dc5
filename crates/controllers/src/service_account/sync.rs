//! The shell: is it there? → create it.

use serde_json::json;
use steersman_base::{ObjectKey, Resource};
use steersman_informer::Lister;
use steersman_model::core::{NamespaceView, ServiceAccountView};
use steersman_model::{Kind, View};
use steersman_runtime::{Action, Context, Error, Reconciler, WriteError, reasons};

use super::DEFAULT;

const ACCOUNTS: &Resource = &ServiceAccountView::RESOURCE;

/// The controller's shell: what it reads from.
pub(super) struct ServiceAccounts {
    pub(super) namespaces: Lister<NamespaceView>,
    pub(super) accounts: Lister<ServiceAccountView>,
}

reasons! {
    /// Why the service account controller writes.
    pub enum Why {
        /// A namespace has no account called `default`.
        Missing => "the namespace has no service account called default",
    }
}

// === impl ServiceAccounts ===

impl Reconciler for ServiceAccounts {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(namespace) = self.namespaces.get(key) else { return Ok(Action::Done) };
        let is_there = self.accounts.namespace(&key.name).get(DEFAULT).is_some();
        if namespace.status.phase != "Active" || is_there {
            return Ok(Action::Done);
        }
        let body = json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": { "name": DEFAULT, "namespace": key.name },
        });
        let write = cx.writer.on_behalf_of(namespace.meta());
        match write.create_in(Some(&key.name), ACCOUNTS, body.to_string().into_bytes(), &Why::Missing).await {
            // Somebody was faster, or there is nothing to create in any more.
            Ok(_) | Err(WriteError::AlreadyExists | WriteError::NamespaceTerminating | WriteError::NotFound) => {
                Ok(Action::Done)
            }
            Err(error) => Err(error.into()),
        }
    }
}

//! The shell: observe → plan → write.

use steersman_base::{ObjectKey, Resource};
use steersman_informer::Lister;
use steersman_model::core::{NamespaceView, ServiceAccountView};
use steersman_model::{Kind, View};
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Error, Reconciler, reasons};

use super::DEFAULT;
use super::plan::{Plan, plan};

const ACCOUNTS: &Resource = &ServiceAccountView::RESOURCE;

/// The controller's shell: the caches that it reads from.
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
        let account = self.accounts.namespace(&key.name).get(DEFAULT);
        let Plan::Create(account) = plan(&namespace, account.as_deref()) else { return Ok(Action::Done) };
        let body = account.to_string().into_bytes();
        let write = cx.writer.on_behalf_of(namespace.meta());
        let created = write.create_in(Some(&key.name), ACCOUNTS, body, &Why::Missing).await;
        // Created by another, or the namespace is terminating.
        created.ok_if_exists().ok_if_gone().ok_if_terminating()?;
        Ok(Action::Done)
    }
}

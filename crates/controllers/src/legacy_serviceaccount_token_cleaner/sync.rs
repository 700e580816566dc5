//! The shell: read since when use is tracked → plan → mark or delete tokens.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use steersman_base::{Istr, ObjectKey, Resource};
use steersman_informer::Lister;
use steersman_model::core::{ConfigMapView, PodView, ServiceAccountView, TokenSecretView};
use steersman_model::{Kind, View};
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Delete, Error, Patch, Reconciler, WriteError, reasons};

use super::plan::{self, Limit, Step};

const SECRETS: &Resource = &TokenSecretView::RESOURCE;
/// The ConfigMap in which the server says since when the use of tokens is tracked.
const TRACKING: (&str, &str) = ("kube-system", "kube-apiserver-legacy-service-account-token-tracking");

/// The controller's shell: the caches that it reads from.
pub(super) struct Cleaner {
    pub(super) secrets: Lister<TokenSecretView>,
    pub(super) accounts: Lister<ServiceAccountView>,
    pub(super) pods: Lister<PodView>,
    pub(super) period: Duration,
}

reasons! {
    /// Why the cleaner of legacy tokens writes.
    pub enum Why {
        /// A token was not used for a period.
        Unused => "nobody has used the token for a long time",
        /// A token has been marked as invalid for a period.
        InvalidForLong => "the token has been invalid for a long time, and nobody has used it",
    }
}

// === impl Cleaner ===

impl Reconciler for Cleaner {
    async fn reconcile(&self, cx: &Context, _key: &ObjectKey) -> Result<Action, Error> {
        let Some(limit) = self.limit(cx).await? else { return Ok(Action::Done) };
        let mut used = BTreeMap::new();
        for secret in self.secrets.list() {
            if !limit.is_unused(secret.meta()) || !self.is_automatic(&secret) {
                continue;
            }
            let namespace = &secret.meta().namespace;
            let used = used.entry(namespace.clone()).or_insert_with(|| self.secrets_of_pods(namespace));
            if used.contains(&secret.meta().name) {
                continue;
            }
            // One token does not hold back the others; the next pass tries again.
            if let Err(error) = carry_out(cx, &secret, &limit).await {
                tracing::warn!(secret = %secret.meta().key(), %error, "a legacy token could not be cleaned up");
            }
        }
        Ok(Action::Done)
    }
}

impl Cleaner {
    /// Returns the limit; `None` if use has not been tracked for long enough, or the server does not say since when.
    async fn limit(&self, cx: &Context) -> Result<Option<Limit>, Error> {
        let (namespace, name) = TRACKING;
        let map = cx.live.get::<ConfigMapView>(&ObjectKey::new(namespace, name)).await?;
        let since = map.and_then(|map| plan::date(map.data.get("since")?));
        if since.is_none() {
            tracing::info!(name, "the ConfigMap does not say since when the use of legacy tokens is tracked");
        }
        Ok(since.and_then(|since| Limit::new(since, self.period, cx.clock.now())))
    }

    fn is_automatic(&self, secret: &TokenSecretView) -> bool {
        let account = plan::account_name(secret);
        let account = account.and_then(|name| self.accounts.namespace(&secret.meta().namespace).get(name));
        account.is_some_and(|account| plan::is_automatic(secret, &account))
    }

    fn secrets_of_pods(&self, namespace: &str) -> BTreeSet<Istr> {
        let mut names = BTreeSet::new();
        for pod in self.pods.namespace(namespace).list() {
            plan::add_secrets(&pod, &mut names);
        }
        names
    }
}

async fn carry_out(cx: &Context, secret: &TokenSecretView, limit: &Limit) -> Result<(), WriteError> {
    let meta = secret.meta();
    let write = cx.writer.on_behalf_of(meta);
    match limit.step(meta) {
        Step::Keep => Ok(()),
        Step::Invalidate => {
            let patch = limit.invalid(meta);
            let patched = write.patch(SECRETS, &meta.key(), Patch::Merge(&patch), &Why::Unused).await;
            patched.ok_if_gone().ok_if_replaced()
        }
        Step::Delete => {
            let how = Delete::default().unchanged_only();
            write.delete(SECRETS, meta, how, &Why::InvalidForLong).await.ok_if_gone().ok_if_replaced()
        }
    }
}

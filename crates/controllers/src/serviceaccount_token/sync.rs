//! The shell: read the account → fill the secret, or delete it; and remove deleted secrets from lists.

use std::sync::Arc;
use std::time::Duration;

use steersman_base::{Istr, Meta, ObjectKey, Resource};
use steersman_informer::Lister;
use steersman_model::core::{ServiceAccountView, TokenSecretView};
use steersman_model::{Kind, View};
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Delete, Error, Reconciler, WriteError, reasons};

use super::map;
use super::plan::Fill;
use super::reference::Reference;

const SECRETS: &Resource = &TokenSecretView::RESOURCE;
const ACCOUNTS: &Resource = &ServiceAccountView::RESOURCE;
/// Upstream's: how often the update of an account's list is retried after a conflict, and the delay.
const CONFLICTS_MAX: usize = 10;
const CONFLICT_PAUSE: Duration = Duration::from_millis(100);

/// The delay before a secret is reconciled again whose account the cache does not show: if the account is deleted
/// before the cache has shown it, there is no event.
const UNSEEN_PAUSE: Duration = Duration::from_secs(30);

/// The place where an account was found.
enum Shown {
    ByCache,
    ByServer,
}

/// Fills secrets and deletes them.
pub(super) struct Tokens {
    pub(super) accounts: Lister<ServiceAccountView>,
    pub(super) secrets: Lister<TokenSecretView>,
    pub(super) fill: Fill,
}

/// Removes deleted secrets from the lists of their accounts.
pub(super) struct References {
    pub(super) accounts: Lister<ServiceAccountView>,
    pub(super) secrets: Lister<TokenSecretView>,
}

/// Deletes the secrets of deleted accounts.
pub(super) struct Departures {
    pub(super) secrets: Lister<TokenSecretView>,
}

reasons! {
    /// Why the tokens controller writes.
    pub enum Why {
        /// A secret lacks a token, the namespace or the right certificates.
        Lacking { account: Istr } => "the secret for service account {account} lacks something",
        /// The account of a secret is deleted.
        NoAccount { account: Istr } => "service account {account} is gone",
        /// An account lists a deleted secret.
        SecretGone { secret: String } => "secret {secret} is gone",
    }
}

// === impl Tokens ===

impl Reconciler for Tokens {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(secret) = self.secrets.get(key) else { return Ok(Action::Done) };
        let Some(account) = map::account_of(&secret) else { return Ok(Action::Done) };
        let Some((account, shown)) = self.account(cx, &account, secret.meta()).await? else {
            return delete(cx, &secret, account.name, Delete::default()).await;
        };
        if !self.fill.lacks(&secret.data).is_nothing() {
            self.fill(cx, &secret, &account).await?;
        }
        Ok(match shown {
            Shown::ByCache => Action::Done,
            Shown::ByServer => Action::After(UNSEEN_PAUSE),
        })
    }
}

impl Tokens {
    /// Returns the account of a secret: by name, and by uid, if the secret has one. If the cache does not show it, the
    /// server is asked: a secret is not deleted because a cache is stale.
    async fn account(&self, cx: &Context, key: &ObjectKey, secret: &Meta) -> Result<Option<(Meta, Shown)>, Error> {
        let uid = map::account_uid(secret);
        let is_meant = |account: &Meta| uid.as_ref().is_none_or(|uid| *uid == account.uid);
        if let Some(account) = self.accounts.get(key).filter(|account| is_meant(account.meta())) {
            return Ok(Some((account.meta().clone(), Shown::ByCache)));
        }
        if secret.is_terminating() {
            // It is terminating, and a finalizer keeps it: nothing is left to do.
            return Ok(None);
        }
        let live = cx.live.get_meta(ACCOUNTS, key).await?.filter(is_meant);
        Ok(live.map(|account| (account, Shown::ByServer)))
    }

    async fn fill(&self, cx: &Context, secret: &TokenSecretView, account: &Meta) -> Result<(), Error> {
        let key = secret.meta().key();
        let Some(mut live) = cx.live.get_json(SECRETS, &key).await? else { return Ok(()) };
        let is_seen = live["metadata"]["resourceVersion"] == secret.meta().resource_version.as_str();
        // A secret that the cache does not show yet is enqueued by its event.
        if !is_seen || !self.fill.fill(&mut live, account).map_err(Error::terminal)? {
            return Ok(());
        }
        let why = Why::Lacking { account: account.name.clone() };
        let write = cx.writer.on_behalf_of(secret.meta());
        let filled = write.put(SECRETS, &key, live.to_string().into_bytes(), &why).await;
        // It was changed or deleted by others, which is an event.
        Ok(filled.ok_if_replaced().ok_if_gone()?)
    }
}

// === impl Departures ===

impl Reconciler for Departures {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(Reference { account, account_uid, secret }) = Reference::from_key(key) else {
            return Ok(Action::Done);
        };
        let is_its = |secret: &Arc<TokenSecretView>| {
            map::account_of(secret).as_ref() == Some(&account) && map::is_token_of(secret, &account_uid)
        };
        let secret = self.secrets.namespace(&account.namespace).get(&secret).filter(is_its);
        let Some(secret) = secret else { return Ok(Action::Done) };
        let live = cx.live.get_meta(ACCOUNTS, &account).await?;
        if live.is_some_and(|live| live.uid == account_uid) {
            return Ok(Action::Done);
        }
        // It may belong to the account that has the name now: then it is kept.
        let as_seen = Delete::default().unchanged_only();
        delete(cx, &secret, account.name, as_seen).await
    }
}

// === impl References ===

impl Reconciler for References {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(gone) = Reference::from_key(key) else { return Ok(Action::Done) };
        let is_back = self.secrets.namespace(&gone.account.namespace).get(&gone.secret).is_some();
        let Some(account) = self.accounts.get(&gone.account).filter(|_| !is_back) else { return Ok(Action::Done) };
        for _ in 0..CONFLICTS_MAX {
            let live = cx.live.get_json(ACCOUNTS, &gone.account).await?;
            let Some(live) = live.and_then(|mut live| gone.take_off(&mut live).then_some(live)) else {
                return Ok(Action::Done);
            };
            let why = Why::SecretGone { secret: gone.secret.clone() };
            let write = cx.writer.on_behalf_of(account.meta());
            match write.put(ACCOUNTS, &gone.account, live.to_string().into_bytes(), &why).await {
                Ok(_) | Err(WriteError::NotFound) => return Ok(Action::Done),
                Err(WriteError::Conflict) => tokio::time::sleep(CONFLICT_PAUSE).await,
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::message(format!("service account {} is changed by others all the time", gone.account)))
    }
}

/// Deletes a secret whose account is deleted.
async fn delete(cx: &Context, secret: &TokenSecretView, account: Istr, how: Delete) -> Result<Action, Error> {
    if secret.meta().is_terminating() {
        return Ok(Action::Done);
    }
    let write = cx.writer.on_behalf_of(secret.meta());
    match write.delete(SECRETS, secret.meta(), how, &Why::NoAccount { account }).await {
        Ok(()) | Err(WriteError::NotFound) => Ok(Action::Done),
        Err(WriteError::Conflict) if how.unchanged_only => Ok(Action::Again),
        // Another secret has the name.
        Err(WriteError::Conflict) => Ok(Action::Done),
        Err(error) => Err(error.into()),
    }
}

//! The shell: look at the account → fill the secret, or delete it; and take deleted ones off the list.

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
/// Upstream's: so often the list of an account is read and written again because somebody else was first, with this pause.
const CONFLICTS_MAX: usize = 10;
const CONFLICT_PAUSE: Duration = Duration::from_millis(100);

/// How soon a secret is looked at again whose account the cache does not show: if the account goes before the cache has
/// seen it, nobody hears of its end.
const UNSEEN_PAUSE: Duration = Duration::from_secs(30);

/// Who knows of an account.
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

/// Takes deleted secrets off the lists of their accounts.
pub(super) struct References {
    pub(super) accounts: Lister<ServiceAccountView>,
    pub(super) secrets: Lister<TokenSecretView>,
}

/// Deletes the secrets of accounts that are gone.
pub(super) struct Departures {
    pub(super) secrets: Lister<TokenSecretView>,
}

reasons! {
    /// Why the tokens controller writes.
    pub enum Why {
        /// A secret lacks a token, the namespace or the right certificates.
        Lacking { account: Istr } => "the secret for service account {account} lacks something",
        /// The account of a secret is gone.
        NoAccount { account: Istr } => "service account {account} is gone",
        /// An account lists a secret that is gone.
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
    /// The account that a secret is about: of the name that it says, and of the uid, if it says one. What the cache does
    /// not show, the server is asked for: a secret is not deleted because a cache is behind.
    async fn account(&self, cx: &Context, key: &ObjectKey, secret: &Meta) -> Result<Option<(Meta, Shown)>, Error> {
        let uid = map::account_uid(secret);
        let is_meant = |account: &Meta| uid.as_ref().is_none_or(|uid| *uid == account.uid);
        if let Some(account) = self.accounts.get(key).filter(|account| is_meant(account.meta())) {
            return Ok(Some((account.meta().clone(), Shown::ByCache)));
        }
        if secret.is_terminating() {
            // It has been deleted, and somebody's finalizer keeps it: there is nothing to ask for.
            return Ok(None);
        }
        let live = cx.live.get_meta(ACCOUNTS, key).await?.filter(is_meant);
        Ok(live.map(|account| (account, Shown::ByServer)))
    }

    async fn fill(&self, cx: &Context, secret: &TokenSecretView, account: &Meta) -> Result<(), Error> {
        let key = secret.meta().key();
        let Some(mut live) = cx.live.get_json(SECRETS, &key).await? else { return Ok(()) };
        let is_seen = live["metadata"]["resourceVersion"] == secret.meta().resource_version.as_str();
        // What we have not seen comes as an event, and is looked at then.
        if !is_seen || !self.fill.fill(&mut live, account).map_err(Error::terminal)? {
            return Ok(());
        }
        let why = Why::Lacking { account: account.name.clone() };
        let write = cx.writer.on_behalf_of(secret.meta());
        let filled = write.put(SECRETS, &key, live.to_string().into_bytes(), &why).await;
        // Somebody changed or deleted it, which is an event.
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
        // It may have become the secret of the account that has the name now: then it is to stay.
        let as_seen = Delete { unchanged_only: true, ..Delete::default() };
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

/// Deletes a secret whose account is gone.
async fn delete(cx: &Context, secret: &TokenSecretView, account: Istr, how: Delete) -> Result<Action, Error> {
    if secret.meta().is_terminating() {
        return Ok(Action::Done);
    }
    let write = cx.writer.on_behalf_of(secret.meta());
    match write.delete(SECRETS, secret.meta(), how, &Why::NoAccount { account }).await {
        Ok(()) | Err(WriteError::NotFound) => Ok(Action::Done),
        Err(WriteError::Conflict) if how.unchanged_only => Ok(Action::Again),
        // Another one has its name.
        Err(WriteError::Conflict) => Ok(Action::Done),
        Err(error) => Err(error.into()),
    }
}

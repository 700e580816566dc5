//! Pure: the account of a secret, and the secrets of an account.

use steersman_base::names::annotations::{SERVICE_ACCOUNT_NAME, SERVICE_ACCOUNT_UID};
use steersman_base::{Meta, ObjectKey, Uid};
use steersman_informer::{Change, Index};
use steersman_model::View;
use steersman_model::core::{ServiceAccountView, TokenSecretView};

use super::reference::Reference;

/// Secrets by the account that they name.
#[derive(Clone)]
pub(super) struct ByAccount(pub(super) Index<ObjectKey, TokenSecretView>);

// === impl ByAccount ===

impl ByAccount {
    /// Returns the tokens of a deleted account, as references to it.
    pub(super) fn tokens_to_delete(&self, change: &Change<ServiceAccountView>) -> Vec<ObjectKey> {
        let Some(account) = deleted(change) else { return Vec::new() };
        let secrets = self.0.get(&account.key()).into_iter();
        let its = secrets.filter(|secret| is_token_of(secret, &account.uid));
        its.map(|secret| Reference::to_deleted(account, secret.meta()).to_key()).collect()
    }

    /// Returns the other secrets that name a deleted account: their current account has to be checked.
    pub(super) fn secrets_to_check(&self, change: &Change<ServiceAccountView>) -> Vec<ObjectKey> {
        let Some(account) = deleted(change) else { return Vec::new() };
        let secrets = self.0.get(&account.key()).into_iter();
        secrets.filter(|secret| !is_token_of(secret, &account.uid)).map(|secret| secret.meta().key()).collect()
    }
}

/// Returns the account that a secret names, if any.
pub(super) fn account_of(secret: &TokenSecretView) -> Option<ObjectKey> {
    account_of_meta(secret.meta())
}

pub(super) fn account_of_meta(secret: &Meta) -> Option<ObjectKey> {
    let name = secret.annotations.get(SERVICE_ACCOUNT_NAME).filter(|name| !name.is_empty())?;
    Some(ObjectKey { namespace: secret.namespace.clone(), name: name.clone() })
}

/// Returns the account, if it was deleted: then its secrets are enqueued. Its other changes do not concern them; the
/// secrets of an account that is created after them are deleted by then, or were checked against the server.
pub(super) fn deleted(change: &Change<ServiceAccountView>) -> Option<&Meta> {
    match change {
        Change::Deleted { last: account, .. } => Some(account.meta()),
        Change::Added { .. } | Change::Updated { .. } => None,
    }
}

/// Returns the uid of a secret's account; `None` if any account of the name will do.
pub(super) fn account_uid(secret: &Meta) -> Option<Uid> {
    secret.annotations.get(SERVICE_ACCOUNT_UID).filter(|uid| !uid.is_empty()).map(|uid| Uid::new(uid))
}

/// Whether a secret that names an account is deleted with the account of this uid, even if another account has taken
/// the name. A token without a uid was issued for the account that existed then: the uid was removed by others. A
/// secret without a token is for any account of the name.
pub(super) fn is_token_of(secret: &TokenSecretView, account: &Uid) -> bool {
    account_uid(secret.meta()).map_or(secret.data.has_token, |uid| uid == *account)
}

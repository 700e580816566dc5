//! Pure: which account a secret is about, and which secrets go with an account.

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
    /// The tokens of an account that was deleted, as references to it.
    pub(super) fn tokens_to_delete(&self, change: &Change<ServiceAccountView>) -> Vec<ObjectKey> {
        let Some(account) = gone(change) else { return Vec::new() };
        let secrets = self.0.get(&account.key()).into_iter();
        let its = secrets.filter(|secret| is_token_of(secret, &account.uid));
        its.map(|secret| Reference::to_gone(account, secret.meta()).to_key()).collect()
    }

    /// The other secrets that name an account that was deleted: who their account is now, is to be checked.
    pub(super) fn secrets_to_check(&self, change: &Change<ServiceAccountView>) -> Vec<ObjectKey> {
        let Some(account) = gone(change) else { return Vec::new() };
        let secrets = self.0.get(&account.key()).into_iter();
        secrets.filter(|secret| !is_token_of(secret, &account.uid)).map(|secret| secret.meta().key()).collect()
    }
}

/// The account that a secret names; `None` if it names none.
pub(super) fn account_of(secret: &TokenSecretView) -> Option<ObjectKey> {
    account_of_meta(secret.meta())
}

pub(super) fn account_of_meta(secret: &Meta) -> Option<ObjectKey> {
    let name = secret.annotations.get(SERVICE_ACCOUNT_NAME).filter(|name| !name.is_empty())?;
    Some(ObjectKey { namespace: secret.namespace.clone(), name: name.clone() })
}

/// The account, if it went: then its secrets are looked at. What else happens to it does not concern them; one that comes
/// after its secrets finds them deleted, or made by somebody who has asked the server.
pub(super) fn gone(change: &Change<ServiceAccountView>) -> Option<&Meta> {
    match change {
        Change::Deleted { last: account, .. } => Some(account.meta()),
        Change::Added { .. } | Change::Updated { .. } => None,
    }
}

/// The uid of the account that a secret is for; `None` if any of the name will do.
pub(super) fn account_uid(secret: &Meta) -> Option<Uid> {
    secret.annotations.get(SERVICE_ACCOUNT_UID).filter(|uid| !uid.is_empty()).map(|uid| Uid::new(uid))
}

/// Whether a secret that names an account goes when the one of this uid does, whoever has its name then. A token without a
/// uid was made for the account that was there: somebody took the uid off. One that is still to be made is for whoever comes.
pub(super) fn is_token_of(secret: &TokenSecretView, account: &Uid) -> bool {
    account_uid(secret.meta()).map_or(secret.data.has_token, |uid| uid == *account)
}

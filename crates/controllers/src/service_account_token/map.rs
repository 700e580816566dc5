//! Pure: which account a secret is about, and which secrets an account's event concerns.

use steersman_base::names::annotations::SERVICE_ACCOUNT_NAME;
use steersman_base::{Meta, ObjectKey};
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::{ServiceAccountView, TokenSecretView};

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
pub(super) fn gone(change: &Change<ServiceAccountView>) -> Option<ObjectKey> {
    match change {
        Change::Deleted { last: account, .. } => Some(account.meta().key()),
        Change::Added { .. } | Change::Updated { .. } => None,
    }
}

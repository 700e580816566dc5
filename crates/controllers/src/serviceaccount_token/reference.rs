//! Pure: a secret and its account, one of which is deleted: an account may still list its deleted secret, and the
//! secrets of a deleted account may still exist.

use steersman_base::{Meta, ObjectKey, Uid};
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::TokenSecretView;

use super::map;

/// A secret and its account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) account: ObjectKey,
    /// Empty if the secret did not name it.
    pub(super) account_uid: Uid,
    pub(super) secret: String,
}

/// Returns the reference to clean up after a change, if a secret that named an account was deleted.
pub(super) fn of_deleted(change: &Change<TokenSecretView>) -> Option<Reference> {
    let Change::Deleted { last, .. } = change else { return None };
    let account_uid = map::account_uid(last.meta()).unwrap_or_default();
    Some(Reference { account: map::account_of(last)?, account_uid, secret: last.meta().name.to_string() })
}

/// As [`of_deleted`], as keys of a queue.
pub(super) fn keys_of_deleted(change: &Change<TokenSecretView>) -> Vec<ObjectKey> {
    of_deleted(change).iter().map(Reference::to_key).collect()
}

// === impl Reference ===

impl Reference {
    /// Returns a secret and the account that it is deleted with.
    pub(super) fn to_deleted(account: &Meta, secret: &Meta) -> Self {
        Self { account: account.key(), account_uid: account.uid.clone(), secret: secret.name.to_string() }
    }

    /// Encodes the reference as a key of a queue: names of objects contain no slash.
    pub(super) fn to_key(&self) -> ObjectKey {
        let Self { account, account_uid, secret } = self;
        ObjectKey::new(&account.namespace, &format!("{}/{account_uid}/{secret}", account.name))
    }

    /// Decodes a key; `None` if it is malformed.
    pub(super) fn from_key(key: &ObjectKey) -> Option<Self> {
        let mut parts = key.name.split('/');
        let account = parts.next()?;
        let uid = parts.next()?;
        let secret = parts.next()?;
        let account = ObjectKey::new(&key.namespace, account);
        Some(Self { account, account_uid: uid.into(), secret: secret.to_owned() })
    }

    /// Removes the secret from the list of an account, as the server has it; returns whether it was listed.
    pub(super) fn take_off(&self, account: &mut serde_json::Value) -> bool {
        let uid = Uid::new(account["metadata"]["uid"].as_str().unwrap_or_default());
        let is_other = !self.account_uid.is_empty() && uid != self.account_uid;
        let Some(listed) = account["secrets"].as_array_mut().filter(|_| !is_other) else { return false };
        let before = listed.len();
        listed.retain(|listed| listed["name"] != self.secret.as_str());
        listed.len() < before
    }
}

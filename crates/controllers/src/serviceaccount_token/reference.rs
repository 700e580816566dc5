//! Pure: a secret and an account, one of which is gone: an account may still list its deleted secret, and the secrets of a
//! deleted account are still there.

use steersman_base::{Meta, ObjectKey, Uid};
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::TokenSecretView;

use super::map;

/// A secret, and the account that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) account: ObjectKey,
    /// Empty if the secret did not say.
    pub(super) account_uid: Uid,
    pub(super) secret: String,
}

/// The reference that a change leaves behind, if a secret is gone that named an account.
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
    /// A secret, and the account that it goes with.
    pub(super) fn to_gone(account: &Meta, secret: &Meta) -> Self {
        Self { account: account.key(), account_uid: account.uid.clone(), secret: secret.name.to_string() }
    }

    /// As a key of a queue: no name of an object has a slash in it.
    pub(super) fn to_key(&self) -> ObjectKey {
        let Self { account, account_uid, secret } = self;
        ObjectKey::new(&account.namespace, &format!("{}/{account_uid}/{secret}", account.name))
    }

    /// Back again; `None` if the key is none of ours.
    pub(super) fn from_key(key: &ObjectKey) -> Option<Self> {
        let mut parts = key.name.split('/');
        let (account, uid, secret) = (parts.next()?, parts.next()?, parts.next()?);
        let account = ObjectKey::new(&key.namespace, account);
        Some(Self { account, account_uid: uid.into(), secret: secret.to_owned() })
    }

    /// Takes the secret off the list of an account, as the server has it; whether it was on it.
    pub(super) fn take_off(&self, account: &mut serde_json::Value) -> bool {
        let uid = Uid::new(account["metadata"]["uid"].as_str().unwrap_or_default());
        let is_other = !self.account_uid.is_empty() && uid != self.account_uid;
        let Some(listed) = account["secrets"].as_array_mut().filter(|_| !is_other) else { return false };
        let before = listed.len();
        listed.retain(|listed| listed["name"] != self.secret.as_str());
        listed.len() < before
    }
}

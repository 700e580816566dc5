//! Service accounts.

use steersman_base::{Istr, Meta};

use super::ObjectReference;
use crate::view;
use crate::wire::Adapt;

view! {
    /// What controllers read of a service account.
    pub struct ServiceAccountView for namespaced("", "v1", "serviceaccounts", "ServiceAccount") {
        /// Its metadata.
        metadata: Meta = 1,
        /// Names of the secrets it lists.
        secret_names "secrets": Box<[Istr]> as Vec<ObjectReference> = 2,
    }
}

impl Adapt<Istr> for ObjectReference {
    fn adapt(self) -> Istr {
        self.name
    }
}

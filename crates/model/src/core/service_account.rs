//! Service accounts.

use steersman_base::{Istr, Meta};

use super::ObjectReference;
use crate::view;
use crate::wire::Adapt;

view! {
    /// The fields of a service account that controllers read.
    pub struct ServiceAccountView for namespaced("", "v1", "serviceaccounts", "ServiceAccount") {
        /// The metadata.
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

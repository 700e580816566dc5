//! Writes of statuses.

use serde::Serialize;
use steersman_base::Meta;
use steersman_model::{Kind, status_body};

use super::{Behalf, WriteError, Written};
use crate::Reason;

// === impl Behalf ===

impl Behalf<'_> {
    /// Replaces the status of an object of kind `V`. `meta` is its metadata as read: the server takes labels,
    /// annotations and finalizers from it, and its resourceVersion is the precondition.
    ///
    /// # Errors
    /// See [`WriteError`].
    #[doc(hidden)]
    pub async fn put_status_of<V: Kind>(
        &self,
        meta: &Meta,
        status: &(impl Serialize + Sync),
        why: &dyn Reason,
    ) -> Result<Written, WriteError> {
        self.put_status(&V::RESOURCE, &meta.key(), status_body::<V>(meta, status), why).await
    }

    /// Replaces the status of an object of kind `V`, unless it is equal already: then nothing is sent, and the result
    /// is `None`.
    ///
    /// # Errors
    /// See [`WriteError`].
    #[doc(hidden)]
    pub async fn put_status_if_changed<V: Kind, S: Serialize + PartialEq + Sync>(
        &self,
        meta: &Meta,
        held: &S,
        wanted: &S,
        why: &dyn Reason,
    ) -> Result<Option<Written>, WriteError> {
        if held == wanted {
            return Ok(None);
        }
        self.put_status_of::<V>(meta, wanted, why).await.map(Some)
    }
}

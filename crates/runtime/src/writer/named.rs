//! Creates under chosen names.
//!
//! If the response to a create is lost, or does not show the outcome, the server can be asked for the chosen name at once. If the
//! object exists, the create was made, and nothing went wrong. If it does not, the request may still be in flight: the
//! name is kept, and the next create of the owner for the same purpose uses it, so that the server refuses the second of
//! the two. The object is then as the first create asked for, and the result says so. Names are kept in memory: a
//! restarted manager knows none.

use std::sync::Arc;

use steersman_base::{Istr, Meta, ObjectKey, Resource};

use super::behalf::{Answer, Behalf, object, read};
use super::error::Failure;
use super::in_flight::{InFlight, Name};
use super::send::{Call, Verb};
use super::{Created, Naming, WriteError};
use crate::Reason;

/// The number of names that are tried if they are in use. Among five letters, even one rarely is.
const NAMES_TRIED_MAX: usize = 8;

/// The outcome of a create under one name.
enum Tried {
    /// This outcome, which is in the book if it has to be.
    Ended(Box<Result<Answer, Failure>>),
    /// The name is in use by another object.
    Taken,
}

// === impl Behalf ===

impl Behalf<'_> {
    /// Creates an object in the owner's namespace, under a name that is chosen here as the server would for
    /// `generateName`: so that after a lost response the server can be asked for it, and the create can be retried
    /// without making a second object. `body` returns the JSON body for a name; the object must be controlled by the
    /// owner. The object may be that of an earlier create, with another body ([`Created::is_earlier`]).
    ///
    /// # Errors
    /// See [`WriteError`].
    #[doc(hidden)]
    pub async fn create_named(
        &self,
        resource: &Resource,
        naming: Naming<'_>,
        body: impl Fn(&str) -> Vec<u8>,
        why: &dyn Reason,
    ) -> Result<Created, WriteError> {
        let namespace = self.owner.map(|owner| owner.namespace.clone()).unwrap_or_default();
        let mut tries = 0;
        loop {
            tries += 1;
            let (name, was_kept) = self.name(resource, naming);
            let body = body(&name).into();
            let key = ObjectKey { namespace: namespace.clone(), name };
            let call = Call { verb: Verb::Create, body, ..object(resource, key) };
            self.check_namespace(&call)?;
            if let Some(answer) = self.announce(&call, why) {
                return Ok(Created { meta: answer.meta, is_earlier: false });
            }
            let outcome = match self.try_name(&call, naming.purpose, was_kept).await {
                Tried::Ended(outcome) => *outcome,
                Tried::Taken if tries < NAMES_TRIED_MAX => continue,
                Tried::Taken => Err(WriteError::AlreadyExists.into()),
            };
            let answer = self.conclude(&call, outcome, why)?;
            return Ok(Created { is_earlier: was_kept && answer.is_found, meta: answer.meta });
        }
    }

    /// Returns the name to use: one whose create may still arrive, or a new one.
    fn name(&self, resource: &Resource, naming: Naming<'_>) -> (Istr, bool) {
        if self.writer.is_shadow() {
            return (naming.not_chosen(), false);
        }
        let book = &self.writer.shared.book;
        let fits = |name: &str| naming.fits(name);
        let take = |owner: &Meta| book.take_name(&owner.uid, resource, naming.purpose, naming.is_seen, fits);
        let kept = self.owner.and_then(take);
        let was_kept = kept.is_some();
        (kept.unwrap_or_else(|| naming.choose()), was_kept)
    }

    async fn try_name(&self, call: &Call<'_>, purpose: &str, was_kept: bool) -> Tried {
        let in_flight = InFlight::new(self, call, Name::Kept(purpose));
        let tried = self.send_named(call, purpose, was_kept).await;
        in_flight.ended();
        tried
    }

    async fn send_named(&self, call: &Call<'_>, purpose: &str, was_kept: bool) -> Tried {
        let outcome = self.writer.exchange(call).await.and_then(|body| read(call, body));
        let (Err(failure), Some(owner)) = (&outcome, self.owner) else { return self.ended(call, outcome) };
        match failure.error {
            // The name was not used before, so the object is not ours.
            WriteError::AlreadyExists if !was_kept => Tried::Taken,
            WriteError::AlreadyExists | WriteError::Unknown(_) => self.settle(call, purpose, owner, outcome).await,
            _ => {
                // An earlier create under this name may still arrive.
                if was_kept {
                    self.keep_name(call, purpose);
                }
                self.ended(call, outcome)
            }
        }
    }

    /// Reads the object to settle the outcome of a create.
    async fn settle(&self, call: &Call<'_>, purpose: &str, owner: &Meta, outcome: Result<Answer, Failure>) -> Tried {
        let is_ours = |found: &Meta| found.is_controlled_by(owner);
        match (self.writer.shared.book.look(call.resource, &call.key).await, outcome) {
            (Ok(Some(found)), _) if is_ours(&found) => {
                tracing::info!(object = %call.key, "a create was made, though its answer did not say so");
                self.ended(call, Ok(Answer::found(Arc::unwrap_or_clone(found))))
            }
            (Ok(Some(_)), _) => Tried::Taken,
            // The object may be ours, and the read stale; or it was deleted in between. Under the same name, nothing is created twice.
            (Ok(None), Err(failure)) if matches!(failure.error, WriteError::AlreadyExists) => {
                self.keep_name(call, purpose);
                self.ended(call, Err(WriteError::unknown(failure.said).into()))
            }
            (Ok(None), Err(failure)) => {
                self.keep_name(call, purpose);
                // The server was asked: there is nothing that a cache could show.
                Tried::Ended(Box::new(Err(failure)))
            }
            (Err(error), outcome) => {
                tracing::warn!(%error, "an outcome is unknown, and the server does not report it");
                self.keep_name(call, purpose);
                // It is unknown now whose object has the name.
                let unknown = |failure: Failure| match failure.error {
                    WriteError::AlreadyExists => WriteError::unknown(failure.said).into(),
                    _ => failure,
                };
                self.ended(call, outcome.map_err(unknown))
            }
            (Ok(None), outcome @ Ok(_)) => self.ended(call, outcome),
        }
    }

    fn ended(&self, call: &Call<'_>, outcome: Result<Answer, Failure>) -> Tried {
        self.enter_in_book(call, &outcome);
        Tried::Ended(Box::new(outcome))
    }

    /// Keeps the name of a create that may still arrive.
    pub(super) fn keep_name(&self, call: &Call<'_>, purpose: &str) {
        if let Some(owner) = self.owner {
            self.writer.shared.book.keep_name(&owner.uid, call.resource, purpose, &call.key.name);
        }
    }
}

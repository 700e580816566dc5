//! Writes in flight.

use super::WriteError;
use super::behalf::Behalf;
use super::error::Failure;
use super::send::Call;

/// A write without an outcome so far.
///
/// If it is dropped before it has one, because its reconcile took too long or because the reconciler no longer waits for
/// it, the server may have made it: the outcome is unknown, as after a lost response.
#[must_use = "a write that is dropped has an unknown outcome"]
pub(super) struct InFlight<'a> {
    behalf: &'a Behalf<'a>,
    call: &'a Call<'a>,
    name: Name<'a>,
    has_outcome: bool,
}

/// The name of the object of a create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name<'a> {
    /// The server or the caller chose it.
    Given,
    /// The writer chose it: the next create of the owner for this purpose must use it.
    Kept(&'a str),
}

// === impl InFlight ===

impl<'a> InFlight<'a> {
    pub(super) fn new(behalf: &'a Behalf<'a>, call: &'a Call<'a>, name: Name<'a>) -> Self {
        Self { behalf, call, name, has_outcome: false }
    }

    /// Records that the outcome is known, or is in the book.
    pub(super) fn ended(mut self) {
        self.has_outcome = true;
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if self.has_outcome {
            return;
        }
        let text = "the reconcile no longer waited for an answer";
        tracing::warn!(verb = self.call.verb.as_str(), object = self.call.object_text(), "a write was dropped: {text}");
        if let Name::Kept(purpose) = self.name {
            self.behalf.keep_name(self.call, purpose);
        }
        let failure = Failure::from(WriteError::unknown(text));
        self.behalf.enter_in_book(self.call, &Err(failure));
    }
}

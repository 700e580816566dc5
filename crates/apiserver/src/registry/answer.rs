//! The answer to a [`Call`](super::Call), before it is encoded.

use std::sync::Arc;

use serde_json::Value;

use crate::logs::LogText;
use crate::status::Status;
use crate::store::Object;

/// The answer to a call.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The HTTP status.
    pub code: u16,
    /// The body.
    pub body: Content,
    /// The warnings, one header each.
    pub warnings: Vec<String>,
}

/// The body of an answer.
#[derive(Debug)]
pub(crate) enum Content {
    /// An object in its stored form.
    Stored(Arc<Object>),
    /// An object in another form.
    Value(Value),
    /// A list.
    List(ListAnswer),
    /// A status.
    Status(Status),
    /// A log, streamed.
    Log(LogText),
    /// An empty body.
    Nothing,
}

/// A list, not yet encoded.
#[derive(Debug)]
pub(crate) struct ListAnswer {
    /// The objects.
    pub objects: Vec<Arc<Object>>,
    /// The revision they are from.
    pub revision: u64,
    /// The token of the next page.
    pub continue_token: String,
    /// The number of objects behind this page, where it is known.
    pub remaining: Option<usize>,
}

// === impl Answer ===

impl Answer {
    /// Returns 200 with this body.
    #[must_use]
    pub(crate) fn ok(body: Content) -> Self {
        Self { code: 200, body, warnings: Vec::new() }
    }

    /// Returns 201 with this body.
    #[must_use]
    pub(crate) fn created(body: Content) -> Self {
        Self { code: 201, body, warnings: Vec::new() }
    }

    /// Adds warnings.
    pub(crate) fn warning(mut self, warnings: Vec<String>) -> Self {
        self.warnings.extend(warnings);
        self
    }
}

impl From<Status> for Answer {
    fn from(status: Status) -> Self {
        Self { code: status.code, body: Content::Status(status), warnings: Vec::new() }
    }
}

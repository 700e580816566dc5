//! The entries of the log, and their text form.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use steersman_base::{Istr, MicroTime};

use super::seconds;

/// One pass of a controller in which something was done, refused or failed.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Entry {
    /// The number of the pass.
    pub pass: u64,
    /// The time at which it began.
    pub time: MicroTime,
    /// The controller.
    pub controller: &'static str,
    /// The key, as `namespace/name`.
    pub key: String,
    /// The trigger that enqueued the key; empty if unknown.
    #[serde(skip_serializing_if = "is_empty")]
    pub trigger: Istr,
    /// The observations that the decisions are based on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<Seen>,
    /// The decisions, in order.
    pub decisions: Vec<Decision>,
    /// The number of further decisions.
    #[serde(skip_serializing_if = "is_zero")]
    pub more_decisions: usize,
    /// The duration of the pass.
    #[serde(rename = "seconds", serialize_with = "seconds")]
    pub took: Duration,
    /// The outcome of the pass.
    pub outcome: Outcome,
}

/// An observation that a decision is based on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Seen {
    /// The name of the observation.
    pub what: &'static str,
    /// The value.
    pub value: String,
}

/// One decision of a pass.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Decision {
    /// The rule: the code of the [`Reason`](crate::Reason).
    pub rule: &'static str,
    /// The rule in a sentence.
    pub why: String,
    /// The write; `None` if the decision was not to write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<Write>,
    /// The fate of the decision.
    #[serde(flatten)]
    pub fate: Fate,
}

/// A write, or one that would have been made in shadow mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Write {
    /// The verb, as in RBAC: `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: &'static str,
    /// The resource, such as `pods`, `replicasets.apps`, `replicasets.apps/status`.
    pub resource: String,
    /// The namespace and name; the generated name, where the server generated one.
    pub object: String,
}

/// The fate of a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "fate", content = "detail", rename_all = "camelCase")]
#[non_exhaustive]
pub enum Fate {
    /// Written, as this version.
    Written(String),
    /// Not written because of shadow mode.
    WouldWrite,
    /// Failed with this error: not written, or the outcome is unknown.
    Failed(String),
    /// Decided not to write.
    Refused,
}

/// The outcome of a pass.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Outcome {
    /// Nothing is left to do.
    Done,
    /// The key is requeued.
    Again,
    /// The key is requeued after this time.
    After(#[serde(serialize_with = "seconds")] Duration),
    /// The pass failed and is retried.
    Failed(String),
    /// The pass failed and is not retried before something changes.
    GaveUp(String),
    /// The pass did not end: it panicked, or was cancelled.
    Abandoned,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

fn is_empty(text: &Istr) -> bool {
    text.is_empty()
}

// === impl Entry ===

impl Entry {
    /// Whether the pass failed, or a write in it did.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.outcome.is_failure() || self.decisions.iter().any(|decision| matches!(decision.fate, Fate::Failed(_)))
    }

    /// Returns the size of the entry, including what it points to.
    pub(super) fn bytes(&self) -> usize {
        let seen = self.seen.capacity() * size_of::<Seen>();
        let decisions = self.decisions.capacity() * size_of::<Decision>();
        let texts = self.seen.iter().map(|seen| seen.value.capacity());
        let texts = texts.chain(self.decisions.iter().map(Decision::text_bytes)).sum::<usize>();
        size_of::<Self>() + self.key.capacity() + self.trigger.len() + seen + decisions + texts + self.outcome.bytes()
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} #{}", self.time, self.controller, self.key, self.pass)?;
        if !self.trigger.is_empty() {
            write!(f, " ({})", self.trigger)?;
        }
        for Seen { what, value } in &self.seen {
            write!(f, "\n  saw {what}: {value}")?;
        }
        for decision in &self.decisions {
            write!(f, "\n  {decision}")?;
        }
        if self.more_decisions > 0 {
            write!(f, "\n  and {} more", self.more_decisions)?;
        }
        write!(f, "\n  {} after {:?}", self.outcome, self.took)
    }
}

// === impl Decision ===

impl Decision {
    fn text_bytes(&self) -> usize {
        let write = self.write.as_ref().map_or(0, |write| write.resource.capacity() + write.object.capacity());
        let fate = match &self.fate {
            Fate::Written(text) | Fate::Failed(text) => text.capacity(),
            Fate::WouldWrite | Fate::Refused => 0,
        };
        self.why.capacity() + write + fate
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.why)?;
        if let Some(Write { verb, resource, object }) = &self.write {
            write!(f, " → {verb} {resource} {object}")?;
        }
        match &self.fate {
            Fate::Written(version) if version.is_empty() => f.write_str(": written"),
            Fate::Written(version) => write!(f, ": written at {version}"),
            Fate::WouldWrite => f.write_str(": not sent (shadow mode)"),
            Fate::Failed(error) => write!(f, ": {error}"),
            Fate::Refused => f.write_str(": refused"),
        }
    }
}

// === impl Outcome ===

impl Outcome {
    /// Whether the pass failed.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Failed(_) | Self::GaveUp(_) | Self::Abandoned)
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Failed(text) | Self::GaveUp(text) => text.capacity(),
            Self::Done | Self::Again | Self::After(_) | Self::Abandoned => 0,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Again => f.write_str("again soon"),
            Self::After(wait) => write!(f, "again in {wait:?}"),
            Self::Failed(error) => write!(f, "failed: {error}"),
            Self::GaveUp(error) => write!(f, "gave up: {error}"),
            Self::Abandoned => f.write_str("never came to an end"),
        }
    }
}

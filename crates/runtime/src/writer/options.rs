//! Options of writes: kinds of patches, of deletions, and of retries.

use std::time::Duration;

use serde_json::{Map, Value, json};
use steersman_base::Meta;

use crate::connection::exchange::encode;

/// A patch of an object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Patch<'a> {
    /// A strategic merge patch: lists are merged by the keys of the API. Only for built-in kinds.
    Strategic(&'a Value),
    /// A JSON merge patch: lists are replaced, `null` removes.
    Merge(&'a Value),
    /// A JSON merge patch whose changes belong to this field manager.
    MergeAs {
        /// The patch.
        patch: &'a Value,
        /// The field manager.
        manager: &'a str,
    },
    /// A JSON patch: a list of operations.
    Json(&'a Value),
    /// Server-side apply.
    Apply {
        /// The fields to own, with `apiVersion` and `kind`.
        object: &'a Value,
        /// The field manager.
        manager: &'a str,
        /// Whether fields of other managers are taken over.
        force: bool,
    },
}

/// The treatment of dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Propagation {
    /// Dependents are deleted later, by the garbage collector.
    Background,
    /// The object is deleted after its dependents.
    Foreground,
    /// Dependents stay, and lose their owner reference.
    Orphan,
}

/// The options of a deletion. The uid of the object is always a precondition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delete {
    /// The treatment of dependents; the default of the resource if `None`.
    pub propagation: Option<Propagation>,
    /// The grace period; the object's own if `None`. Zero deletes at once.
    pub grace_period_seconds: Option<u32>,
    /// Whether only the version that was read is deleted: a later change is a conflict.
    pub unchanged_only: bool,
}

/// A selection of objects of a collection; all by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selected<'a> {
    /// A label selector; empty selects all.
    pub labels: &'a str,
    /// A field selector; empty selects all.
    pub fields: &'a str,
}

/// The retries of a write that certainly did nothing: it was not sent, or the server refused it with `Retry-After`. Any
/// other write is sent once, whatever happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retries {
    /// The maximum number of retries.
    pub max: u32,
    /// The maximum wait: if the server asks for more, the caller gets [`Throttled`](super::WriteError::Throttled) and
    /// can do something else meanwhile.
    pub wait_max: Duration,
}

// === impl Patch ===

impl Patch<'_> {
    pub(crate) fn content_type(&self) -> &'static str {
        match self {
            Self::Strategic(_) => "application/strategic-merge-patch+json",
            Self::Merge(_) | Self::MergeAs { .. } => "application/merge-patch+json",
            Self::Json(_) => "application/json-patch+json",
            // JSON is YAML; servers before 1.32 know no other name for it.
            Self::Apply { .. } => "application/apply-patch+yaml",
        }
    }

    pub(crate) fn body(&self) -> &Value {
        match self {
            Self::Strategic(body)
            | Self::Merge(body)
            | Self::MergeAs { patch: body, .. }
            | Self::Json(body)
            | Self::Apply { object: body, .. } => body,
        }
    }

    pub(super) fn query(&self) -> String {
        match self {
            Self::Apply { manager, force, .. } => format!("?fieldManager={}&force={force}", encoded(manager)),
            Self::MergeAs { manager, .. } => format!("?fieldManager={}", encoded(manager)),
            Self::Strategic(_) | Self::Merge(_) | Self::Json(_) => String::new(),
        }
    }
}

// === impl Propagation ===

impl Propagation {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Background => "Background",
            Self::Foreground => "Foreground",
            Self::Orphan => "Orphan",
        }
    }
}

// === impl Delete ===

impl Delete {
    /// Returns the body of the request for `object`; `None` for a collection.
    pub(super) fn body(&self, object: Option<&Meta>) -> Value {
        let mut body = json!({ "kind": "DeleteOptions", "apiVersion": "v1" });
        if let Some(propagation) = self.propagation {
            body["propagationPolicy"] = json!(propagation.as_str());
        }
        if let Some(seconds) = self.grace_period_seconds {
            body["gracePeriodSeconds"] = json!(seconds);
        }
        let mut preconditions = Map::new();
        // An object that was never read has no uid, and so no precondition.
        if let Some(object) = object.filter(|object| !object.uid.is_empty()) {
            preconditions.insert("uid".into(), json!(object.uid));
        }
        if let Some(object) = object.filter(|_| self.unchanged_only) {
            preconditions.insert("resourceVersion".into(), json!(object.resource_version));
        }
        if !preconditions.is_empty() {
            body["preconditions"] = Value::Object(preconditions);
        }
        body
    }
}

impl Delete {
    /// Sets the grace period; zero deletes at once.
    #[must_use]
    pub fn grace_period_seconds(mut self, seconds: u32) -> Self {
        self.grace_period_seconds = Some(seconds);
        self
    }

    /// Deletes only the version that was read: a later change is a conflict.
    #[must_use]
    pub fn unchanged_only(mut self) -> Self {
        self.unchanged_only = true;
        self
    }
}

impl From<Propagation> for Delete {
    fn from(propagation: Propagation) -> Self {
        Self { propagation: Some(propagation), ..Self::default() }
    }
}

// === impl Selected ===

impl Selected<'_> {
    pub(super) fn query(&self) -> String {
        let parts = [("labelSelector", self.labels), ("fieldSelector", self.fields)];
        let parts = parts.iter().filter(|(_, value)| !value.is_empty());
        let query: Vec<String> = parts.map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) }
    }
}

// === impl Retries ===

impl Retries {
    /// No retries.
    pub const NEVER: Self = Self { max: 0, wait_max: Duration::ZERO };

    /// Returns how long to wait before the write is sent again, if it is: `asked` is the server's wish.
    pub(super) fn wait(&self, sent: u32, asked: Duration) -> Option<Duration> {
        (sent <= self.max && asked <= self.wait_max).then_some(asked)
    }
}

impl Default for Retries {
    /// An overloaded server asks for one second; three of them hold up a worker less than another pass.
    fn default() -> Self {
        Self { max: 3, wait_max: Duration::from_secs(2) }
    }
}

/// Encodes a value of a query.
fn encoded(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    encode(&mut text, value);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delete_means_one_object_and_says_only_what_was_asked_for() {
        let object = Meta { uid: "u".into(), resource_version: "7".into(), ..Meta::default() };
        let check = |delete: Delete, object: Option<&Meta>, want: Value| {
            let mut got = delete.body(object);
            let fields = got.as_object_mut().unwrap();
            assert_eq!(
                (fields.remove("kind"), fields.remove("apiVersion")),
                (Some("DeleteOptions".into()), Some("v1".into()))
            );
            assert_eq!(got, want, "{delete:?}");
        };
        check(Delete::default(), Some(&object), json!({"preconditions": {"uid": "u"}}));
        check(Delete::default(), None, json!({}));
        check(Delete::default(), Some(&Meta::default()), json!({}));
        check(
            Delete { grace_period_seconds: Some(0), unchanged_only: true, ..Propagation::Foreground.into() },
            Some(&object),
            json!({
                "propagationPolicy": "Foreground", "gracePeriodSeconds": 0,
                "preconditions": {"uid": "u", "resourceVersion": "7"},
            }),
        );
    }

    #[test]
    fn queries_are_encoded() {
        let body = json!({});
        let apply = Patch::Apply { object: &body, manager: "a b/c", force: true };
        assert_eq!(apply.query(), "?fieldManager=a%20b%2Fc&force=true");
        assert_eq!(Patch::Merge(&body).query(), "");
        assert_eq!(Selected::default().query(), "");
        let selected = Selected { labels: "app in (a,ä)", fields: "metadata.name!=x" };
        assert_eq!(selected.query(), "?labelSelector=app%20in%20%28a%2C%C3%A4%29&fieldSelector=metadata.name%21%3Dx");
    }

    #[test]
    fn retries_end() {
        let retries = Retries { max: 2, wait_max: Duration::from_secs(5) };
        let second = Duration::from_secs(1);
        assert_eq!([1, 2, 3].map(|sent| retries.wait(sent, second)), [Some(second), Some(second), None]);
        assert_eq!(retries.wait(1, Duration::from_secs(6)), None);
        assert_eq!(Retries::NEVER.wait(1, Duration::ZERO), None);
    }
}

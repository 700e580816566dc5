//! API groups that another part of the process serves beside an API server.

use serde_json::Value;

/// A source of API groups.
pub trait Aggregated: Send + Sync {
    /// Returns the versions that it serves, the preferred one of a group first. Groups and versions never change; their
    /// resources may.
    fn versions(&self) -> Vec<AggregatedVersion>;

    /// Responds to a GET: with a status code and an object, a list, or a `Status`. The path is the whole path of the request,
    /// not decoded; so is the query.
    fn get(&self, path: &str, query: &str) -> (u16, Value);
}

/// A version of an aggregated group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AggregatedVersion {
    /// The group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The resources, each as an `APIResource` of discovery.
    pub resources: Vec<Value>,
}

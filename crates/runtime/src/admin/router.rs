//! The handler of a path: an exact match, else the longest prefix.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use parking_lot::RwLock;

use super::Call;
use crate::serving::Response;

/// A path, or a name on a page, that is already in use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is served already: choose another path")]
pub struct PathTaken(pub(super) String);

pub(super) type Handler = Arc<dyn Fn(Call) -> BoxFuture<'static, Response> + Send + Sync>;

#[derive(Default)]
pub(super) struct Router(RwLock<Table>);

#[derive(Default)]
struct Table {
    exact: BTreeMap<String, Handler>,
    /// Prefixes, each with a trailing slash.
    prefixes: BTreeMap<String, Handler>,
}

// === impl Router ===

impl Router {
    pub(super) fn exact(&self, path: &str, handler: Handler) -> Result<(), PathTaken> {
        insert(&mut self.0.write().exact, path, handler)
    }

    /// Adds a handler for everything below `path`, which ends in a slash, and for the path without it.
    pub(super) fn prefix(&self, path: &str, handler: Handler) -> Result<(), PathTaken> {
        insert(&mut self.0.write().prefixes, path, handler)
    }

    /// Removes a path and everything below.
    pub(super) fn remove(&self, path: &str) {
        let below = format!("{path}/");
        let stays = |known: &String| known != path && !known.starts_with(&below);
        let mut table = self.0.write();
        table.exact.retain(|known, _| stays(known));
        table.prefixes.retain(|known, _| stays(known));
    }

    pub(super) fn find(&self, path: &str) -> Option<Handler> {
        let table = self.0.read();
        if let Some(handler) = table.exact.get(path) {
            return Some(handler.clone());
        }
        let below = |prefix: &&String| path.starts_with(prefix.as_str()) || prefix.strip_suffix('/') == Some(path);
        // Prefixes of one path sort by length.
        table.prefixes.iter().rev().find(|(prefix, _)| below(prefix)).map(|(_, handler)| handler.clone())
    }

    /// Returns every path, in order.
    pub(super) fn listed(&self) -> Vec<String> {
        let table = self.0.read();
        let mut paths: Vec<_> = table.exact.keys().chain(table.prefixes.keys()).cloned().collect();
        paths.sort_unstable();
        paths
    }
}

fn insert(paths: &mut BTreeMap<String, Handler>, path: &str, handler: Handler) -> Result<(), PathTaken> {
    if paths.contains_key(path) {
        return Err(PathTaken(path.to_owned()));
    }
    paths.insert(path.to_owned(), handler);
    Ok(())
}

//! An act of `steersman up --demo`.
//!
//! 1. What is shown are the events of the API server's watches, at the time of their arrival: nothing is staged.
//! 2. Every part ends when the cluster is as it should be. One that does not get there ends the demo with an error that
//!    says how far it got.

use std::time::Duration;

use futures::stream::{BoxStream, SelectAll};
use futures::{StreamExt, TryStreamExt};
use kube::api::{ListParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::super::CommandError;
use super::story::Line;

/// The state of the cluster that an act follows.
pub(super) trait State {
    /// A change of an object of the act.
    type Change: Send + 'static;

    /// Applies a change; returns the lines to print.
    fn apply(&mut self, change: &Self::Change) -> Vec<Line>;

    /// Returns the state, for the error message.
    fn so_far(&self) -> String;
}

/// An act: what it follows, and what it knows.
pub(super) struct Act<S: State> {
    pub(super) state: S,
    pub(super) begun: Instant,
    client: Client,
    changes: SelectAll<Changes<S::Change>>,
}

/// The changes of objects of a kind.
pub(super) type Changes<C> = BoxStream<'static, Result<Option<C>, kube::Error>>;

/// The one in front of the screen.
pub(super) const YOU: &str = "you";
/// Far more than any part takes.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

// === impl Act ===

impl<S: State> Act<S> {
    pub(super) fn new(
        client: Client,
        begun: Instant,
        state: S,
        changes: impl IntoIterator<Item = Changes<S::Change>>,
    ) -> Self {
        Self { state, begun, client, changes: futures::stream::select_all(changes) }
    }

    /// The objects of a kind in the demo's namespace.
    pub(super) fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::default_namespaced(self.client.clone())
    }

    pub(super) fn client(&self) -> Client {
        self.client.clone()
    }

    pub(super) async fn create<K>(&self, object: Value) -> Result<(), CommandError>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + serde::Serialize
            + serde::de::DeserializeOwned,
    {
        self.api::<K>().create(&PostParams::default(), &typed(object)?).await.map_err(refused)?;
        Ok(())
    }

    /// Prints what happens until the cluster is as it should be.
    pub(super) async fn until(&mut self, what: &str, is_done: impl Fn(&S) -> bool) -> Result<(), CommandError> {
        let deadline = Instant::now() + PATIENCE;
        while !is_done(&self.state) {
            let failed = |why: String| {
                CommandError(format!("the demo waited for this: {what}. {why}; there are {}", self.state.so_far()))
            };
            let change = match timeout_at(deadline, self.changes.next()).await {
                Ok(Some(change)) => change.map_err(refused)?,
                Ok(None) => return Err(failed("The watches have ended".to_owned())),
                Err(_) => return Err(failed(format!("It did not happen within {} s", PATIENCE.as_secs()))),
            };
            for line in change.map(|change| self.state.apply(&change)).unwrap_or_default() {
                self.print(&line);
            }
        }
        Ok(())
    }

    /// Prints a line with its time.
    pub(super) fn print(&self, line: &Line) {
        say(&format!("   {:>7.3} s  {:<18} {}", self.begun.elapsed().as_secs_f64(), line.who, line.what));
    }

    /// Prints what the one in front of the screen does.
    pub(super) fn you(&self, what: impl Into<String>) {
        self.print(&Line::new(YOU, what));
    }
}

/// Follows objects of a kind from now on.
pub(super) async fn follow<K, C>(
    api: Api<K>,
    labels: &str,
    change: impl Fn(WatchEvent<K>) -> Option<C> + Send + Sync + 'static,
) -> Result<Changes<C>, kube::Error>
where
    C: Send + 'static,
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned + Send + 'static,
{
    let from = api.list_metadata(&ListParams::default().limit(1)).await?.metadata.resource_version.unwrap_or_default();
    let events = api.watch(&WatchParams::default().labels(labels), &from).await?;
    Ok(events.map_ok(change).boxed())
}

/// Returns the object of an event, unless it is deleted.
pub(super) fn changed<K>(event: WatchEvent<K>) -> Option<K> {
    match event {
        WatchEvent::Added(object) | WatchEvent::Modified(object) => Some(object),
        _ => None,
    }
}

/// Standard output may be closed: that is not an error.
pub(super) fn say(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout(), "{text}");
}

pub(super) fn typed<K: serde::de::DeserializeOwned>(object: Value) -> Result<K, CommandError> {
    serde_json::from_value(object).map_err(|error| CommandError(format!("the demo is broken: {error}")))
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
pub(super) fn refused(error: kube::Error) -> CommandError {
    CommandError(format!("the API server refused what the demo asked for: {error}"))
}

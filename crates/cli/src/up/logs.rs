//! The source of `kubectl logs`: the log of a simulated kubelet, for the API server.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::stream::{self, BoxStream, StreamExt};
use steersman_apiserver::logs::{Line, Log, Logs, NoLog, Wanted};
use steersman_base::{MicroTime, Time};
use steersman_nodes::{LogQuery, Nodes};

/// The logs of nodes that are built after the server.
#[derive(Clone, Default)]
pub(super) struct NodeLogs(Arc<OnceLock<Nodes>>);

/// A follower of a run of a container.
struct Follower {
    nodes: Nodes,
    wanted: Wanted,
    /// The start of the run.
    started: Time,
    /// The number of lines shown.
    shown: usize,
}

/// The polling period of a follower: immediate, for a reader.
const LOOK_EVERY: Duration = Duration::from_millis(200);

// === impl NodeLogs ===

impl NodeLogs {
    pub(super) fn come_from(&self, nodes: Nodes) {
        // There is one fleet, so it is set once.
        let _ = self.0.set(nodes);
    }
}

impl Logs for NodeLogs {
    fn open(&self, wanted: &Wanted) -> Result<Log, NoLog> {
        let Some(nodes) = self.0.get() else { return Ok(Log { lines: Vec::new(), more: None }) };
        let log = nodes.log(&wanted.namespace, &wanted.pod, &query(wanted, wanted.previous));
        let log = log.map_err(|error| NoLog(error.to_string()))?;
        let goes_on = wanted.follow && !log.is_over;
        let lines: Vec<Line> = lines(log.lines, goes_on).collect();
        let more = goes_on.then(|| {
            let nodes = nodes.clone();
            let wanted = wanted.clone();
            let shown = lines.len();
            Follower { nodes, wanted, started: log.started, shown }.lines()
        });
        Ok(Log { lines, more })
    }
}

// === impl Follower ===

impl Follower {
    /// Returns new lines as they are printed, until the run is over.
    fn lines(self) -> BoxStream<'static, Line> {
        let looks = stream::unfold(Some(self), |follower| async {
            let mut follower = follower?;
            tokio::time::sleep(LOOK_EVERY).await;
            let (lines, is_over) = follower.look();
            Some((stream::iter(lines), (!is_over).then_some(follower)))
        });
        looks.flatten().boxed()
    }

    /// Returns the new lines, and whether the log is complete.
    fn look(&mut self) -> (Vec<Line>, bool) {
        // A run that is over may already be the one before the next.
        let runs = [self.wanted.previous, true].map(|previous| {
            let log = self.nodes.log(&self.wanted.namespace, &self.wanted.pod, &query(&self.wanted, previous));
            log.ok().filter(|log| log.started == self.started)
        });
        let Some(log) = runs.into_iter().flatten().next() else { return (Vec::new(), true) };
        let new: Vec<Line> = lines(log.lines, !log.is_over).skip(self.shown).collect();
        self.shown += new.len();
        (new, log.is_over)
    }
}

fn query(wanted: &Wanted, previous: bool) -> LogQuery {
    LogQuery { container: Some(wanted.container.clone()), previous, ..LogQuery::default() }
}

/// Returns the output; of a running container, only complete lines.
fn lines(printed: Vec<(MicroTime, String)>, goes_on: bool) -> impl Iterator<Item = Line> {
    printed.into_iter().filter_map(move |(time, mut text)| {
        let is_complete = text.ends_with('\n');
        text.truncate(text.len() - usize::from(is_complete));
        (is_complete || !goes_on).then_some(Line { time, text })
    })
}

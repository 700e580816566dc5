//! What `kubectl logs` shows: the simulated kubelets' answer, handed to the API server.

use std::sync::{Arc, OnceLock};

use steersman_apiserver::logs::{Line, Log, Logs, NoLog, Wanted};
use steersman_base::MicroTime;
use steersman_nodes::{LogQuery, Nodes};

/// The logs of nodes that are built after the server.
#[derive(Clone, Default)]
pub(super) struct NodeLogs(Arc<OnceLock<Nodes>>);

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
        let query = LogQuery {
            container: Some(wanted.container.clone()),
            previous: wanted.previous,
            timestamps: true,
            ..LogQuery::default()
        };
        let text = nodes.logs(&wanted.namespace, &wanted.pod, &query).map_err(|error| NoLog(error.to_string()))?;
        Ok(Log { lines: text.lines().map(line).collect(), more: None })
    }
}

/// A line with its time in front of it.
fn line(text: &str) -> Line {
    let (time, said) = text.split_once(' ').unwrap_or((text, ""));
    match time.parse::<MicroTime>() {
        Ok(time) => Line { time, text: said.to_owned() },
        Err(_) => Line { time: MicroTime::default(), text: text.to_owned() },
    }
}

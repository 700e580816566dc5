//! Heartbeats of all nodes, in one task: leases and statuses, each at its time.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use serde_json::json;
use steersman_base::{Clock, Istr, MicroTime, ObjectKey, Time};
use steersman_informer::Lister;
use steersman_model::core::NodeView;
use steersman_runtime::{Error, Patch, Runnable, WriteError, Writer};
use tokio_util::sync::CancellationToken;

use super::{LEASES, LEASES_IN, NODES, Why, ordinary};
use crate::fleet::{Fleet, Machine};
use crate::node::schedule::Schedule;
use crate::node::{STATUS_EVERY, object};
use crate::options::NodesOptions;

/// Sends the heartbeats of all nodes.
pub(in crate::node) struct Heartbeats {
    pub(in crate::node) nodes: Lister<NodeView>,
    pub(in crate::node) fleet: Fleet,
    pub(in crate::node) options: Arc<NodesOptions>,
    pub(in crate::node) writer: Writer,
    pub(in crate::node) clock: Clock,
}

/// The number of concurrent requests.
const REQUESTS_MAX: usize = 32;
/// The time limit of a request, so that one node does not delay the others: as kubelets.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// The retry delay after a failure.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// The wait if nothing is due; a change of a node ends it.
const IDLE: Duration = STATUS_EVERY;

// === impl Heart ===

impl Runnable for Heartbeats {
    fn name(&self) -> String {
        "heartbeats of simulated nodes".to_owned()
    }

    async fn run(self, stop: CancellationToken) -> Result<(), Error> {
        loop {
            let Some(wait) = stop.run_until_cancelled(self.send_due()).await else { return Ok(()) };
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                () = self.fleet.changed() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }
}

impl Heartbeats {
    /// Sends all heartbeats that are due. Returns when the next is.
    async fn send_due(&self) -> Duration {
        let working_nodes = self.fleet.working_nodes();
        let now = self.clock.now_micros();
        let due = working_nodes.iter().filter(|(_, machine)| self.is_due(machine, now));
        // Collected first: a stream of futures that borrow cannot be sent between threads otherwise.
        let beats: Vec<_> = due.map(|(name, machine)| self.send_one_within(name, machine)).collect();
        let beats = futures::stream::iter(beats).buffer_unordered(REQUESTS_MAX);
        let failed = beats.filter(|send_one_within| futures::future::ready(!send_one_within)).count().await;
        if failed > 0 {
            return TRY_AGAIN_AFTER;
        }
        let now = self.clock.now_micros();
        let nexts = working_nodes.iter().flat_map(|(_, machine)| {
            [self.options.lease_every(), STATUS_EVERY].map(|period| self.schedule(period, machine).next(now))
        });
        nexts.min().unwrap_or(IDLE)
    }

    /// Sends what is due for a node. Returns whether it succeeded.
    async fn send_one_within(&self, name: &Istr, machine: &Machine) -> bool {
        let error = match tokio::time::timeout(ANSWER_WITHIN, self.send_one(name, machine)).await {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {ANSWER_WITHIN:?}"),
        };
        tracing::warn!(node = %name, error, "a heartbeat failed; it will be tried again");
        false
    }

    async fn send_one(&self, name: &Istr, machine: &Machine) -> Result<(), Error> {
        let Some(node) = self.nodes.get(&ObjectKey::cluster(name)) else { return Ok(()) };
        let now = self.clock.now_micros();
        if self.schedule(self.options.lease_every(), machine).is_due(machine.renewed, now) {
            self.renew(&node, now).await?;
            self.fleet.note(name, |machine| machine.renewed = Some(now));
        }
        if self.schedule(STATUS_EVERY, machine).is_due(machine.reported, now) {
            report(&self.writer, &node, machine, &self.options, now.to_seconds()).await?;
            let sent = &machine.version;
            self.fleet.note(name, |machine| machine.reported = (machine.version == *sent).then_some(now));
        }
        Ok(())
    }

    fn is_due(&self, machine: &Machine, now: MicroTime) -> bool {
        self.schedule(self.options.lease_every(), machine).is_due(machine.renewed, now)
            || self.schedule(STATUS_EVERY, machine).is_due(machine.reported, now)
    }

    async fn renew(&self, node: &NodeView, now: MicroTime) -> Result<(), Error> {
        let name = &node.metadata.name;
        let why = Why::Renew { node: name.clone() };
        let write = self.writer.unowned();
        let spec = json!({
            "holderIdentity": name,
            "leaseDurationSeconds": self.options.lease_duration.as_secs(),
            "renewTime": now,
        });
        let key = ObjectKey::new(LEASES_IN, name);
        let patch = json!({ "spec": spec });
        match write.patch(LEASES, &key, Patch::Merge(&patch), &why).await {
            Err(WriteError::NotFound) => {
                let body = object::lease(&node.metadata, &spec).to_string().into_bytes();
                ordinary(write.create_in(Some(LEASES_IN), LEASES, body, &why).await.map(drop))
            }
            outcome => ordinary(outcome.map(drop)),
        }
    }

    fn schedule(&self, period: Duration, machine: &Machine) -> Schedule {
        Schedule::new(period, machine.number.saturating_sub(self.options.first), self.options.count)
    }
}

/// Writes the status of a node.
pub(super) async fn report(
    writer: &Writer,
    node: &NodeView,
    machine: &Machine,
    options: &NodesOptions,
    now: Time,
) -> Result<(), Error> {
    let meta = &node.metadata;
    let status = object::status(&meta.name, machine, options, Some(node), now);
    let patch = json!({ "metadata": { "uid": meta.uid }, "status": status });
    let write = writer.on_behalf_of(meta);
    let why = Why::Status { node: meta.name.clone() };
    let outcome = write.patch_subresource(NODES, &meta.key(), "status", Patch::Strategic(&patch), &why).await;
    ordinary(outcome.map(drop))
}

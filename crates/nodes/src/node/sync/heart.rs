//! Heartbeats of all nodes, in one task: leases and statuses, each at its moment.

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
use crate::node::beat::Beat;
use crate::node::{LEASE_DURATION, LEASE_EVERY, STATUS_EVERY, object};
use crate::options::NodesOptions;

/// Lets the cluster know that our nodes live.
pub(in crate::node) struct Heart {
    pub(in crate::node) nodes: Lister<NodeView>,
    pub(in crate::node) fleet: Fleet,
    pub(in crate::node) options: Arc<NodesOptions>,
    pub(in crate::node) writer: Writer,
    pub(in crate::node) clock: Clock,
}

/// So many answers are waited for at once.
const BEATS_MAX: usize = 32;
/// An answer that takes longer is not waited for, so that one node's does not cost the others theirs: as kubelets.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// What failed is tried again after this.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// When there is nothing to wait for, somebody will tell.
const IDLE: Duration = STATUS_EVERY;

// === impl Heart ===

impl Runnable for Heart {
    fn name(&self) -> String {
        "heartbeats of simulated nodes".to_owned()
    }

    async fn run(self, stop: CancellationToken) -> Result<(), Error> {
        loop {
            let Some(wait) = stop.run_until_cancelled(self.beat()).await else { return Ok(()) };
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                () = self.fleet.stirred() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }
}

impl Heart {
    /// Does all that is due. Answers when the next is.
    async fn beat(&self) -> Duration {
        let (beating, now) = (self.fleet.beating(), self.clock.now_micros());
        let due = beating.iter().filter(|(_, machine)| self.is_due(machine, now));
        // Collected first: a stream of futures that borrow cannot be sent between threads otherwise.
        let beats: Vec<_> = due.map(|(name, machine)| self.has_beaten(name, machine)).collect();
        let beats = futures::stream::iter(beats).buffer_unordered(BEATS_MAX);
        let failed = beats.filter(|has_beaten| futures::future::ready(!has_beaten)).count().await;
        if failed > 0 {
            return TRY_AGAIN_AFTER;
        }
        let now = self.clock.now_micros();
        let nexts = beating
            .iter()
            .flat_map(|(_, machine)| [LEASE_EVERY, STATUS_EVERY].map(|period| self.moments(period, machine).next(now)));
        nexts.min().unwrap_or(IDLE)
    }

    /// Does what is due for a node. Answers whether that went well.
    async fn has_beaten(&self, name: &Istr, machine: &Machine) -> bool {
        let error = match tokio::time::timeout(ANSWER_WITHIN, self.beat_one(name, machine)).await {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {ANSWER_WITHIN:?}"),
        };
        tracing::warn!(node = %name, error, "a heartbeat failed; it will be tried again");
        false
    }

    async fn beat_one(&self, name: &Istr, machine: &Machine) -> Result<(), Error> {
        let Some(node) = self.nodes.get(&ObjectKey::cluster(name)) else { return Ok(()) };
        let now = self.clock.now_micros();
        if self.moments(LEASE_EVERY, machine).is_due(machine.renewed, now) {
            self.renew(&node, now).await?;
            self.fleet.note(name, |machine| machine.renewed = Some(now));
        }
        if self.moments(STATUS_EVERY, machine).is_due(machine.told, now) {
            tell(&self.writer, &node, machine, &self.options, now.to_seconds()).await?;
            self.fleet.note(name, |machine| machine.told = Some(now));
        }
        Ok(())
    }

    fn is_due(&self, machine: &Machine, now: MicroTime) -> bool {
        self.moments(LEASE_EVERY, machine).is_due(machine.renewed, now)
            || self.moments(STATUS_EVERY, machine).is_due(machine.told, now)
    }

    async fn renew(&self, node: &NodeView, now: MicroTime) -> Result<(), Error> {
        let name = &node.metadata.name;
        let (why, write) = (Why::Renew { node: name.clone() }, self.writer.unowned());
        let spec = json!({
            "holderIdentity": name,
            "leaseDurationSeconds": LEASE_DURATION.as_secs(),
            "renewTime": now,
        });
        let (key, patch) = (ObjectKey::new(LEASES_IN, name), json!({ "spec": spec }));
        match write.patch(LEASES, &key, Patch::Merge(&patch), &why).await {
            Err(WriteError::NotFound) => {
                let body = object::lease(&node.metadata, &spec).to_string().into_bytes();
                ordinary(write.create_in(Some(LEASES_IN), LEASES, body, &why).await.map(drop))
            }
            outcome => ordinary(outcome.map(drop)),
        }
    }

    fn moments(&self, period: Duration, machine: &Machine) -> Beat {
        Beat::new(period, machine.number.saturating_sub(self.options.first), self.options.count)
    }
}

/// Says how the node is.
pub(super) async fn tell(
    writer: &Writer,
    node: &NodeView,
    machine: &Machine,
    options: &NodesOptions,
    now: Time,
) -> Result<(), Error> {
    let meta = &node.metadata;
    let status = object::status(&meta.name, machine.number, options, Some(node), now);
    let patch = json!({ "metadata": { "uid": meta.uid }, "status": status });
    let (write, why) = (writer.on_behalf_of(meta), Why::Status { node: meta.name.clone() });
    let outcome = write.patch_subresource(NODES, &meta.key(), "status", Patch::Strategic(&patch), &why).await;
    ordinary(outcome.map(drop))
}

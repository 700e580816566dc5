//! The shell: observe → step → write.

use std::sync::Arc;
use std::time::Duration;

use ipnet::Ipv4Net;
use parking_lot::Mutex;
use steersman_base::{Istr, MicroTime, ObjectKey, Resource};
use steersman_informer::{Index, Lister};
use steersman_model::Kind;
use steersman_model::core::NodeView;
use steersman_runtime::events::{About, EventType, Recorder};
use steersman_runtime::{Action, Context, Delete, Error, Patch, Reconciler, WriteError, reasons};

use super::events;
use super::ipam::Addresses;
use super::status::{self, PodAddresses};
use super::step::{Step, step};
use crate::fleet::{Fleet, Machine};
use crate::node;
use crate::options::NodesOptions;
use crate::view::SimPodView;
use crate::volumes::Volumes;

const PODS: &Resource = &SimPodView::RESOURCE;

/// The kubelets' shell.
pub(super) struct Kubelets {
    pub(super) pods: Lister<SimPodView>,
    pub(super) nodes: Lister<NodeView>,
    pub(super) by_node: Index<Istr, SimPodView>,
    pub(super) fleet: Fleet,
    pub(super) options: Arc<NodesOptions>,
    /// The volumes of pods, if pods have to wait for them.
    pub(super) volumes: Option<Volumes>,
    pub(super) addresses: Mutex<Addresses>,
    pub(super) events: Recorder,
}

reasons! {
    /// Why kubelets write.
    pub enum Why {
        /// The state of a pod has changed.
        Status { phase: &'static str } => "it is {phase}, and something in it has changed",
        /// Nothing of the pod is left.
        Ended => "its deletion was asked for, and nothing of it runs any more",
    }
}

/// The retry period of a pod for which its node has no address.
const NO_ADDRESS_AGAIN: Duration = Duration::from_secs(10);

// === impl Kubelets ===

impl Reconciler for Kubelets {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(pod) = self.pods.get(key) else {
            self.addresses.lock().release(key);
            self.fleet.set_unready(key, false);
            return Ok(Action::Done);
        };
        // A silent node does nothing; it catches up when it is resumed.
        let Some(machine) = self.fleet.working(&pod.spec.node_name) else { return Ok(Action::Done) };
        if let Some(volumes) = &self.volumes {
            let node = self.nodes.get(&ObjectKey::cluster(&pod.spec.node_name));
            if volumes.are_awaited(&pod, node.as_deref()) {
                return Ok(Action::Done);
            }
        }
        let now = cx.clock.now_micros();
        let step = step(&pod, &self.options.stages, self.fleet.is_unready(key), now);
        let Some(addresses) = self.addresses(&pod, &machine) else {
            tracing::warn!(pod = %key, node = %pod.spec.node_name, "the node has no address for the pod: its range is used up, or it has none yet");
            return Ok(Action::After(NO_ADDRESS_AGAIN));
        };
        let is_seen = !step.remove || !pod.metadata.finalizers().is_empty();
        let is_so = !is_seen || self.put_status(cx, &pod, &step, &addresses).await?;
        if step.remove {
            remove(cx, &pod).await?;
        }
        if is_so {
            self.report(&pod, &step, now);
        }
        Ok(step.wake.map_or(Action::Done, Action::After))
    }
}

impl Kubelets {
    /// Writes the status of a pod. Returns whether it is up to date.
    async fn put_status(
        &self,
        cx: &Context,
        pod: &SimPodView,
        step: &Step<'_>,
        addresses: &PodAddresses,
    ) -> Result<bool, Error> {
        let Some(patch) = status::patch(&step.life, addresses, cx.clock.now()) else { return Ok(true) };
        let meta = &pod.metadata;
        let why = Why::Status { phase: step.life.phase().as_str() };
        let write = cx.writer.on_behalf_of(meta);
        match write.patch_subresource(PODS, &meta.key(), "status", Patch::Strategic(&patch), &why).await {
            Ok(_) => Ok(true),
            // Deleted or changed meanwhile: the cache will show it.
            Err(WriteError::NotFound | WriteError::Conflict) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends the events of a pod.
    fn report(&self, pod: &SimPodView, step: &Step<'_>, now: MicroTime) {
        if step.occurred.is_empty() {
            return;
        }
        let events = events::events(&step.life, &step.occurred);
        let is_good = |event: &&events::PodEvent| event.type_ == EventType::Normal;
        let sends_all = self.fleet.may_send(events.iter().filter(is_good).count(), now);
        let recorder = self.events.on_host(pod.spec.node_name.clone());
        for event in events.iter().filter(|event| sends_all || !is_good(event)) {
            let about = About::new(PODS, &pod.metadata).field_path(&event.field_path);
            recorder.record(&about, event.type_, event.reason, event.note.as_str());
        }
    }

    /// Returns the addresses of a pod; `None` if there is no address for it.
    fn addresses(&self, pod: &SimPodView, machine: &Machine) -> Option<PodAddresses> {
        let host_ip = node::host_address(machine.number).to_string();
        let key = pod.metadata.key();
        let meta = &pod.metadata;
        let name = &pod.spec.node_name;
        if pod.spec.host_network {
            return Some(PodAddresses { pod_ip: host_ip.clone(), host_ip });
        }
        // One that ends before it had an address gets none any more: its node may have no range yet.
        let needs_none = meta.is_terminating() && pod.status.pod_ip.is_empty();
        if pod.is_over() || needs_none {
            // Its address is free for others; the status keeps it.
            self.addresses.lock().release(&key);
            return Some(PodAddresses { pod_ip: pod.status.pod_ip.to_string(), host_ip });
        }
        let mut addresses = self.addresses.lock();
        if addresses.set_range(name, self.range(name, machine)?) {
            for pod in self.by_node.get(name) {
                if !pod.is_over() && !pod.spec.host_network {
                    addresses.claim(&pod.metadata.key(), &pod.metadata.uid, name, &pod.status.pod_ip);
                }
            }
        }
        if !pod.status.pod_ip.is_empty() {
            addresses.claim(&key, &meta.uid, name, &pod.status.pod_ip);
        }
        let pod_ip = addresses.address(&key, &meta.uid, name)?;
        Some(PodAddresses { host_ip, pod_ip })
    }

    /// Returns the address range of a node's pods: from the Node object, or else the default if nodes register with one.
    fn range(&self, name: &Istr, machine: &Machine) -> Option<Ipv4Net> {
        let node = self.nodes.get(&ObjectKey::cluster(name));
        let said = node.and_then(|node| {
            let all = std::iter::once(&node.spec.pod_cidr).chain(&node.spec.pod_cidrs);
            all.filter_map(|range| range.parse::<Ipv4Net>().ok()).next()
        });
        said.or_else(|| self.options.pod_ranges.then(|| node::pod_range(machine.number)))
    }
}

/// Deletes the object, by uid.
async fn remove(cx: &Context, pod: &SimPodView) -> Result<(), Error> {
    let how = Delete::default().grace_period_seconds(0);
    match cx.writer.on_behalf_of(&pod.metadata).delete(PODS, &pod.metadata, how, &Why::Ended).await {
        Ok(()) | Err(WriteError::NotFound | WriteError::Conflict) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

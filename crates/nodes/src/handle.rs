//! The handle to simulated nodes: construction, logs, and faults.

use std::sync::Arc;

use steersman_base::{Clock, Istr, ObjectKey};
use steersman_informer::Lister;
use steersman_runtime::{BuildContext, Controller};

use crate::fleet::{Fleet, Health, Machine, Registration};
use crate::kubelet::{self, Log, LogError, LogQuery};
use crate::options::{NodesError, NodesOptions};
use crate::view::SimPodView;
use crate::volumes::{self, Volumes};
use crate::{attacher, devices, node, provisioner, resizer, scheduler};

/// Simulated nodes. Cheap to clone; clones share the same nodes.
#[derive(Clone)]
pub struct Nodes {
    fleet: Fleet,
    pods: Lister<SimPodView>,
    clock: Clock,
    registry: Controller,
    kubelets: Controller,
}

/// There is no simulated node of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no simulated node called {name:?}; there are {known}")]
pub struct NoSuchNode {
    name: String,
    known: String,
}

/// The number of nodes that the error lists.
const NAMED_MAX: usize = 5;

// === impl Nodes ===

impl Nodes {
    /// Adds nodes to a manager. They start when it runs.
    ///
    /// # Errors
    /// The options are invalid; the error says why.
    pub fn build(cx: &BuildContext, options: NodesOptions) -> Result<Self, NodesError> {
        options.check()?;
        let options = Arc::new(options);
        let fleet = Fleet::new(&options, cx.clock.now_micros());
        let pods = cx.informers.informer::<SimPodView>();
        // Another set of nodes of the same manager may have done it already.
        let _ = pods.transform(SimPodView::keep_own_annotations);
        let registry = node::build(cx, &options, &fleet);
        if options.scheduler {
            scheduler::build(cx, &pods, &options, &fleet);
        }
        if let Some(metrics) = &options.metrics {
            metrics.read_from(cx, &pods, &fleet);
        }
        if let Some(provisioner) = options.provisioner {
            provisioner::build(cx, provisioner);
            resizer::build(cx);
        }
        if let Some(driver) = options.devices {
            devices::build(cx, &pods, driver);
        }
        let volumes = options.attacher.map(|attacher| {
            attacher::build(cx, attacher, &fleet);
            let volumes = Volumes::new(cx);
            volumes::build(cx, &pods, &volumes, &fleet);
            volumes
        });
        let kubelets = kubelet::build(cx, &pods, &options, &fleet, volumes);
        Ok(Self { fleet, pods: pods.lister(), clock: cx.clock.clone(), registry, kubelets })
    }

    /// Returns the names of the nodes.
    #[must_use]
    pub fn names(&self) -> Vec<Istr> {
        self.fleet.names()
    }

    /// Returns the log of a container of a pod.
    ///
    /// # Errors
    /// There is no such container, or it has not started; the error has a kubelet's words.
    pub fn logs(&self, namespace: &str, pod: &str, query: &LogQuery) -> Result<String, LogError> {
        kubelet::log_text(&*self.pod(namespace, pod)?, query, self.clock.now_micros())
    }

    /// Returns the log in lines, to be followed: only container and run of the query are used.
    ///
    /// # Errors
    /// There is no such container, or it has not started; the error has a kubelet's words.
    pub fn log(&self, namespace: &str, pod: &str, query: &LogQuery) -> Result<Log, LogError> {
        kubelet::log(&*self.pod(namespace, pod)?, query, self.clock.now_micros())
    }

    fn pod(&self, namespace: &str, pod: &str) -> Result<Arc<SimPodView>, LogError> {
        self.pods.namespace(namespace).get(pod).ok_or_else(|| LogError::NoPod(pod.to_owned()))
    }

    /// Injects a fault: the node falls silent. Its lease is not renewed, its status is not written, and nothing happens
    /// to its pods, until [`resume`](Self::resume).
    ///
    /// # Errors
    /// There is no such node.
    pub fn stop_heartbeats(&self, node: &str) -> Result<(), NoSuchNode> {
        self.turn(node, Health::Silent)
    }

    /// Resumes a silent node and its pods. A removed node registers as a new one.
    ///
    /// # Errors
    /// There is no such node.
    pub fn resume(&self, node: &str) -> Result<(), NoSuchNode> {
        self.turn(node, Health::Well)?;
        let on_it = |pod: &SimPodView| pod.spec.node_name == node;
        let keys: Vec<_> = self.pods.filter(on_it).iter().map(|pod| pod.metadata.key()).collect();
        self.kubelets.trigger_all(&keys);
        Ok(())
    }

    /// Injects a fault: the node is removed, with its Node object. Its pods are left as they are, for the pod garbage
    /// collector.
    ///
    /// # Errors
    /// There is no such node.
    pub fn remove(&self, node: &str) -> Result<(), NoSuchNode> {
        self.turn(node, Health::Removed)
    }

    /// Upgrades a node: it reports this kubelet version, at once or when it is resumed.
    ///
    /// # Errors
    /// There is no such node.
    pub fn upgrade(&self, node: &str, version: &str) -> Result<(), NoSuchNode> {
        self.change(node, |machine| {
            machine.version = Istr::new(version);
            // It reports its status at once.
            machine.reported = None;
        })
    }

    /// Injects or ends a fault: the pod's containers run and are not ready.
    pub fn set_unready(&self, namespace: &str, pod: &str, unready: bool) {
        let key = ObjectKey::new(namespace, pod);
        self.fleet.set_unready(&key, unready);
        self.kubelets.trigger(key);
    }

    fn turn(&self, node: &str, health: Health) -> Result<(), NoSuchNode> {
        self.change(node, |machine| {
            if machine.health == Health::Removed {
                machine.registration = Registration::Missing;
            }
            machine.health = health;
            // It sends a heartbeat at once.
            machine.renewed = None;
        })?;
        self.registry.trigger(ObjectKey::cluster(node));
        Ok(())
    }

    fn change(&self, node: &str, change: impl FnOnce(&mut Machine)) -> Result<(), NoSuchNode> {
        if !self.fleet.change(node, change) {
            let names = self.names();
            let mut known: Vec<&str> = names.iter().take(NAMED_MAX).map(Istr::as_str).collect();
            known.extend((names.len() > NAMED_MAX).then_some("…"));
            return Err(NoSuchNode { name: node.to_owned(), known: known.join(", ") });
        }
        Ok(())
    }
}

impl std::fmt::Debug for Nodes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nodes").field("names", &self.names()).finish_non_exhaustive()
    }
}

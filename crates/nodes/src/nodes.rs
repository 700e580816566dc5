//! The handle to simulated nodes: how they are made, what they have printed, and what goes wrong with them.

use std::sync::Arc;

use steersman_base::{Clock, Istr, ObjectKey};
use steersman_informer::Lister;
use steersman_runtime::{BuildContext, Controller};

use crate::fleet::{Fleet, Health, Registration};
use crate::kubelet::{self, Log, LogError, LogQuery};
use crate::options::{NodesError, NodesOptions};
use crate::view::SimPodView;
use crate::{node, scheduler};

/// Simulated nodes. Cheap to clone; clones are the same nodes.
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

/// So many nodes are named when one is missing.
const NAMED_MAX: usize = 5;

// === impl Nodes ===

impl Nodes {
    /// Adds nodes to a manager. They come to life when it runs.
    ///
    /// # Errors
    /// There can be no such nodes; the error says why.
    pub fn build(cx: &BuildContext, options: NodesOptions) -> Result<Self, NodesError> {
        options.check()?;
        let options = Arc::new(options);
        let fleet = Fleet::new(&options, cx.clock.now_micros());
        let pods = cx.informers.informer::<SimPodView>();
        // A second fleet of the same manager finds it done.
        let _ = pods.transform(SimPodView::keep_own_annotations);
        let registry = node::build(cx, &options, &fleet);
        if options.scheduler {
            scheduler::build(cx, &pods, &options, &fleet);
        }
        let kubelets = kubelet::build(cx, &pods, &options, &fleet);
        Ok(Self { fleet, pods: pods.lister(), clock: cx.clock.clone(), registry, kubelets })
    }

    /// The names of the nodes.
    #[must_use]
    pub fn names(&self) -> Vec<Istr> {
        self.fleet.names()
    }

    /// What a container of a pod has printed.
    ///
    /// # Errors
    /// There is none, or it has not started; the error says it as a kubelet would.
    pub fn logs(&self, namespace: &str, pod: &str, query: &LogQuery) -> Result<String, LogError> {
        kubelet::log_text(&*self.pod(namespace, pod)?, query, self.clock.now_micros())
    }

    /// The same in lines, for whoever follows it: of the query, container and run count.
    ///
    /// # Errors
    /// There is none, or it has not started; the error says it as a kubelet would.
    pub fn log(&self, namespace: &str, pod: &str, query: &LogQuery) -> Result<Log, LogError> {
        kubelet::log(&*self.pod(namespace, pod)?, query, self.clock.now_micros())
    }

    fn pod(&self, namespace: &str, pod: &str) -> Result<Arc<SimPodView>, LogError> {
        self.pods.namespace(namespace).get(pod).ok_or_else(|| LogError::NoPod(pod.to_owned()))
    }

    /// A fault: the node falls silent. Its lease is not renewed, its status is not written, and nothing happens to its
    /// pods any more, until [`resume`](Self::resume).
    ///
    /// # Errors
    /// There is no such node.
    pub fn stop_heartbeats(&self, node: &str) -> Result<(), NoSuchNode> {
        self.turn(node, Health::Silent)
    }

    /// The node is well again, and its pods go on. One that was taken away comes back as a new one.
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

    /// A fault: the node is taken away, and its Node object with it. Its pods are left as they are: whoever collects pods
    /// of lost nodes will find them.
    ///
    /// # Errors
    /// There is no such node.
    pub fn remove(&self, node: &str) -> Result<(), NoSuchNode> {
        self.turn(node, Health::Removed)
    }

    /// A fault: while it is there, the pod's containers run and are not ready.
    pub fn set_unready(&self, namespace: &str, pod: &str, unready: bool) {
        let key = ObjectKey::new(namespace, pod);
        self.fleet.set_unready(&key, unready);
        self.kubelets.trigger(key);
    }

    fn turn(&self, node: &str, health: Health) -> Result<(), NoSuchNode> {
        let is_known = self.fleet.change(node, |machine| {
            if machine.health == Health::Removed {
                machine.registration = Registration::Missing;
            }
            machine.health = health;
            // It lets itself be heard at once.
            machine.renewed = None;
        });
        if !is_known {
            let names = self.names();
            let mut known: Vec<&str> = names.iter().take(NAMED_MAX).map(Istr::as_str).collect();
            known.extend((names.len() > NAMED_MAX).then_some("…"));
            return Err(NoSuchNode { name: node.to_owned(), known: known.join(", ") });
        }
        self.registry.trigger(ObjectKey::cluster(node));
        Ok(())
    }
}

impl std::fmt::Debug for Nodes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nodes").field("names", &self.names()).finish_non_exhaustive()
    }
}

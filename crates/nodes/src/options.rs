//! Options: the number of nodes, and their properties.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::attacher::AttacherOptions;
use crate::devices::DevicesOptions;
use crate::kubelet::Stages;
use crate::metrics::Metrics;
use crate::node::{LEASE_DURATION, LEASE_DURATION_MIN};
use crate::provisioner::ProvisionerOptions;
use crate::scheduler;

/// The number of nodes, and their properties.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NodesOptions {
    /// The number of nodes; at most [`COUNT_MAX`] with `first`.
    pub count: usize,
    /// The prefix of their names: `node` gives `node-0`, `node-1`, ….
    pub prefix: String,
    /// The number of the first one. Sets of nodes in one cluster that share no number share no address.
    pub first: usize,
    /// The capacity of each node, by resource names: all of it is allocatable.
    pub capacity: BTreeMap<String, String>,
    /// The zones, assigned in turns; empty for none.
    pub zones: Vec<String>,
    /// The region of the zones.
    pub region: String,
    /// The duration of their leases, which are renewed after a quarter of it, as kubelets do.
    pub lease_duration: Duration,
    /// Whether each node registers with a range of addresses for its pods. If not, the cluster has to assign one, as the
    /// node IPAM controller does, and pods wait for it.
    pub pod_ranges: bool,
    /// Additional labels of all nodes.
    pub labels: BTreeMap<String, String>,
    /// The stages of pods on them.
    pub stages: Stages,
    /// Whether there is a scheduler, too. A cluster that has one already needs no other.
    pub scheduler: bool,
    /// The scheduler's name: it schedules the pods that name it. The default one also those that name none.
    pub scheduler_name: String,
    /// Whether it uses only these nodes: for clusters with several sets of simulated nodes.
    pub own_nodes_only: bool,
    /// The number of pods processed concurrently, by the scheduler and by all kubelets together. Decisions are
    /// sequential; the concurrency hides the server's response time.
    pub workers: usize,
    /// The source of the metrics APIs that is to show these nodes and their pods.
    pub metrics: Option<Metrics>,
    /// The provisioner of volumes, if there is one. One for a cluster is enough. With it, the scheduler lets pods wait for
    /// their claims.
    pub provisioner: Option<ProvisionerOptions>,
    /// The attacher of volumes to these nodes, if there is one. With it, pods wait for volumes that have to be attached, and nodes
    /// report which of them are in use: somebody has to ask for attachments, as the attach/detach controller does.
    pub attacher: Option<AttacherOptions>,
    /// The driver of devices, if there is one: without it, the scheduler does not look at claims of devices. One for a cluster
    /// is enough.
    pub devices: Option<DevicesOptions>,
}

/// Why the options are invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NodesError {
    /// There are not enough addresses.
    #[error(
        "{asked} nodes are too many: there are addresses for {COUNT_MAX}; ask for fewer, or begin with a lower number"
    )]
    TooMany {
        /// The highest number of a node.
        asked: usize,
    },
    /// A capacity is not a quantity.
    #[error("the capacity {value:?} of {resource:?} is no quantity; write one as 8, 500m or 32Gi")]
    Capacity {
        /// The resource.
        resource: String,
        /// The given text.
        value: String,
    },
    /// The prefix gives invalid names.
    #[error("nodes cannot be called {name:?}: {problem}")]
    Name {
        /// The name of the first node.
        name: String,
        /// The problem.
        problem: String,
    },
    /// The leases of nodes are too short.
    #[error("leases of {asked:?} are too short: the shortest are of {LEASE_DURATION_MIN:?}")]
    LeaseDuration {
        /// The given duration.
        asked: Duration,
    },
}

/// The number of nodes that have addresses: ranges of a thousand pods in `10.128.0.0/9`.
pub const COUNT_MAX: usize = 8192;

/// Small machines, so that the effect of scheduling is visible; 110 pods is the limit of kubelets.
const CAPACITY: [(&str, &str); 4] = [("cpu", "8"), ("memory", "32Gi"), ("ephemeral-storage", "100Gi"), ("pods", "110")];
/// The number of concurrent requests.
const WORKERS: usize = 16;

// === impl NodesOptions ===

impl Default for NodesOptions {
    fn default() -> Self {
        Self {
            count: 1,
            prefix: "node".to_owned(),
            first: 0,
            capacity: CAPACITY.iter().map(|(name, amount)| ((*name).to_owned(), (*amount).to_owned())).collect(),
            zones: Vec::new(),
            region: "local".to_owned(),
            lease_duration: LEASE_DURATION,
            pod_ranges: true,
            labels: BTreeMap::new(),
            stages: Stages::default(),
            scheduler: true,
            scheduler_name: scheduler::NAME.to_owned(),
            own_nodes_only: false,
            workers: WORKERS,
            metrics: None,
            provisioner: None,
            attacher: None,
            devices: None,
        }
    }
}

impl NodesOptions {
    /// Returns options with this number of nodes, and defaults for the rest.
    #[must_use]
    pub fn count(count: usize) -> Self {
        Self { count, ..Self::default() }
    }

    /// Sets the prefix of the names of nodes: `node` gives `node-0`, `node-1`, ….
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets the number of the first node.
    #[must_use]
    pub fn first(mut self, first: usize) -> Self {
        self.first = first;
        self
    }

    /// Sets the capacity of each node, by resource names.
    #[must_use]
    pub fn capacity(mut self, capacity: BTreeMap<String, String>) -> Self {
        self.capacity = capacity;
        self
    }

    /// Sets the zones, assigned in turns.
    #[must_use]
    pub fn zones(mut self, zones: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.zones = zones.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the region of the zones.
    #[must_use]
    pub fn region(mut self, region: impl Into<String>) -> Self {
        self.region = region.into();
        self
    }

    /// Sets the duration of the leases of nodes.
    #[must_use]
    pub fn lease_duration(mut self, lease_duration: Duration) -> Self {
        self.lease_duration = lease_duration;
        self
    }

    /// Sets whether each node registers with a range of addresses for its pods.
    #[must_use]
    pub fn pod_ranges(mut self, pod_ranges: bool) -> Self {
        self.pod_ranges = pod_ranges;
        self
    }

    /// Sets additional labels of all nodes.
    #[must_use]
    pub fn labels(mut self, labels: BTreeMap<String, String>) -> Self {
        self.labels = labels;
        self
    }

    /// Sets the stages of pods on the nodes.
    #[must_use]
    pub fn stages(mut self, stages: Stages) -> Self {
        self.stages = stages;
        self
    }

    /// Sets whether there is a scheduler, too.
    #[must_use]
    pub fn scheduler(mut self, scheduler: bool) -> Self {
        self.scheduler = scheduler;
        self
    }

    /// Sets the name of the scheduler: it schedules the pods that name it.
    #[must_use]
    pub fn scheduler_name(mut self, scheduler_name: impl Into<String>) -> Self {
        self.scheduler_name = scheduler_name.into();
        self
    }

    /// Sets whether the scheduler uses only these nodes.
    #[must_use]
    pub fn own_nodes_only(mut self, own_nodes_only: bool) -> Self {
        self.own_nodes_only = own_nodes_only;
        self
    }

    /// Sets the number of pods processed concurrently.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// Sets the source of the metrics APIs that shows these nodes and their pods.
    #[must_use]
    pub fn metrics(mut self, metrics: impl Into<Option<Metrics>>) -> Self {
        self.metrics = metrics.into();
        self
    }

    /// Sets the provisioner of volumes; with `None`, there is none.
    #[must_use]
    pub fn provisioner(mut self, provisioner: impl Into<Option<ProvisionerOptions>>) -> Self {
        self.provisioner = provisioner.into();
        self
    }

    /// Sets the attacher of volumes; with `None`, there is none.
    #[must_use]
    pub fn attacher(mut self, attacher: impl Into<Option<AttacherOptions>>) -> Self {
        self.attacher = attacher.into();
        self
    }

    /// Sets the driver of devices; with `None`, there is none.
    #[must_use]
    pub fn devices(mut self, devices: impl Into<Option<DevicesOptions>>) -> Self {
        self.devices = devices.into();
        self
    }

    /// Returns the renewal period of leases.
    pub(crate) fn lease_every(&self) -> Duration {
        self.lease_duration / 4
    }

    /// Returns the name of the node with this number.
    pub(crate) fn name(&self, number: usize) -> String {
        format!("{}-{number}", self.prefix)
    }

    /// # Errors
    /// The options are invalid.
    pub(crate) fn check(&self) -> Result<(), NodesError> {
        let asked = self.first.saturating_add(self.count);
        if asked > COUNT_MAX {
            return Err(NodesError::TooMany { asked });
        }
        if self.lease_duration < LEASE_DURATION_MIN {
            return Err(NodesError::LeaseDuration { asked: self.lease_duration });
        }
        for (resource, value) in &self.capacity {
            if value.parse::<steersman_base::Quantity>().is_err() {
                return Err(NodesError::Capacity { resource: resource.clone(), value: value.clone() });
            }
        }
        let name = self.name(self.first);
        match steersman_base::validation::dns1123_subdomain(&name).into_iter().next() {
            Some(problem) => Err(NodesError::Name { name, problem }),
            None => Ok(()),
        }
    }
}

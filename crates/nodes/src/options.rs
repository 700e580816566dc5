//! How many nodes there are, and what they are like.

use std::collections::BTreeMap;

use crate::kubelet::Stages;
use crate::scheduler;

/// How many nodes there are, and what they are like.
#[derive(Clone, Debug)]
pub struct NodesOptions {
    /// How many; at most [`COUNT_MAX`] with `first`.
    pub count: usize,
    /// What their names begin with: `node` makes `node-0`, `node-1`, ….
    pub prefix: String,
    /// The number of the first one. Fleets of one cluster that share no number share no address.
    pub first: usize,
    /// What each of them has, by the names of resources: all of it is for pods.
    pub capacity: BTreeMap<String, String>,
    /// The zones they are in, in turns; none, if there are none.
    pub zones: Vec<String>,
    /// The region of the zones.
    pub region: String,
    /// Further labels of all of them.
    pub labels: BTreeMap<String, String>,
    /// How pods live on them.
    pub stages: Stages,
    /// Whether there is a scheduler, too. A cluster that has one already needs no other.
    pub scheduler: bool,
    /// Which pods it schedules: those that name it. The default one also those that name none.
    pub scheduler_name: String,
    /// Whether it uses our nodes alone: for clusters that several share.
    pub own_nodes_only: bool,
    /// How many pods are worked on at once, by the scheduler and by all kubelets together. Decisions are made one after the
    /// other; what takes time is the server's answer.
    pub workers: usize,
}

/// Why there can be no such nodes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NodesError {
    /// There are not enough addresses.
    #[error(
        "{asked} nodes are too many: there are addresses for {COUNT_MAX}; ask for fewer, or begin with a lower number"
    )]
    TooMany {
        /// Up to which number there would be nodes.
        asked: usize,
    },
    /// A capacity is no quantity.
    #[error("the capacity {value:?} of {resource:?} is no quantity; write one as 8, 500m or 32Gi")]
    Capacity {
        /// Of what.
        resource: String,
        /// What was said.
        value: String,
    },
    /// The prefix makes no names.
    #[error("nodes cannot be called {name:?}: {problem}")]
    Name {
        /// The name of the first node.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// So many nodes have addresses: ranges of a thousand pods in `10.128.0.0/9`.
pub const COUNT_MAX: usize = 8192;

/// Small machines, so that newcomers see a scheduler at work; 110 pods is what kubelets allow.
const CAPACITY: [(&str, &str); 4] = [("cpu", "8"), ("memory", "32Gi"), ("ephemeral-storage", "100Gi"), ("pods", "110")];
/// More answers than these are not waited for at once.
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
            labels: BTreeMap::new(),
            stages: Stages::default(),
            scheduler: true,
            scheduler_name: scheduler::NAME.to_owned(),
            own_nodes_only: false,
            workers: WORKERS,
        }
    }
}

impl NodesOptions {
    /// So many nodes, all else as usual.
    #[must_use]
    pub fn count(count: usize) -> Self {
        Self { count, ..Self::default() }
    }

    /// The name of the node with this number.
    pub(crate) fn name(&self, number: usize) -> String {
        format!("{}-{number}", self.prefix)
    }

    /// # Errors
    /// There can be no such nodes.
    pub(crate) fn check(&self) -> Result<(), NodesError> {
        let asked = self.first.saturating_add(self.count);
        if asked > COUNT_MAX {
            return Err(NodesError::TooMany { asked });
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

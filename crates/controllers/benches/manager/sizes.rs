//! How much of everything.

use std::time::Duration;

/// The numbers of one run.
pub(crate) struct Sizes {
    /// The time for which an idle manager is measured.
    pub(crate) idle: Duration,
    pub(crate) deployments: usize,
    pub(crate) replicas: usize,
    /// What the namespace that is deleted has, by resource.
    pub(crate) mixed: Mixed,
    pub(crate) nodes: usize,
    /// What is there when a manager restarts.
    pub(crate) full: Full,
    /// Objects in the ownership graph, and how many of them own the others.
    pub(crate) graph: (usize, usize),
    /// The other workloads, on the rig.
    pub(crate) workloads: Workloads,
    /// The other workloads, embedded.
    pub(crate) large: Workloads,
    /// Large numbers of small objects, embedded.
    pub(crate) scale: Scale,
    /// Nodes with heartbeats, and the time for which a manager is measured beside them.
    pub(crate) fleet: (usize, Duration),
}

/// Large numbers of small objects.
pub(crate) struct Scale {
    pub(crate) claims: usize,
    pub(crate) signing_requests: usize,
    pub(crate) autoscalers: usize,
    pub(crate) quota_pods: usize,
}

/// Jobs, sets and CronJobs.
pub(crate) struct Workloads {
    pub(crate) completions: usize,
    pub(crate) parallelism: usize,
    /// The number of StatefulSets, the pods of each, and whether these are created all at once.
    pub(crate) sets: usize,
    pub(crate) pods_per_set: usize,
    pub(crate) is_parallel: bool,
    /// The nodes that the DaemonSet is for.
    pub(crate) daemons: usize,
    pub(crate) cron_jobs: usize,
    /// The nodes that run the pods of Jobs and sets.
    pub(crate) nodes: usize,
    /// Autoscalers of Deployments with one pod each, and the time for which they are measured.
    pub(crate) autoscalers: usize,
    pub(crate) autoscaled_for: Duration,
}

pub(crate) struct Mixed {
    pub(crate) config_maps: usize,
    pub(crate) secrets: usize,
    pub(crate) service_accounts: usize,
    pub(crate) roles: usize,
    pub(crate) services: usize,
    pub(crate) replica_sets: usize,
    pub(crate) pods: usize,
}

pub(crate) struct Full {
    pub(crate) namespaces: usize,
    pub(crate) sets_per_namespace: usize,
    pub(crate) pods_per_set: usize,
    /// Of 8 KB each.
    pub(crate) config_maps: usize,
}

// === impl Sizes ===

impl Sizes {
    /// What the goals are set for: 2,000 pods, 1,500 objects, 30,000 pods and 5,000 ConfigMaps, a graph of 100,000.
    pub(crate) const FULL: Self = Self {
        idle: Duration::from_secs(60),
        deployments: 50,
        replicas: 40,
        mixed: Mixed {
            config_maps: 400,
            secrets: 300,
            service_accounts: 200,
            roles: 200,
            services: 100,
            replica_sets: 100,
            pods: 200,
        },
        nodes: 20,
        full: Full { namespaces: 10, sets_per_namespace: 30, pods_per_set: 100, config_maps: 5_000 },
        graph: (100_000, 1_000),
        workloads: Workloads {
            completions: 2_000,
            parallelism: 200,
            sets: 50,
            pods_per_set: 20,
            is_parallel: false,
            daemons: 1_000,
            cron_jobs: 500,
            nodes: 20,
            autoscalers: 1_000,
            autoscaled_for: Duration::from_secs(60),
        },
        large: Workloads {
            completions: 10_000,
            parallelism: 500,
            sets: 1,
            pods_per_set: 1_000,
            is_parallel: true,
            daemons: 5_000,
            cron_jobs: 5_000,
            nodes: 50,
            autoscalers: 0,
            autoscaled_for: Duration::ZERO,
        },
        scale: Scale { claims: 10_000, signing_requests: 1_000, autoscalers: 10_000, quota_pods: 50_000 },
        fleet: (5_000, Duration::from_secs(90)),
    };

    /// For trying it out; the figures mean nothing.
    pub(crate) const QUICK: Self = Self {
        idle: Duration::from_secs(2),
        deployments: 4,
        replicas: 10,
        mixed: Mixed {
            config_maps: 20,
            secrets: 10,
            service_accounts: 10,
            roles: 10,
            services: 5,
            replica_sets: 5,
            pods: 10,
        },
        nodes: 3,
        full: Full { namespaces: 2, sets_per_namespace: 3, pods_per_set: 20, config_maps: 50 },
        graph: (1_000, 10),
        workloads: Workloads::QUICK,
        large: Workloads { is_parallel: true, ..Workloads::QUICK },
        scale: Scale { claims: 100, signing_requests: 20, autoscalers: 50, quota_pods: 200 },
        fleet: (50, Duration::from_secs(10)),
    };

    pub(crate) const fn pods(&self) -> usize {
        self.deployments * self.replicas
    }
}

// === impl Workloads ===

impl Workloads {
    const QUICK: Self = Self {
        completions: 20,
        parallelism: 5,
        sets: 2,
        pods_per_set: 3,
        is_parallel: false,
        daemons: 10,
        cron_jobs: 5,
        nodes: 3,
        autoscalers: 20,
        autoscaled_for: Duration::from_secs(20),
    };
}

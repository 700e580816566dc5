//! The steps of Jobs, sets and CronJobs. Each has a namespace of its own, by which the calls in the audit log are assigned.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::api::{Api, Call, until};
use crate::load;
use crate::sizes::Workloads;

pub(crate) const JOB: &str = "bench-job";
pub(crate) const SETS: &str = "bench-sets";
pub(crate) const CRON: &str = "bench-cron";
pub(crate) const DAEMONS: &str = "bench-daemons";

const MINUTE: Duration = Duration::from_secs(60);
/// What is left of a minute must be enough to create the CronJobs.
const CREATED_WITHIN: Duration = Duration::from_secs(20);
/// The list of thousands of nodes is a large answer.
const LONG_LIST_EVERY: Duration = Duration::from_millis(500);
const NAME: &str = "large";

/// A cluster with a namespace for each step.
pub(crate) struct Steps<'a> {
    api: Api,
    sizes: &'a Workloads,
}

// === impl Steps ===

impl<'a> Steps<'a> {
    pub(crate) async fn prepare(api: Api, sizes: &'a Workloads) -> Self {
        for namespace in [JOB, SETS, CRON, DAEMONS] {
            api.create_namespace(namespace).await;
        }
        Self { api, sizes }
    }

    /// An Indexed Job runs; over when it is complete. Also returns the number of times its status was written.
    pub(crate) async fn job(&self) -> (Duration, usize) {
        let path = load::jobs(JOB);
        let job = load::indexed_job(NAME, self.sizes.completions, self.sizes.parallelism);
        let since = Instant::now();
        let writes = self.api.updates_during(&path, NAME, async {
            self.api.send(Call::create(&path, &job)).await;
            until("the Job complete", || async {
                has_condition(&self.api.get(&format!("{path}/{NAME}")).await, "Complete")
            })
            .await;
        });
        let writes = writes.await;
        (since.elapsed(), writes)
    }

    /// StatefulSets are created; over when all their pods are ready.
    pub(crate) async fn sets(&self) -> Duration {
        let path = load::stateful_sets(SETS);
        let set = |at: usize| load::stateful_set(&format!("set-{at}"), self.sizes.pods_per_set, self.sizes.is_parallel);
        let calls = (0..self.sizes.sets).map(|at| Call::create(&path, &set(at))).collect();
        let wanted = (self.sizes.sets * self.sizes.pods_per_set) as u64;
        let since = Instant::now();
        self.api.send_all(calls).await;
        until("all pods of the StatefulSets ready", || async {
            let sets = self.api.get(&path).await;
            list(&sets).filter_map(|set| set["status"]["readyReplicas"].as_u64()).sum::<u64>() == wanted
        })
        .await;
        since.elapsed()
    }

    /// Nodes without kubelets, for [`daemons`](Self::daemons).
    pub(crate) async fn add_nodes(&self) {
        let calls = (0..self.sizes.daemons).map(|at| Call::create("/api/v1/nodes", &load::bare_node(at)));
        self.api.send_all(calls.collect()).await;
    }

    /// A DaemonSet is created; over when it has a pod on every node.
    pub(crate) async fn daemons(&self, nodes: usize) -> Duration {
        let path = load::daemon_sets(DAEMONS);
        let since = Instant::now();
        self.api.send(Call::create(&path, &load::daemon_set(NAME))).await;
        until("a daemon on every node", || async {
            let set = self.api.get(&format!("{path}/{NAME}")).await;
            set["status"]["currentNumberScheduled"].as_u64() == Some(nodes as u64)
        })
        .await;
        since.elapsed()
    }

    /// CronJobs are created, whose minute has not come yet.
    pub(crate) async fn add_cron_jobs(&self) {
        // Close to the end of a minute some would fire while others are not there.
        while until_next_minute() < CREATED_WITHIN {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let path = load::cron_jobs(CRON);
        let calls = (0..self.sizes.cron_jobs).map(|at| Call::create(&path, &load::cron_job(&format!("cron-{at}"))));
        self.api.send_all(calls.collect()).await;
    }

    /// The CronJobs fire; over when all their Jobs exist, counted from the minute.
    pub(crate) async fn cron_jobs(&self) -> Duration {
        tokio::time::sleep(until_next_minute()).await;
        let since = Instant::now();
        self.api.until_count(&load::jobs(CRON), self.sizes.cron_jobs).await;
        since.elapsed()
    }

    /// Ends what would fire again.
    pub(crate) async fn remove_cron_jobs(&self) {
        let path = load::cron_jobs(CRON);
        let calls = (0..self.sizes.cron_jobs).map(|at| Call::delete(format!("{path}/cron-{at}")));
        self.api.send_all(calls.collect()).await;
    }
}

/// Waits for nodes with kubelets.
pub(crate) async fn until_nodes_ready(api: &Api, nodes: usize) {
    api.until_matches("/api/v1/nodes", r#""reason":"KubeletReady""#, nodes, LONG_LIST_EVERY).await;
}

fn until_next_minute() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
    MINUTE - Duration::from_nanos((now.as_nanos() % MINUTE.as_nanos()) as u64)
}

fn has_condition(object: &Value, name: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|one| one["type"] == name && one["status"] == "True")
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value["items"].as_array().into_iter().flatten()
}

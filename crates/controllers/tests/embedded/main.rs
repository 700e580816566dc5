//! The controllers on the embedded server, under the paused clock: the scenarios of every server, and those that need
//! fault injection.

#[macro_use]
#[path = "../scenarios/all.rs"]
mod scenarios;

mod attachments;
mod autoscalers;
mod bad_input;
mod bad_workloads;
mod binding;
mod budgets;
mod claims;
mod collection;
mod deployments;
mod devices;
mod gangs;
mod jobs;
mod namespaces;
mod nodes;
mod pods;
mod quiet;
mod quotas;
mod replicasets;
mod schedules;
mod sets;
mod signing;
mod slices;
mod stale_caches;
mod standby;
mod storage_health;
mod tokens;
mod workload_issues;

use std::time::Duration;

use steersman_testing::{Builder, Failure, TestCluster, Verb, expect};

use scenarios::garbage_collector::looks;

/// How long quiet is expected: time costs nothing here.
pub(crate) const LONG: Duration = Duration::from_secs(600);

/// In that time: owners of unknown kinds are retried with growing backoff.
const LOOKS_MAX: u64 = 6;

macro_rules! embedded {
    ($file:ident::$scenario:ident on $cluster:ident $(alone)?) => {
        #[tokio::test(start_paused = true)]
        async fn $scenario() -> Result<(), steersman_testing::Failure> {
            use crate::scenarios::$file;
            crate::run($file::$cluster(), $file::$scenario).await
        }
    };
}

tests_of_all!(embedded);

async fn run(cluster: Builder, scenario: impl AsyncFnOnce(&TestCluster) -> Result<(), Failure>) -> Result<(), Failure> {
    let cluster = cluster.start().await?;
    scenario(&cluster).await?;
    quiet(cluster).await
}

/// Nothing is written any more, and the garbage collector does not loop.
async fn quiet(cluster: TestCluster) -> Result<(), Failure> {
    cluster.settle().await?;
    let before = looks(&cluster);
    cluster.expect_quiet(LONG).await?;
    let looks = looks(&cluster) - before;
    expect(looks <= LOOKS_MAX, "few looks at objects in ten quiet minutes", &looks)?;
    cluster.stop().await
}

/// Makes the server refuse pods, or take them again.
async fn refuse_pods(cluster: &TestCluster, refuse: bool) -> Result<(), Failure> {
    if refuse {
        cluster.faults().on(Verb::Create, "pods").refuse(http::StatusCode::FORBIDDEN);
    } else {
        cluster.faults().heal();
    }
    Ok(())
}

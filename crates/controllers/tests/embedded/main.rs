//! The controllers on the embedded server, under the paused clock: the scenarios that every server runs, and what only
//! happens where faults can be made.

#[path = "../scenarios/accounts.rs"]
mod accounts;
mod bad_input;
#[path = "../support/beside.rs"]
mod beside;
mod collection;
#[path = "../support/crash.rs"]
mod crash;
#[path = "../scenarios/deployment.rs"]
mod deployment;
mod deployments;
#[path = "../scenarios/garbage_collector.rs"]
mod garbage_collector;
#[path = "../scenarios/issues.rs"]
mod issues;
#[path = "../support/line.rs"]
mod line;
#[path = "../support/log.rs"]
mod log;
#[path = "../scenarios/namespace.rs"]
mod namespace;
mod namespaces;
#[path = "../scenarios/pod_gc.rs"]
mod pod_gc;
mod pods;
mod quiet;
#[path = "../scenarios/replicaset.rs"]
mod replicaset;
mod replicasets;
#[path = "../scenarios/replication_controller.rs"]
mod replication_controller;
#[path = "../scenarios/services.rs"]
mod services;
#[path = "../scenarios/setup.rs"]
mod setup;
mod slices;
#[path = "../scenarios/table.rs"]
mod table;
mod tokens;

use std::time::Duration;

use steersman_testing::{Failure, TestCluster, Verb};

/// How long quiet is expected: time costs nothing here.
pub(crate) const LONG: Duration = Duration::from_secs(600);

/// In that time: owners of kinds that nobody knows are looked for again and again, ever more seldom.
const LOOKS_MAX: u64 = 6;

macro_rules! embedded {
    ($($module:ident :: $scenario:ident on $cluster:path),* $(,)?) => {$(
        #[tokio::test(start_paused = true)]
        async fn $scenario() -> Result<(), Failure> {
            let cluster = $cluster().start().await?;
            $module::$scenario(&cluster).await?;
            quiet(cluster).await
        }
    )*};
}

table::scenarios!(embedded);
table::scenarios_alone!(embedded);

/// Nothing is written any more, and the garbage collector looks at nothing again and again.
async fn quiet(cluster: TestCluster) -> Result<(), Failure> {
    cluster.settle().await?;
    let before = garbage_collector::looks(&cluster);
    cluster.expect_quiet(LONG).await?;
    let looks = garbage_collector::looks(&cluster) - before;
    if looks > LOOKS_MAX {
        return Err(Failure::new(format!("{looks} looks at objects in ten quiet minutes")));
    }
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

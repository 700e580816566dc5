//! The controllers on the embedded server, under the paused clock: the scenarios that every server runs, and what only
//! happens where faults can be made.

mod bad_input;
mod collection;
#[path = "../support/crash.rs"]
mod crash;
mod deployments;
mod hearsay;
#[path = "../support/log.rs"]
mod log;
mod namespaces;
mod pods;
mod quiet;
mod replicasets;
#[path = "../scenarios/all.rs"]
mod scenarios;
mod slices;
mod standby;
mod tokens;

use std::time::Duration;

use steersman_testing::{Failure, TestCluster, Verb};

use scenarios::*;

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

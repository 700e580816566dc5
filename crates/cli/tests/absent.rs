//! An API that the server does not have, through the whole binary, on the embedded server.

#[path = "shared/absent.rs"]
mod absent;

use steersman_testing::{Failure, TestCluster};

/// On real sockets, and so on the real clock.
#[tokio::test]
async fn an_api_that_is_absent_disables_who_needs_it_and_nobody_else() -> Result<(), Failure> {
    absent::disables_who_needs_it(TestCluster::builder().start().await?).await
}

//! Crashes in the middle of a longer story: a manager loses power right after its n-th write, and another one goes on.
//!
//! `crash.rs` tells short stories that never wait for controllers. Here the successor is there at once, so that a story can
//! wait for what controllers do, and go on from there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use steersman_runtime::{Descriptor, Manager, ManagerOptions};
use steersman_testing::{Builder, Failure, TestCluster};
use tokio_util::sync::CancellationToken;
use tower::BoxError;

/// The way to the server of a process that is about to crash. The write that kills it is done; its answer never arrives, and
/// nothing leaves any more.
#[derive(Clone)]
struct Mortal {
    server: Client,
    writes_left: Arc<AtomicU64>,
    dead: CancellationToken,
}

/// Longer than caches are waited for.
const QUIET: Duration = Duration::from_secs(60);
/// A story that takes more writes than this never ends.
const WRITES_MAX: u64 = 300;

/// Tells a story once without a crash; then again and again, with a crash of the manager after its first write, after its
/// second, and so on until it outlives the story. Each time the story must end in the same state, which `story` answers, and
/// be quiet then. Events do not count as writes. Answers how many crashes there were.
pub(crate) async fn crash_after_each_write(
    builder: impl Fn() -> Builder,
    controllers: &[Descriptor],
    story: impl AsyncFn(&TestCluster) -> Result<String, Failure>,
) -> Result<u64, Failure> {
    let (want, _) = tell(builder(), controllers, u64::MAX, &story).await?;
    for writes in 1..=WRITES_MAX {
        let told = tell(builder(), controllers, writes, &story).await;
        let (got, crashed) =
            told.map_err(|failure| Failure::new(format!("a crash after write {writes}: {failure:?}")))?;
        if got != want {
            return Err(Failure::new(format!("a crash after write {writes} leads to\n{got}\ninstead of\n{want}")));
        }
        if !crashed {
            return Ok(writes - 1);
        }
    }
    Err(Failure::new(format!("the story takes more than {WRITES_MAX} writes")))
}

async fn tell(
    builder: Builder,
    controllers: &[Descriptor],
    writes: u64,
    story: &impl AsyncFn(&TestCluster) -> Result<String, Failure>,
) -> Result<(String, bool), Failure> {
    let cluster = builder.start().await?;
    let dead = CancellationToken::new();
    let writes_left = Arc::new(AtomicU64::new(writes));
    let mortal = Mortal { server: cluster.faulty_client(), writes_left, dead: dead.clone() };
    let line = tower::service_fn(move |request| mortal.clone().carry(request));
    let first = manager(&cluster, Client::new(line, "default"), controllers)?;
    let second = manager(&cluster, cluster.faulty_client(), controllers)?;
    let dies = dead.clone();
    let succession = tokio::spawn(async move {
        tokio::select! {
            biased;
            () = dies.cancelled() => {}
            _ = first.run(CancellationToken::new()) => return,
        }
        let _ = second.run(CancellationToken::new()).await;
    });
    let told = story(&cluster).await;
    let quiet = cluster.expect_quiet(QUIET).await;
    succession.abort();
    let told = told?;
    quiet?;
    cluster.stop().await?;
    Ok((told, dead.is_cancelled()))
}

fn manager(cluster: &TestCluster, client: Client, controllers: &[Descriptor]) -> Result<Manager, Failure> {
    let options = ManagerOptions { clock: cluster.clock().clone(), ..ManagerOptions::default() };
    let manager = Manager::new(client, options)?;
    for descriptor in controllers {
        let _ = manager.build(descriptor, None);
    }
    Ok(manager)
}

// === impl Mortal ===

impl Mortal {
    async fn carry(self, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let counts = request.method() != Method::GET && !request.uri().path().contains("/events");
        if self.dead.is_cancelled() || (counts && self.writes_left.load(Ordering::SeqCst) == 0) {
            return std::future::pending().await;
        }
        let kills = counts && self.writes_left.fetch_sub(1, Ordering::SeqCst) == 1;
        let answer = self.server.send(request).await;
        if kills {
            self.dead.cancel();
            return std::future::pending().await;
        }
        Ok(answer?)
    }
}

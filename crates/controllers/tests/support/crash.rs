//! Crashes: a manager that dies right after one of its writes, for each of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use steersman_runtime::{Descriptor, Manager, ManagerOptions};
use steersman_testing::{Builder, Failure, TestCluster};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower::BoxError;

/// Tells a story again and again. The first time, nothing happens to the manager; then it dies after its first write, its
/// second, … and another one takes its place. The world must always end the same.
///
/// Only what `story` does is the user's; it must not wait for controllers. A write that is a manager's last is done by the
/// server, and nobody hears the answer. Events and leases do not count.
pub(crate) async fn crash_after_each_write(
    cluster: impl Fn() -> Builder,
    controllers: &[Descriptor],
    story: impl AsyncFn(&TestCluster) -> Result<(), Failure>,
    world: impl AsyncFn(&TestCluster) -> Result<Vec<String>, Failure>,
) -> Result<(), Failure> {
    let mut want = None;
    for last_write in 0..WRITES_MAX {
        let cluster = cluster().start().await?;
        let line = Line::dying_after(last_write, cluster.client());
        let first = Running::start(line.client(), controllers, &cluster)?;
        first.settle(&line).await?;
        story(&cluster).await?;
        first.settle(&line).await?;
        let crashed = line.is_dead();
        first.kill().await;
        let healthy = Line::dying_after(0, cluster.client());
        let second = Running::start(healthy.client(), controllers, &cluster)?;
        second.settle(&healthy).await?;
        second.kill().await;
        let got = world(&cluster).await?;
        cluster.stop().await?;
        let want = want.get_or_insert_with(|| got.clone());
        if *want != got {
            return Err(Failure::new(format!(
                "after a crash behind write {last_write}: {got:#?}, but else: {want:#?}"
            )));
        }
        if last_write > 0 && !crashed {
            return if last_write > 1 { Ok(()) } else { Err(Failure::new("nothing was ever written")) };
        }
    }
    Err(Failure::new(format!("there are more than {WRITES_MAX} writes: the story is too long, or never ends")))
}

/// A story has a few dozen writes; one with more is not told, it hangs.
const WRITES_MAX: u64 = 100;
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Longer than first retries.
const SETTLED_AFTER: Duration = Duration::from_secs(3);
/// Longer than caches are waited for.
const SETTLES_WITHIN: Duration = Duration::from_secs(300);

/// The way to the server, until it ends.
#[derive(Clone)]
struct Line(Arc<Shared>);

struct Shared {
    server: Client,
    /// After so many writes; never, if it is zero.
    dies_after: u64,
    writes: AtomicU64,
    died: Notify,
}

/// A manager that runs.
struct Running {
    manager: Manager,
    task: JoinHandle<()>,
}

// === impl Line ===

impl Line {
    fn dying_after(dies_after: u64, server: Client) -> Self {
        Self(Arc::new(Shared { server, dies_after, writes: AtomicU64::new(0), died: Notify::new() }))
    }

    fn client(&self) -> Client {
        let line = self.clone();
        Client::new(tower::service_fn(move |request| line.clone().carry(request)), "default")
    }

    async fn carry(self, request: Request<Body>) -> Result<http::Response<Body>, BoxError> {
        let path = request.uri().path();
        let counts = !path.contains("/events") && !path.contains("/leases");
        let is_write = request.method() != Method::GET && counts;
        let is_last = is_write && self.0.writes.fetch_add(1, Ordering::SeqCst) + 1 == self.0.dies_after;
        if self.is_dead() && !is_last {
            std::future::pending::<()>().await;
        }
        let answer = self.0.server.send(request).await;
        if is_last {
            self.0.died.notify_waiters();
            std::future::pending::<()>().await;
        }
        Ok(answer?)
    }

    fn writes(&self) -> u64 {
        self.0.writes.load(Ordering::SeqCst)
    }

    fn is_dead(&self) -> bool {
        self.0.dies_after > 0 && self.writes() >= self.0.dies_after
    }
}

// === impl Running ===

impl Running {
    fn start(client: Client, controllers: &[Descriptor], cluster: &TestCluster) -> Result<Self, Failure> {
        let options = ManagerOptions { clock: cluster.clock().clone(), ..ManagerOptions::default() };
        let manager = Manager::new(client, options)?;
        for descriptor in controllers {
            let _ = manager.build(descriptor, None);
        }
        let running = manager.clone();
        let task = tokio::spawn(async move { drop(running.run(CancellationToken::new()).await) });
        Ok(Self { manager, task })
    }

    /// Waits until there is nothing left to do, or nobody to do it.
    async fn settle(&self, line: &Line) -> Result<(), Failure> {
        let deadline = Instant::now() + SETTLES_WITHIN;
        let (mut seen, mut since) = (line.writes(), Instant::now());
        while since.elapsed() < SETTLED_AFTER && !line.is_dead() {
            if Instant::now() > deadline {
                return Err(Failure::new("the controllers never come to rest"));
            }
            tokio::time::sleep(LOOK_EVERY).await;
            if self.manager.inspection().is_busy() || line.writes() != seen {
                (seen, since) = (line.writes(), Instant::now());
            }
        }
        Ok(())
    }

    /// No orderly end: it is gone.
    async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
        self.manager.informers().stop().await;
    }
}

//! Crashes: a manager that dies right after one of its writes, for each of them.

use std::time::Duration;

use parking_lot::Mutex;
use steersman_runtime::Manager;
use steersman_testing::{Builder, Failure, TestCluster};
use tokio::time::Instant;

use super::beside::Beside;
use super::controllers::Controller;
use super::line::{Line, Trouble};

/// A story that is being told, and who lives through it: a manager, and another one after its death.
pub(crate) struct Scene<'a> {
    cluster: &'a TestCluster,
    line: Line,
    first: Mutex<Option<Beside>>,
    second: Mutex<Option<Beside>>,
}

/// Tells a story again and again. The first time, nothing happens to the manager; then it dies after its first write, its
/// second, … until it outlives the story. Each time another one takes its place after a while, the world must come to rest
/// and be quiet then, and must look the same. Answers how many deaths there were.
///
/// The write that is a manager's last is done by the server, and nobody hears the answer. Events and leases do not count.
pub(crate) async fn crash_after_each_write(
    builder: impl Fn() -> Builder,
    controllers: &[Controller],
    story: impl AsyncFn(&Scene<'_>) -> Result<(), Failure>,
    world: impl AsyncFn(&TestCluster) -> Result<Vec<String>, Failure>,
) -> Result<u64, Failure> {
    let mut want = None;
    for writes in 0..WRITES_MAX {
        let reported = send(builder(), controllers, writes, &story, &world).await;
        let (got, died) =
            reported.map_err(|failure| Failure::new(format!("a crash after write {writes}: {failure:?}")))?;
        let want = want.get_or_insert_with(|| got.clone());
        if *want != got {
            let text = format!("a crash after write {writes} leads to {got:#?}, but without one it is {want:#?}");
            return Err(Failure::new(text));
        }
        match writes {
            0 => {}
            1 if !died => return Err(Failure::new("nothing was ever written")),
            _ if !died => return Ok(writes - 1),
            _ => {}
        }
    }
    Err(Failure::new(format!("there are more than {WRITES_MAX} writes: the story is too long, or never ends")))
}

/// A story has a few dozen writes; one with more is not told, it hangs.
const WRITES_MAX: u64 = 150;
/// Until somebody notices that the manager is gone: what a story does without waiting, nobody sees happen.
const ABSENCE: Duration = Duration::from_secs(5);
/// Longer than caches are waited for.
const QUIET: Duration = Duration::from_secs(60);
/// Far longer than any story.
const RESTS_WITHIN: Duration = Duration::from_secs(300);

async fn send(
    builder: Builder,
    controllers: &[Controller],
    dies_after: u64,
    story: &impl AsyncFn(&Scene<'_>) -> Result<(), Failure>,
    world: &impl AsyncFn(&TestCluster) -> Result<Vec<String>, Failure>,
) -> Result<(Vec<String>, bool), Failure> {
    let cluster = builder.start().await?;
    let trouble = if dies_after > 0 { Trouble::DiesAfter(dies_after) } else { Trouble::None };
    let line = Line::to(cluster.faulty_client(), trouble);
    let first = Mutex::new(Some(Beside::start(&cluster, line.client(), controllers)?));
    let scene = Scene { cluster: &cluster, line, first, second: Mutex::new(None) };
    let reported = async {
        scene.rest().await?;
        story(&scene).await?;
        scene.rest().await?;
        cluster.expect_quiet(QUIET).await
    };
    tokio::select! {
        biased;
        failure = scene.succession(controllers) => return Err(failure),
        reported = reported => reported?,
    }
    let died = scene.line.dead().is_cancelled();
    let Scene { first, second, .. } = scene;
    for manager in [first.into_inner(), second.into_inner()].into_iter().flatten() {
        manager.kill().await;
    }
    let got = world(&cluster).await?;
    cluster.stop().await?;
    Ok((got, died))
}

// === impl Scene ===

impl Scene<'_> {
    pub(crate) fn cluster(&self) -> &TestCluster {
        self.cluster
    }

    /// Waits until there is a manager, and nothing left to do for it, or for the cluster's nodes.
    pub(crate) async fn rest(&self) -> Result<(), Failure> {
        let deadline = Instant::now() + RESTS_WITHIN;
        loop {
            self.cluster.settle().await?;
            if self.manager().is_some_and(|manager| !manager.inspection().is_busy()) {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(Failure::new("the controllers never come to rest"));
            }
        }
    }

    /// Who is alive.
    fn manager(&self) -> Option<Manager> {
        let who = if self.line.dead().is_cancelled() { &self.second } else { &self.first };
        who.lock().as_ref().map(|beside| beside.manager().clone())
    }

    /// Puts another one in the place of a manager that dies. Ends only if it cannot.
    async fn succession(&self, controllers: &[Controller]) -> Failure {
        self.line.dead().cancelled().await;
        let first = self.first.lock().take();
        if let Some(first) = first {
            first.kill().await;
        }
        tokio::time::sleep(ABSENCE).await;
        match Beside::start(self.cluster, self.cluster.faulty_client(), controllers) {
            Ok(second) => *self.second.lock() = Some(second),
            Err(failure) => return failure,
        }
        std::future::pending().await
    }
}

//! The parts that a manager runs beside controllers.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;

use futures::FutureExt;
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::controller::{Engine, panic_text};
use crate::health::Health;
use crate::metrics::Families;

/// A task that runs as long as a manager does.
///
/// If it fails, the manager stops with its error; if it ends without one, the others go on.
pub trait Runnable: Send + 'static {
    /// Returns the name in logs and errors.
    fn name(&self) -> String;

    /// Returns the group, which determines when it starts and ends.
    fn group(&self) -> Group {
        Group::Leading
    }

    /// Adds health checks, when it is added to a manager; none by default.
    fn report_to(&self, health: &Health) {
        let _ = health;
    }

    /// Adds metrics, when it is added to a manager that has a registry; none by default.
    fn count_in(&mut self, metrics: &Families) {
        let _ = metrics;
    }

    /// Runs until it is done or stopped; after `stop` it should end soon.
    fn run(self, stop: CancellationToken) -> impl Future<Output = Result<(), Error>> + Send;
}

/// Groups of a manager, in the order in which they start. They end in reverse.
///
/// [`Others`](Self::Others) and [`Leading`](Self::Leading) wait for filled caches for ten seconds at most: one resource that cannot
/// be listed must not stop everything. A runnable that must not see a half-filled cache reads with
/// [`Manager::client`](crate::Manager::client), or waits for [`SharedInformer::synced`](steersman_informer::SharedInformer::synced).
/// Controllers wait for their own caches as long as it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// Servers: webhooks, health, metrics. They respond before anything else works.
    Servers,
    /// Everything that fills caches.
    Caches,
    /// Everything that starts after the caches, and works whether this process leads or not.
    Others,
    /// Everything that starts after the caches, and needs leadership.
    Leading,
}

/// A part that a manager starts.
pub(crate) enum Part {
    Controller(Box<Engine>),
    Runnable { name: String, group: Group, run: Run },
}

type Run = Box<dyn FnOnce(CancellationToken) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send>> + Send>;

/// A function as a runnable.
struct Function<F> {
    name: String,
    group: Group,
    run: F,
}

/// Creates a runnable from a function.
pub fn runnable<F, R>(name: impl Into<String>, group: Group, run: F) -> impl Runnable
where
    F: FnOnce(CancellationToken) -> R + Send + 'static,
    R: Future<Output = Result<(), Error>> + Send + 'static,
{
    Function { name: name.into(), group, run }
}

// === impl Function ===

impl<F, R> Runnable for Function<F>
where
    F: FnOnce(CancellationToken) -> R + Send + 'static,
    R: Future<Output = Result<(), Error>> + Send + 'static,
{
    fn name(&self) -> String {
        self.name.clone()
    }

    fn group(&self) -> Group {
        self.group
    }

    async fn run(self, stop: CancellationToken) -> Result<(), Error> {
        (self.run)(stop).await
    }
}

// === impl Part ===

impl Part {
    pub(super) fn of(runnable: impl Runnable) -> Self {
        let name = runnable.name();
        let group = runnable.group();
        let run: Run = Box::new(move |stop| {
            // The function may panic before it returns a future, so it is called inside of one.
            let guarded = AssertUnwindSafe(async move { runnable.run(stop).await }).catch_unwind();
            Box::pin(async move {
                let panicked =
                    |panic: Box<dyn Any + Send>| Error::message(format!("it panicked: {}", panic_text(&*panic)));
                guarded.await.unwrap_or_else(|panic| Err(panicked(panic)))
            })
        });
        Self::Runnable { name, group, run }
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Self::Controller(engine) => engine.controller().name(),
            Self::Runnable { name, .. } => name,
        }
    }

    /// Drops a part that will not start.
    pub(super) fn leave(self) {
        if let Self::Controller(engine) = self {
            engine.controller().close();
        }
    }

    pub(super) fn group(&self) -> Group {
        match self {
            // A standby's controllers keep their caches filled: they wait for leadership themselves.
            Self::Controller(engine) if engine.needs_leadership() => Group::Leading,
            Self::Controller(_) => Group::Others,
            Self::Runnable { group, .. } => *group,
        }
    }

    /// Whether it starts before the caches are filled: a controller waits for its own caches, and for leadership,
    /// itself.
    pub(super) fn starts_early(&self) -> bool {
        matches!(self, Self::Controller(_)) || self.group() <= Group::Caches
    }
}

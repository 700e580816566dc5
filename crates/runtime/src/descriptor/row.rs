//! The facts of a controller: one row of a table.

use std::time::Duration;

use steersman_base::ObjectKey;
use steersman_workqueue::RateLimiter;
use steersman_workqueue::limiter::{Bucket, Exponential, Fixed, MaxOf};

/// The facts of a controller, as a table has them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row {
    /// The name, as in `--controllers` and in upstream's documentation.
    pub name: &'static str,
    /// Older names that `--controllers` takes too.
    pub aliases: Vec<&'static str>,
    /// The service account in `kube-system`, and the end of the user agent.
    pub account: &'static str,
    /// The source of its events.
    pub component: &'static str,
    /// When it runs.
    pub default: Enabled,
    /// Feature gates without which it does not run.
    pub gates: Vec<&'static str>,
    /// The names of its work queues in metrics, the main one first.
    pub queues: Vec<&'static str>,
    /// How many keys are worked on at once.
    pub workers: Workers,
    /// How long failed keys wait.
    pub limiter: Limiter,
    /// How often a key is retried before it waits for its next change; `None`: for ever.
    pub retries_max: Option<u32>,
    /// When it is built.
    pub stage: Stage,
}

/// When a controller runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Enabled {
    /// With `*`.
    ByDefault,
    /// When it is named.
    WhenNamed,
    /// With `*`, and if one of these flags says something; without, not even when it is named.
    WithFlags(Vec<&'static str>),
}

/// How many keys are worked on at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workers {
    /// The flag that sets the number, if there is one, without dashes.
    pub flag: Option<&'static str>,
    /// The number without the flag.
    pub default: usize,
}

/// How long failed keys wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limiter {
    /// Upstream's default: 5 ms to 1000 s per key, ten a second and a hundred at once over all keys.
    Default,
    /// From `min` to `max` per key, doubling; `bucket`: ten a second and a hundred at once over all keys.
    Backoff {
        /// The first wait.
        min: Duration,
        /// The longest wait.
        max: Duration,
        /// Whether all keys together are limited, too.
        bucket: bool,
    },
    /// The same wait for every key.
    Every(Duration),
    /// Nothing is retried: there is no queue, or the next pass tries again.
    None,
}

/// When a controller is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Before all others and with the manager's own account: it makes the accounts of the others work.
    First,
    /// With all others.
    Normal,
}

// === impl Row ===

impl Row {
    /// The row of a controller with one name for everything: it runs by default, with one worker.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            aliases: Vec::new(),
            account: name,
            component: name,
            default: Enabled::ByDefault,
            gates: Vec::new(),
            queues: vec![name],
            workers: Workers::fixed(1),
            limiter: Limiter::Default,
            retries_max: None,
            stage: Stage::Normal,
        }
    }

    /// Whether the controller goes by this name.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    /// The name of a work queue by its number; the name of the controller if the row has no such queue.
    pub(crate) fn queue(&self, number: usize) -> &'static str {
        self.queues.get(number).copied().unwrap_or(self.name)
    }
}

// === impl Workers ===

impl Workers {
    /// A number that a flag sets.
    #[must_use]
    pub const fn flag(flag: &'static str, default: usize) -> Self {
        Self { flag: Some(flag), default }
    }

    /// A number that no flag sets.
    #[must_use]
    pub const fn fixed(workers: usize) -> Self {
        Self { flag: None, default: workers }
    }
}

// === impl Limiter ===

impl Limiter {
    /// The limiter of a queue; `None` for the queue's own default.
    pub(crate) fn make(self) -> Option<Box<dyn RateLimiter<ObjectKey>>> {
        match self {
            Self::Default | Self::None => None,
            Self::Backoff { min, max, bucket: true } => {
                Some(Box::new(MaxOf(Exponential::new(min, max), Bucket::default())))
            }
            Self::Backoff { min, max, bucket: false } => Some(Box::new(Exponential::new(min, max))),
            Self::Every(wait) => Some(Box::new(Fixed(wait))),
        }
    }
}

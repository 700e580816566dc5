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
    /// Older names that `--controllers` accepts too.
    pub aliases: Vec<&'static str>,
    /// The service account in `kube-system`, and the suffix of the user agent.
    pub account: &'static str,
    /// The source of its events.
    pub component: &'static str,
    /// The condition under which the controller runs.
    pub default: Enabled,
    /// The required feature gates.
    pub gates: Vec<&'static str>,
    /// The names of its work queues in metrics, the main one first.
    pub queues: Vec<&'static str>,
    /// The number of workers.
    pub workers: Workers,
    /// The rate limiter of failed keys.
    pub limiter: Limiter,
    /// The number of retries before a key waits for its next change; `None`: unlimited.
    pub retries_max: Option<u32>,
    /// The stage of the start in which the controller is built.
    pub stage: Stage,
}

/// The condition under which a controller runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Enabled {
    /// With `*`.
    ByDefault,
    /// Only if named.
    WhenNamed,
    /// With `*`, if one of these flags is set; without such a flag not even if named.
    WithFlags(Vec<&'static str>),
}

/// The number of workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workers {
    /// The flag that sets the number, if there is one, without dashes.
    pub flag: Option<&'static str>,
    /// The number without the flag.
    pub default: usize,
}

/// The rate limiter of failed keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limiter {
    /// Upstream's default: 5 ms to 1000 s per key, ten per second and a hundred at once over all keys.
    Default,
    /// From `min` to `max` per key, doubling; with `bucket` also ten per second and a hundred at once over all keys.
    Backoff {
        /// The first delay.
        min: Duration,
        /// The longest delay.
        max: Duration,
        /// Whether all keys together are limited too.
        bucket: bool,
    },
    /// The same delay for every key.
    Every(Duration),
    /// No retries: there is no queue, or the next pass retries.
    None,
}

/// The stage of the start in which a controller is built.
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

    /// Whether the controller has this name or alias.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    /// Returns the name of a work queue by its number; the name of the controller if the row has no such queue.
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
    /// Returns the limiter of a queue; `None` for the queue's default.
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

//! Pure: what a key remembers of its failures (guarantee 5).
//!
//! A retry has a *deadline*: the time at which the rate limiter lets the key try again. Events may make the key try
//! earlier, which has two consequences that client-go leaves to chance:
//!
//! * An early attempt that fails says nothing new about the deadline, so it stays, and so does the exponent. With
//!   client-go every early failure doubles the back-off; a few dozen events within a second take a key to 1000 s
//!   (kubernetes/kubernetes issue 132805).
//! * An early attempt still keeps its distance from the one before: [`rest`](Backoff::rest), which is the back-off
//!   itself or one second, whichever is less. A key that fails and is changed all the time does not become a hot loop.

use std::time::Duration;

use crate::Instant;

/// The maximum time an event waits for a failing key. Long enough that a key which always fails costs one
/// attempt a second at most, short enough that a person who has just repaired an object does not notice.
const REST_MAX: Duration = Duration::from_secs(1);

/// The cause of a pass through the rate limiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// It asked to be requeued.
    Asked,
    /// It failed.
    Failed,
}

/// The failures of one key.
#[derive(Default)]
pub(super) struct Backoff {
    /// The number of times the key went through the rate limiter since it was last forgotten.
    requeues: u32,
    /// The number of those that were failures.
    failures: u32,
    /// The time at which the rate limiter lets the key try again.
    deadline: Option<Instant>,
    /// The time after its last start for which the key rests, whatever happens.
    rest: Duration,
}

impl Backoff {
    #[inline]
    pub(super) fn requeues(&self) -> u32 {
        self.requeues
    }

    #[inline]
    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    /// Whether an attempt that ends now came before its time.
    #[inline]
    pub(super) fn is_early(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| now < deadline)
    }

    /// Counts one more pass through the rate limiter, which asked for `delay`.
    #[inline]
    pub(super) fn raise(&mut self, cause: Cause, delay: Duration, deadline: Instant) {
        self.requeues = self.requeues.saturating_add(1);
        if cause == Cause::Failed {
            self.failures = self.failures.saturating_add(1);
        }
        self.deadline = Some(deadline);
        self.rest = delay.min(REST_MAX);
    }

    /// Returns the time at which the key is retried if nothing else happens.
    #[inline]
    pub(super) fn due(&self, started: Option<Instant>) -> Option<Instant> {
        self.deadline.max(self.not_before(started))
    }

    /// The earliest time at which an event may start the key again.
    #[inline]
    pub(super) fn not_before(&self, started: Option<Instant>) -> Option<Instant> {
        started.map(|started| started + self.rest)
    }

    /// Lets the next event start the key at once; what was counted stays.
    #[inline]
    pub(super) fn wake(&mut self) {
        self.rest = Duration::ZERO;
    }
}

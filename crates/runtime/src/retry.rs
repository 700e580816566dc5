//! Retries: the pure [`Backoff`], and functions that retry with it.
//!
//! Follows client-go's `util/retry` and apimachinery's `wait.Backoff` (0.37).
//!
//! ```
//! # use steersman_runtime::client::ClientError;
//! # use steersman_runtime::retry::{Backoff, retry_on_conflict};
//! # async fn read_change_update() -> Result<(), ClientError> { Ok(()) }
//! # async fn example() -> Result<(), ClientError> {
//! retry_on_conflict(Backoff::RETRY, || async { read_change_update().await }).await?;
//! # Ok(())
//! # }
//! ```

use std::future::Future;
use std::time::Duration;

use crate::WriteError;
use crate::client::ClientError;

/// The delays between tries, and their number.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Backoff {
    /// The number of times the delay grows; for retries, the number of tries.
    pub steps: u32,
    /// The first delay.
    pub duration: Duration,
    /// The factor by which each delay is longer than the one before; 0 keeps it.
    pub factor: f64,
    /// The maximum random part that is added to each delay, as a multiple of it; it does not accumulate.
    pub jitter: f64,
    /// The maximum delay, without jitter; it no longer grows then. Unlimited if zero.
    pub cap: Duration,
}

/// An error that may be a conflict.
pub trait Contended {
    /// Whether it is a conflict: read again and retry.
    fn is_conflict(&self) -> bool;
}

// === impl Backoff ===

impl Backoff {
    /// For conflicts among clients that change the same object: 5 tries, 10 ms apart.
    pub const RETRY: Self = Self::new(5, Duration::from_millis(10), 1.0);
    /// For conflicts with controllers that are busy with the object: 4 tries, 10, 50 and 250 ms apart.
    pub const BUSY: Self = Self::new(4, Duration::from_millis(10), 5.0);

    /// A jitter of a tenth, and no cap, as in client-go.
    const fn new(steps: u32, duration: Duration, factor: f64) -> Self {
        Self { steps, duration, factor, jitter: 0.1, cap: Duration::ZERO }
    }

    /// Returns the next delay, for a `random` number from 0 to 1.
    pub fn step(&mut self, random: f64) -> Duration {
        let wait = if self.jitter > 0.0 { stretch(self.duration, 1.0 + random * self.jitter) } else { self.duration };
        if self.steps == 0 {
            return wait;
        }
        self.steps -= 1;
        if self.factor != 0.0 {
            self.duration = stretch(self.duration, self.factor);
            if !self.cap.is_zero() && self.duration > self.cap {
                self.duration = self.cap;
                self.steps = 0;
            }
        }
        wait
    }
}

/// No delay is longer than a year.
const WAIT_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

fn stretch(duration: Duration, by: f64) -> Duration {
    let seconds = duration.as_secs_f64() * by;
    Duration::try_from_secs_f64(seconds).unwrap_or(WAIT_MAX).min(WAIT_MAX)
}

/// Retries until it succeeds, fails with an error that is not `retriable`, or was tried [`Backoff::steps`] times, but
/// at least once. Returns the last error.
///
/// # Errors
/// Those of `attempt`.
pub async fn retry_on<T, E, F: Future<Output = Result<T, E>>>(
    mut backoff: Backoff,
    retriable: impl Fn(&E) -> bool,
    mut attempt: impl FnMut() -> F,
) -> Result<T, E> {
    loop {
        match attempt().await {
            Err(error) if backoff.steps > 1 && retriable(&error) => {
                tokio::time::sleep(backoff.step(fastrand::f64())).await;
            }
            outcome => return outcome,
        }
    }
}

/// Retries conflicts. Each try must read the object again, live or after the cache shows the change: a stale object
/// stays stale.
///
/// # Errors
/// Those of `attempt`; a conflict after the last try.
pub async fn retry_on_conflict<T, E: Contended, F: Future<Output = Result<T, E>>>(
    backoff: Backoff,
    attempt: impl FnMut() -> F,
) -> Result<T, E> {
    retry_on(backoff, E::is_conflict, attempt).await
}

// === impl Contended ===

impl Contended for ClientError {
    fn is_conflict(&self) -> bool {
        ClientError::is_conflict(self)
    }
}

impl Contended for WriteError {
    fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict)
    }
}

impl Contended for kube::Error {
    fn is_conflict(&self) -> bool {
        matches!(self, Self::Api(status) if status.is_conflict())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_those_of_client_go() {
        let check = |mut backoff: Backoff, random: f64, want: &[u64]| {
            let waits: Vec<_> = want.iter().map(|_| backoff.step(random)).collect();
            let want: Vec<_> = want.iter().copied().map(Duration::from_millis).collect();
            assert_eq!(waits, want);
        };
        check(Backoff::RETRY, 0.0, &[10, 10, 10, 10, 10, 10]);
        check(Backoff::RETRY, 1.0, &[11, 11, 11]);
        check(Backoff::BUSY, 0.0, &[10, 50, 250, 1250, 6250, 6250]);
        let capped = Backoff { cap: Duration::from_millis(100), ..Backoff::BUSY };
        check(capped, 0.0, &[10, 50, 100, 100]);
        check(Backoff { factor: 0.0, jitter: 0.0, ..Backoff::BUSY }, 1.0, &[10, 10]);
        check(Backoff { steps: 0, ..Backoff::BUSY }, 0.0, &[10, 10]);
    }

    #[test]
    fn the_cap_ends_the_tries() {
        let mut capped = Backoff { cap: Duration::from_millis(100), ..Backoff::BUSY };
        let left = [(); 3].map(|()| {
            capped.step(0.0);
            capped.steps
        });
        assert_eq!(left, [3, 0, 0], "as in client-go, when the next delay would be longer than the cap");
    }

    #[test]
    fn no_wait_overflows() {
        let mut backoff = Backoff { steps: u32::MAX, duration: Duration::MAX, factor: 1e300, ..Backoff::RETRY };
        backoff.step(1.0);
        assert_eq!(backoff.step(1.0), WAIT_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn conflicts_are_tried_again_and_nothing_else_is() {
        for (steps, conflicts, want_tries, want_ok) in
            [(5, 0, 1, true), (5, 4, 5, true), (5, 9, 5, false), (0, 9, 1, false)]
        {
            let mut tries = 0;
            let outcome = retry_on_conflict(Backoff { steps, ..Backoff::RETRY }, || {
                tries += 1;
                let outcome = if tries > conflicts { Ok(()) } else { Err(WriteError::Conflict) };
                async { outcome }
            });
            assert_eq!(outcome.await.is_ok(), want_ok);
            assert_eq!(tries, want_tries, "{steps} steps, {conflicts} conflicts");
        }
        let mut tries = 0;
        let outcome = retry_on_conflict(Backoff::RETRY, || {
            tries += 1;
            async { Err::<(), _>(WriteError::NotFound) }
        });
        assert!(matches!(outcome.await, Err(WriteError::NotFound)));
        assert_eq!(tries, 1);
    }
}

//! The back-off of a reflector.
//!
//! Pure: the time and the random number come in as values.

use std::time::Duration;

/// Delays that double from [`FIRST`] to [`LONGEST`], each up to twice as long at random, and start over after a quiet
/// time.
///
/// The values are client-go's (`tools/cache/reflector.go`, 0.37): a healthy server does not notice them, a failing one
/// gets about one request in 45 s from each reflector, and no two reflectors are in step.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    step: u32,
    last: Option<Duration>,
}

const FIRST: Duration = Duration::from_millis(800);
const LONGEST: Duration = Duration::from_secs(30);
/// Without a failure for this long, the server is healthy again.
const RESET_AFTER: Duration = Duration::from_secs(120);
/// The longest delay that a server may ask for: beyond it, the reflector retries sooner, as it may reach another server
/// by then.
const ASKED_MAX: Duration = Duration::from_secs(300);

// === impl Backoff ===

impl Backoff {
    /// Returns the next delay. `now` is any clock's reading; `dice` is in `0.0..1.0`; `asked` is the minimum that the
    /// server asks for.
    pub(super) fn next(&mut self, now: Duration, dice: f64, asked: Option<Duration>) -> Duration {
        if self.last.is_some_and(|last| now.saturating_sub(last) >= RESET_AFTER) {
            self.step = 0;
        }
        let base = FIRST.saturating_mul(1 << self.step.min(16)).min(LONGEST);
        self.step = self.step.saturating_add(1);
        let wait = base.mul_f64(1.0 + dice.clamp(0.0, 1.0)).max(asked.unwrap_or_default().min(ASKED_MAX));
        self.last = Some(now + wait);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn waits_double_up_to_thirty_seconds_and_chance_adds_up_to_as_much() {
        let mut backoff = Backoff::default();
        let waits: Vec<_> = (0..8).map(|_| backoff.next(ms(0), 0.0, None).as_millis()).collect();
        assert_eq!(waits, [800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]);
        assert_eq!(backoff.next(ms(0), 0.5, None), ms(45_000));
        assert_eq!(Backoff::default().next(ms(0), 0.25, None), ms(1000));
    }

    #[test]
    fn two_quiet_minutes_make_the_server_well_again() {
        let mut backoff = Backoff::default();
        backoff.next(ms(0), 0.0, None);
        backoff.next(ms(1000), 0.0, None);
        assert_eq!(backoff.next(ms(100_000), 0.0, None), ms(3200));
        let quiet = ms(103_200 + 120_000);
        let mut too_soon = Backoff { step: backoff.step, last: backoff.last };
        assert_eq!(too_soon.next(quiet - ms(1), 0.0, None), ms(6400), "not counted from the failure itself");
        assert_eq!(backoff.next(quiet, 0.0, None), ms(800), "counted from the end of the last wait");
    }

    #[test]
    fn a_server_gets_the_time_it_asks_for_within_reason() {
        assert_eq!(Backoff::default().next(ms(0), 0.0, Some(ms(7000))), ms(7000));
        assert_eq!(Backoff::default().next(ms(0), 0.0, Some(ms(100))), ms(800));
        assert_eq!(Backoff::default().next(ms(0), 0.0, Some(Duration::MAX)), ASKED_MAX);
    }
}

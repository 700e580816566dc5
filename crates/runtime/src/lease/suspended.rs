//! Time while the machine is suspended, which tokio's clock does not count.
//!
//! On Linux that clock is `CLOCK_MONOTONIC`, and stops during a suspend; `CLOCK_BOOTTIME` does not. The difference of
//! the two is how long the machine was suspended since it was started. Without such a clock, it counts as never
//! suspended.

use std::time::Duration;

use tokio::time::Instant;

/// A time on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// The time on tokio's clock.
    pub(super) at: Instant,
    slept: Slept,
}

/// The time for which the machine was suspended since it was started. The two clocks are read one after the other, and
/// a thread may have to wait in between: so there is a minimum and a maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Slept {
    least: Duration,
    most: Duration,
}

/// The source of suspended time.
#[derive(Clone, Debug, Default)]
pub(super) enum Suspends {
    /// The machine.
    #[default]
    Machine,
    /// A test: this many seconds.
    #[cfg(test)]
    Given(std::sync::Arc<std::sync::atomic::AtomicU64>),
}

// === impl Suspends ===

impl Suspends {
    pub(super) fn now(&self) -> Moment {
        Moment { at: Instant::now(), slept: self.slept() }
    }

    /// Returns the time since `moment`, including a suspend. Never more than the truth, so that a busy machine does not
    /// make a leader late that is not; and less by no more than it takes to read a clock.
    pub(super) fn since(&self, moment: Moment) -> Duration {
        moment.at.elapsed() + self.slept().least.saturating_sub(moment.slept.most)
    }

    #[cfg_attr(not(test), allow(clippy::unused_self, reason = "a test sets it"))]
    fn slept(&self) -> Slept {
        match self {
            Self::Machine => machine_slept(),
            #[cfg(test)]
            Self::Given(seconds) => {
                let slept = Duration::from_secs(seconds.load(std::sync::atomic::Ordering::Relaxed));
                Slept { least: slept, most: slept }
            }
        }
    }
}

#[cfg(any(target_os = "android", target_os = "linux"))]
fn machine_slept() -> Slept {
    use rustix::time::{ClockId, clock_gettime};
    let read = |clock| Duration::try_from(clock_gettime(clock)).unwrap_or_default();
    let before = read(ClockId::Monotonic);
    let booted = read(ClockId::Boottime);
    let after = read(ClockId::Monotonic);
    Slept { least: booted.saturating_sub(after), most: booted.saturating_sub(before) }
}

#[cfg(not(any(target_os = "android", target_os = "linux")))]
fn machine_slept() -> Slept {
    Slept::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suspended_time_is_measured_and_is_zero_while_awake() {
        let before = machine_slept();
        for _ in 0..1_000 {
            let now = machine_slept();
            assert!(now.least <= now.most);
            assert_eq!(now.least.saturating_sub(before.most), Duration::ZERO, "however busy it is");
        }
    }
}

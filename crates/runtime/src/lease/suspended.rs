//! Time that passes while the machine is suspended, which tokio's clock does not count.
//!
//! On Linux that clock is `CLOCK_MONOTONIC`, and stops during a suspend; `CLOCK_BOOTTIME` goes on. The difference of the two
//! says how long the machine slept since it was started. Where there is no such clock, nothing is said to have been slept.

use std::time::Duration;

use tokio::time::Instant;

/// A moment on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// On tokio's clock.
    pub(super) at: Instant,
    slept: Slept,
}

/// How long the machine slept since it was started. The two clocks are read one after the other, and a thread may have to
/// wait in between: so there is a least and a most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Slept {
    least: Duration,
    most: Duration,
}

/// Who knows how long the machine slept.
#[derive(Clone, Debug, Default)]
pub(super) enum Suspends {
    /// The machine.
    #[default]
    Machine,
    /// A test: so many seconds.
    #[cfg(test)]
    Told(std::sync::Arc<std::sync::atomic::AtomicU64>),
}

// === impl Suspends ===

impl Suspends {
    pub(super) fn now(&self) -> Moment {
        Moment { at: Instant::now(), slept: self.slept() }
    }

    /// How long ago this was, a suspend included. Never more than the truth, so that a busy machine does not make a leader
    /// late that is not; and less by no more than it takes to read a clock.
    pub(super) fn since(&self, moment: Moment) -> Duration {
        moment.at.elapsed() + self.slept().least.saturating_sub(moment.slept.most)
    }

    #[cfg_attr(not(test), allow(clippy::unused_self, reason = "a test tells"))]
    fn slept(&self) -> Slept {
        match self {
            Self::Machine => machine_slept(),
            #[cfg(test)]
            Self::Told(seconds) => {
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
    fn the_machine_tells_a_span_and_a_machine_that_is_awake_did_not_sleep() {
        let before = machine_slept();
        for _ in 0..1_000 {
            let now = machine_slept();
            assert!(now.least <= now.most);
            assert_eq!(now.least.saturating_sub(before.most), Duration::ZERO, "however busy it is");
        }
    }
}

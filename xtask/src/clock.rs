//! The real clock. `clippy.toml` bans it everywhere else, so that tests can pause time; a command that waits for other
//! processes has no time of its own to pause.

#![expect(clippy::disallowed_methods, reason = "xtask waits for other processes")]

use std::time::{Duration, Instant};

/// Since when something runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

// === impl Stopwatch ===

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

pub(crate) fn pause(duration: Duration) {
    std::thread::sleep(duration);
}

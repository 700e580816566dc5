//! Signals that shut a program down in order.

use std::future::Future;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Returns a token that is cancelled by Ctrl-C, SIGTERM or SIGHUP. A second Ctrl-C ends the process at once.
///
/// Must be called within a tokio runtime, because it spawns a task that waits for the signals.
///
/// ```no_run
/// # async fn example(manager: steersman_runtime::Manager) -> Result<(), steersman_runtime::ManagerError> {
/// manager.run(steersman_runtime::signals::stop()).await
/// # }
/// ```
#[must_use]
pub fn stop() -> CancellationToken {
    let stop = CancellationToken::new();
    tokio::spawn(stop_on_signal(stop.clone()));
    stop
}

/// Waits for Ctrl-C, SIGTERM or SIGHUP (a closed terminal sends it), then cancels `stop`. A second Ctrl-C ends the process at
/// once. Under `nohup`, SIGHUP stays ignored.
///
/// The signal handlers are installed by this call, not by the first poll of the future: a signal that arrives in between would
/// otherwise kill the process.
pub fn stop_on_signal(stop: CancellationToken) -> impl Future<Output = ()> + Send + 'static {
    let mut interrupted = signal(SignalKind::interrupt()).ok();
    let mut terminated = signal(SignalKind::terminate()).ok();
    let mut hung_up = if ignores_hangup() { None } else { signal(SignalKind::hangup()).ok() };
    async move {
        tokio::select! {
            biased;
            () = received(&mut interrupted) => {}
            () = received(&mut terminated) => {}
            () = received(&mut hung_up) => {}
        }
        tracing::info!("stopping: running reconciles finish first; Ctrl-C again ends at once");
        stop.cancel();
        received(&mut interrupted).await;
        std::process::exit(130);
    }
}

/// Whether the process was started with SIGHUP ignored. Installing a handler would undo that.
#[doc(hidden)]
#[must_use]
pub fn ignores_hangup() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| has_hangup(&status))
}

/// Whether SIGHUP (signal 1) is in the mask of ignored signals.
fn has_hangup(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// Waits for a signal; never completes if its handler could not be installed.
async fn received(signals: &mut Option<Signal>) {
    let received = match signals {
        Some(signals) => signals.recv().await,
        None => None,
    };
    if received.is_none() {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sighup_stays_ignored_under_nohup() {
        for (status, want) in [
            ("Name:\tsteersman\nSigIgn:\t0000000000001001\n", true),
            ("SigIgn:\t0000000000001000\nSigCgt:\t0000000000000001\n", false),
            ("", false),
        ] {
            assert_eq!(has_hangup(status), want, "{status:?}");
        }
    }
}

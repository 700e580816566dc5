//! How a command ends.

use std::future::Future;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Ctrl-C, SIGTERM and SIGHUP, which a closed terminal sends, end the program in order; a second Ctrl-C ends it at once.
/// Under `nohup` SIGHUP stays ignored.
///
/// Signals are heard from this call on, and not only from when the future is first polled: a signal that comes before
/// that would end the program without any order.
pub(super) fn stop_on_signal(stop: CancellationToken) -> impl Future<Output = ()> + Send + 'static {
    let mut interrupted = signal(SignalKind::interrupt()).ok();
    let mut terminated = signal(SignalKind::terminate()).ok();
    let mut hung_up = if ignores_hangup() { None } else { signal(SignalKind::hangup()).ok() };
    async move {
        tokio::select! {
            biased;
            () = heard(&mut interrupted) => {}
            () = heard(&mut terminated) => {}
            () = heard(&mut hung_up) => {}
        }
        tracing::info!("stopping: reconciles in flight finish first; Ctrl-C again ends at once");
        stop.cancel();
        heard(&mut interrupted).await;
        std::process::exit(130);
    }
}

/// Whether whoever started the program has told it to ignore SIGHUP. To listen for it would undo that.
fn ignores_hangup() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| has_hangup(&status))
}

/// Whether SIGHUP, the first signal, is in the mask of ignored ones.
fn has_hangup(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// Waits for a signal; for ever, if it cannot be heard.
async fn heard(signals: &mut Option<Signal>) {
    let heard = match signals {
        Some(signals) => signals.recv().await,
        None => None,
    };
    if heard.is_none() {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nohup_ignores_stays_ignored() {
        for (status, want) in [
            ("Name:\tsteersman\nSigIgn:\t0000000000001001\n", true),
            ("SigIgn:\t0000000000001000\nSigCgt:\t0000000000000001\n", false),
            ("", false),
        ] {
            assert_eq!(has_hangup(status), want, "{status:?}");
        }
    }
}

//! How a command ends.

use std::future::Future;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Ctrl-C and SIGTERM end the program in order; a second Ctrl-C ends it at once.
///
/// Signals are heard from this call on, and not only from when the future is first polled: a signal that comes before
/// that would end the program without any order.
pub(super) fn stop_on_signal(stop: CancellationToken) -> impl Future<Output = ()> + Send + 'static {
    let mut interrupted = signal(SignalKind::interrupt()).ok();
    let mut terminated = signal(SignalKind::terminate()).ok();
    async move {
        tokio::select! {
            biased;
            () = heard(&mut interrupted) => {}
            () = heard(&mut terminated) => {}
        }
        tracing::info!("stopping: reconciles in flight finish first; Ctrl-C again ends at once");
        stop.cancel();
        heard(&mut interrupted).await;
        std::process::exit(130);
    }
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

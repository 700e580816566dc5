//! How a command ends.

use tokio_util::sync::CancellationToken;

/// Ctrl-C and SIGTERM end the program in order; a second Ctrl-C ends it at once.
pub(super) async fn stop_on_signal(stop: CancellationToken) {
    use tokio::signal::unix::{SignalKind, signal};
    let terminated = async {
        match signal(SignalKind::terminate()) {
            Ok(mut signals) => drop(signals.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminated => {}
    }
    tracing::info!("stopping: reconciles in flight finish first; Ctrl-C again ends at once");
    stop.cancel();
    if tokio::signal::ctrl_c().await.is_ok() {
        std::process::exit(130);
    }
}

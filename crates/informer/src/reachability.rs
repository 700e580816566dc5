//! Whether the API server can be reached: one small request per second while it cannot, and a notification when it is
//! back.
//!
//! 1. A component that cannot reach the server reports it with [`Reachability::lost`], and backs off as always.
//! 2. After that, one task requests `/version` about once a second, however many components wait. Nothing is requested
//!    otherwise.
//! 3. When the server responds, components that [wait](Reachability::back) need not wait for a back-off that grew for
//!    an hour.

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use steersman_base::watch;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// Whether the API server can be reached. Cheap to clone.
#[derive(Clone)]
pub struct Reachability(Arc<Shared>);

struct Shared {
    client: Client,
    stop: CancellationToken,
    runtime: Handle,
    asking: Mutex<bool>,
    /// The number of times the server came back.
    returns: watch::Sender<u64>,
}

/// Often enough to be back within seconds, seldom enough that a thousand clients of a failing server do no harm.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// The maximum time of a response.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Every waiter delays itself by a random part of this after the return, so that not all come at once.
const SPREAD: Duration = Duration::from_secs(1);

// === impl Reachability ===

impl Reachability {
    /// Creates a check through `client`, until `stop`.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn new(client: Client, stop: CancellationToken) -> Self {
        let asking = Mutex::new(false);
        let returns = watch::Sender::new(0);
        Self(Arc::new(Shared { client, stop, runtime: Handle::current(), asking, returns }))
    }

    /// Reports that the server could not be reached.
    pub fn lost(&self) {
        if !std::mem::replace(&mut *self.0.asking.lock(), true) {
            let shared = Arc::clone(&self.0);
            self.0.runtime.spawn(async move {
                let stop = shared.stop.clone();
                stop.run_until_cancelled(shared.ask_until_answered()).await;
            });
        }
    }

    /// Returns the number of times the server came back, now and later.
    #[must_use]
    pub fn returns(&self) -> watch::Receiver<u64> {
        self.0.returns.subscribe()
    }

    /// Waits until the server is back; `chance` (0 … 1) spreads the waiters.
    pub async fn back(&self, chance: f64) {
        let mut returns = self.returns();
        if returns.changed().await.is_err() {
            return std::future::pending().await;
        }
        tokio::time::sleep(SPREAD.mul_f64(chance)).await;
    }
}

impl std::fmt::Debug for Reachability {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reachability").field("returns", &*self.0.returns.borrow()).finish_non_exhaustive()
    }
}

// === impl Shared ===

impl Shared {
    async fn ask_until_answered(&self) {
        let mut was_away = false;
        loop {
            tokio::time::sleep(ASK_EVERY).await;
            if self.answers().await {
                break;
            }
            was_away = true;
        }
        *self.asking.lock() = false;
        // A server that responds while one connection breaks again and again was not away: that connection backs off.
        if was_away {
            self.returns.send_modify(|returns| *returns += 1);
        }
    }

    /// Any response of the server itself counts, even a refusal; a proxy without a server behind it sends 5xx.
    async fn answers(&self) -> bool {
        let Ok(request) = Request::get("/version").body(Body::empty()) else { return false };
        match tokio::time::timeout(ANSWER_WITHIN, self.client.send(request)).await {
            Ok(Ok(response)) => !response.status().is_server_error(),
            Ok(Err(_)) | Err(_) => false,
        }
    }
}

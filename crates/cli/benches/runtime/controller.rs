//! The controller of thirty lines: notes how old each ConfigMap is when its turn comes. Its twin on controller-runtime is
//! `rig/bench-runtime/main.go`, and both speak the same to their parent.

use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::Mutex;
use prometheus::Registry;
use serde_json::{Value, json};
use steersman_base::{Istr, ObjectKey};
use steersman_informer::{Lister, Typed};
use steersman_runtime::{Action, Context, Error, Manager, ManagerOptions, Reconciler, connection};
use tokio_util::sync::CancellationToken;

/// The argument that makes this program be the controller.
pub(crate) const RUN: &str = "--controller";
/// The annotation with the nanoseconds since 1970 at which an event was sent. Without it, an event is for warming up.
pub(crate) const SENT: &str = "bench/sent";

/// Nanoseconds of age, in the order of reconciles.
#[derive(Clone, Default)]
pub(crate) struct Ages(Arc<Mutex<Vec<i64>>>);

struct Noter {
    maps: Lister<Typed<ConfigMap>>,
    ages: Ages,
}

impl Reconciler for Noter {
    async fn reconcile(&self, _: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(map) = self.maps.get(key) else { return Ok(Action::Done) };
        let sent = map.metadata.annotations.as_ref().and_then(|annotations| annotations.get(SENT)?.parse::<i64>().ok());
        if let Some(sent) = sent {
            self.ages.0.lock().push(now_nanos() - sent);
        }
        Ok(Action::Done)
    }
}

/// Adds the controller to a manager.
pub(crate) fn add(manager: &Manager) -> Ages {
    let ages = Ages::default();
    manager.controller::<ConfigMap>("ages").reconcile_with(Noter { maps: manager.lister(), ages: ages.clone() });
    ages
}

/// The manager of a controller in one namespace.
pub(crate) fn manager(client: kube::Client, namespace: &str) -> Manager {
    let options = ManagerOptions::default().namespace(Istr::new(namespace)).metrics(Registry::new());
    Manager::new(client, options).expect("a manager")
}

/// Waits until its caches are filled.
pub(crate) async fn filled(manager: &Manager) {
    while !manager.informers().is_started() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    manager.informers().synced().await.expect("the caches fill");
}

/// The controller as a program: says `ready`, and how old things were when its standard input ends.
pub(crate) fn run(namespace: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let client = connection::connect(connection::Options::default()).await.expect("a client");
        let manager = manager(client, namespace);
        let ages = add(&manager);
        let stop = CancellationToken::new();
        let running = tokio::spawn({
            let manager = manager.clone();
            let stop = stop.clone();
            async move { manager.run(stop).await }
        });
        filled(&manager).await;
        println!("ready");
        let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
        ended.await.expect("a thread").expect("standard input");
        stop.cancel();
        running.await.expect("a task").expect("an orderly end");
        println!("{}", ages.summary());
    });
}

pub(crate) fn now_nanos() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    i64::try_from(since.as_nanos()).expect("it is before 2262")
}

// === impl Ages ===

impl Ages {
    /// Nearest rank, as the twin counts it.
    pub(crate) fn summary(&self) -> Value {
        let mut all = self.0.lock().clone();
        all.sort_unstable();
        let at = |part: f64| {
            all.get((part * all.len().saturating_sub(1) as f64) as usize).map_or(0.0, |ns| *ns as f64 / 1e3)
        };
        json!({"count": all.len(), "p50_us": at(0.5), "p99_us": at(0.99), "max_us": at(1.0)})
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().len()
    }
}

//! From nothing to the first reconcile: a server in the same process, all controllers, and a lease.

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use steersman_apiserver::{ApiServer, Options};
use steersman_base::ObjectKey;
use steersman_runtime::{Action, Context, Error, LeaseOptions, Manager, ManagerOptions, Reconciler};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::process::Process;
use crate::{Side, millis, report};

/// The argument that makes this program start once.
pub(crate) const ONCE: &str = "--start-once";
const STARTS: usize = 7;
const RECONCILED: &str = "reconciled";

/// Says that it was called.
struct First(Arc<Notify>);

impl Reconciler for First {
    async fn reconcile(&self, _: &Context, _: &ObjectKey) -> Result<Action, Error> {
        self.0.notify_one();
        Ok(Action::Done)
    }
}

/// In a process of its own each time: what is loaded and initialised counts.
pub(crate) fn measure() {
    let this = std::env::current_exe().expect("we know who we are");
    let once = || {
        let start = Instant::now();
        Process::start_talking(Command::new(&this).arg(ONCE)).wait_for_line(RECONCILED);
        start.elapsed()
    };
    let best = (0..STARTS).map(|_| once()).min().unwrap_or_default();
    report(Side::Ours, "process start to first reconcile as leader, server in process", millis(best), "ms");
}

/// Starts, says so, and ends.
pub(crate) fn once() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let client = Client::new(ApiServer::new(Options::default()), "default");
        let lease = Some(LeaseOptions::new("kube-system", "kube-controller-manager"));
        let manager =
            Manager::new(client, ManagerOptions::default().lease(lease).without_metrics()).expect("a manager");
        for descriptor in steersman_controllers::ALL {
            let _without_some_if_so = manager.build(descriptor, None);
        }
        let reconciled = Arc::new(Notify::new());
        manager.controller::<Namespace>("first").reconcile_with(First(Arc::clone(&reconciled)));
        let running = tokio::spawn({
            let manager = manager.clone();
            async move { manager.run(CancellationToken::new()).await }
        });
        reconciled.notified().await;
        manager.informers().synced().await.expect("the caches fill");
        assert!(manager.leadership().is_leading(), "it works because it leads");
        println!("{RECONCILED}");
        running.abort();
    });
    runtime.shutdown_timeout(Duration::ZERO);
}

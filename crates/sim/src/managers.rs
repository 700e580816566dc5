//! The managers of a world: each crashes, loses its lease and restarts as planned.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use steersman_apiserver::ApiServer;
use steersman_base::{Clock, Time};
use steersman_controllers::{
    ALL, certificatesigningrequest_cleaner, certificatesigningrequest_signing,
    kube_apiserver_serving_clustertrustbundle_publisher, legacy_serviceaccount_token_cleaner, node_ipam,
    pod_garbage_collector, root_ca_certificate_publisher, serviceaccount_token,
};
use steersman_runtime::decisions::Log;
use steersman_runtime::lease::LeaseOptions;
use steersman_runtime::{Build, Manager, ManagerError, ManagerOptions};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::certificates::AUTHORITY;
use crate::faults::Faults;
use crate::line::Line;
use crate::plan::{Fault, Options};
use crate::server::Recorder;
use crate::trace::hash_of;

/// What managers are started with.
#[derive(Clone)]
pub(crate) struct Setting {
    pub(crate) server: ApiServer,
    pub(crate) recorder: Recorder,
    pub(crate) faults: Faults,
    pub(crate) options: Options,
    pub(crate) seed: u64,
    pub(crate) clock: Clock,
    pub(crate) signer: serviceaccount_token::Signer,
    pub(crate) logs: Logs,
}

/// The decision log of each manager that lives, by the number of its life.
pub(crate) type Logs = Arc<Mutex<BTreeMap<usize, Log>>>;

/// One life of a manager.
struct Life {
    /// The number that no other life has.
    number: usize,
    manager: Manager,
    line: Line,
    task: JoinHandle<Result<(), ManagerError>>,
}

/// The time at which worlds begin: a Sunday.
pub(crate) const EPOCH: i64 = 1_794_744_000;
/// The delay before a manager that has exited is started again.
const STARTS_AGAIN_AFTER: Duration = Duration::from_secs(5);
/// Enough for all that a manager decides in a world.
const DECISIONS_BYTES: usize = 256 << 20;
const MINUTE: Duration = Duration::from_secs(60);
/// How long requests for certificates are kept when they are over, and half of the time otherwise: short enough for a world.
const REQUESTS_KEPT_FOR: Duration = Duration::from_secs(180);
/// How many pods that have ended are kept.
pub(crate) const ENDED_PODS_MAX: i32 = 3;
/// The certificate that is published: of an authority whose key is nowhere, until 2126.
const ROOT_CA: &str = include_str!("../data/root-ca.pem");

// === impl Setting ===

impl Setting {
    /// Keeps a manager running: one process after the other.
    pub(crate) async fn keep_alive(self, number: usize) {
        for life in 0_u64.. {
            self.recorder.note(format_args!("manager {number} starts life {life}"));
            let Some(running) = self.start(number, life) else { return };
            self.live(number, running).await;
        }
    }

    fn start(&self, number: usize, life: u64) -> Option<Life> {
        let seed = hash_of(format!("{} {number} {life}", self.seed).as_bytes());
        let latency = self.options.latency_max;
        // Another life remembers nothing of the one before: it is another manager.
        let who = (number, number + usize::try_from(life).unwrap_or(0) * self.options.managers);
        let line = Line::new(&self.server, &self.recorder, &self.faults, &self.clock, Some(who), latency, seed);
        let skew = self.options.skew_seconds.get(number).copied().unwrap_or(0);
        if skew != 0 {
            self.faults.acted_as("skewed clock");
        }
        if number > 0 {
            self.faults.acted_as("two managers");
        }
        // Its clock is wrong by the same amount in every life.
        let elapsed = i64::try_from(self.faults.now() / 1000).unwrap_or(0);
        let clock = Clock::starting_at(Time::from_unix(EPOCH + elapsed + skew));
        let lease =
            LeaseOptions::new("kube-system", "kube-controller-manager").identity(format!("manager-{number}-{life}"));
        let options =
            ManagerOptions::default().clock(clock).lease(lease).decisions_bytes_max(DECISIONS_BYTES).without_metrics();
        let manager = match Manager::new(line.client(None), options) {
            Ok(manager) => manager,
            Err(error) => {
                self.recorder.fail("a manager starts", error.to_string());
                return None;
            }
        };
        let root_ca: Option<Arc<str>> = Some(ROOT_CA.into());
        manager.set_options(root_ca_certificate_publisher::Options::default().root_ca(root_ca.clone()));
        // The ranges of simulated nodes.
        let cluster = "10.128.0.0/9".to_owned();
        manager.set_options(node_ipam::Options::default().allocate(true).cluster(cluster).mask(22));
        let bundle = kube_apiserver_serving_clustertrustbundle_publisher::Options::default().root_ca(root_ca.clone());
        manager.set_options(bundle);
        let authority = &*AUTHORITY;
        let signing = certificatesigningrequest_signing::Options::signed_by(&authority.certificate, &authority.key);
        manager.set_options(signing);
        manager.set_options(
            certificatesigningrequest_cleaner::Options::default()
                .every(MINUTE)
                .ended_for(REQUESTS_KEPT_FOR)
                .waiting_for(2 * REQUESTS_KEPT_FOR),
        );
        manager
            .set_options(legacy_serviceaccount_token_cleaner::Options::default().clean_up_period(MINUTE).every(MINUTE));
        manager.set_options(pod_garbage_collector::Options::default().terminated_pod_threshold(ENDED_PODS_MAX));
        manager.set_options(serviceaccount_token::Options::default().signer(self.signer.clone()).root_ca(root_ca));
        for descriptor in ALL.iter().filter(|descriptor| self.options.runs(descriptor)) {
            let context = manager.context().with_client(line.client(Some(descriptor.name)));
            if let Build::Disabled(why) = manager.build_as(descriptor, None, &context) {
                self.recorder.fail("all controllers run", format!("{} does not: {why}", descriptor.name));
            }
        }
        self.logs.lock().insert(who.1, manager.decisions().clone());
        let running = manager.clone();
        let task = tokio::spawn(async move { running.run(CancellationToken::new()).await });
        Some(Life { number: who.1, manager, line, task })
    }

    /// Until the end of one life, and the pause after it.
    async fn live(&self, number: usize, mut life: Life) {
        let dies_at_last = async {
            loop {
                let Some(at) = self.faults.next_death(number) else { return std::future::pending().await };
                tokio::time::sleep_until(self.faults.instant(at)).await;
                if let Some(away) = self.faults.dies_at_last(number, at) {
                    return life.line.kill(away);
                }
                // It was killed after a write before.
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let ended = tokio::select! {
            biased;
            () = life.line.dead().cancelled() => None,
            () = dies_at_last => None,
            ended = &mut life.task => Some(ended),
        };
        let pause = match ended {
            None => {
                self.recorder.note(format_args!("manager {number}: {}", Fault::Killed { writes: 0, away: 0 }.name()));
                life.task.abort();
                let _ = life.task.await;
                Duration::from_millis(life.line.away())
            }
            Some(Ok(Err(ManagerError::LeadershipLost))) => {
                self.recorder.note(format_args!("manager {number} lost its lease"));
                STARTS_AGAIN_AFTER
            }
            Some(ended) => {
                self.recorder.fail("a manager runs until it is killed or loses its lease", format!("{ended:?}"));
                STARTS_AGAIN_AFTER
            }
        };
        // Nothing of it reaches the server any more.
        self.logs.lock().remove(&life.number);
        life.line.kill(0);
        life.manager.informers().stop().await;
        drop(life.manager);
        tokio::time::sleep(pause).await;
    }
}

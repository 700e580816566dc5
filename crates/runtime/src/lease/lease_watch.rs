//! A standby's watch of the lease between two polls.
//!
//! A watch makes a standby quick, but decides nothing: the elector reads the lease before it writes it, and keeps
//! polling.

use std::sync::Arc;

use steersman_base::watch;
use steersman_base::{ObjectKey, ResourceVersion};
use steersman_informer::__internal::reflector::{Phase, ProblemKind, Reflector, ReflectorOptions};
use steersman_informer::__internal::sink::{Sink, Verdict, WatchEvent};
use steersman_informer::{Selection, Target};
use steersman_model::coordination::LeaseSpec;
use steersman_model::{Kind, LeaseView};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

/// A watch of one lease. It ends when this is dropped.
pub(super) struct Watching {
    last: watch::Receiver<Observation>,
    _stop: DropGuard,
}

/// The last observation.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Observation {
    /// The lease does not exist, or has not been observed yet.
    #[default]
    Nothing,
    /// A record, and when it was received.
    Record(LeaseSpec, Instant),
}

/// Receives the lease from a reflector.
struct LeaseSink(watch::Sender<Observation>);

// === impl Watching ===

impl Watching {
    pub(super) fn start(client: kube::Client, key: &ObjectKey) -> Self {
        let (sender, last) = watch::channel(Observation::Nothing);
        let stop = CancellationToken::new();
        let selection = Selection::namespace(&key.namespace).with_fields(&format!("metadata.name={}", key.name));
        let target = Target { resource: LeaseView::RESOURCE, selection };
        let reflector = Reflector::<LeaseView>::new(client, target, ReflectorOptions::default());
        tokio::spawn(watch_or_give_up(reflector, LeaseSink(sender), key.clone(), stop.clone()));
        Self { last, _stop: stop.drop_guard() }
    }

    /// Waits for the next observation; forever, if the lease may not be watched.
    pub(super) async fn next(&mut self) -> Observation {
        match self.last.changed().await {
            Ok(()) => self.last.borrow_and_update().clone(),
            Err(_) => std::future::pending().await,
        }
    }
}

/// Gives up without the right to watch: repeated requests would only fill logs.
async fn watch_or_give_up(reflector: Reflector<LeaseView>, sink: LeaseSink, key: ObjectKey, stop: CancellationToken) {
    let mut state = reflector.state();
    let refused = state.wait_for(|state| {
        let refused = state.problem.as_ref().is_some_and(|problem| problem.kind == ProblemKind::Forbidden);
        refused && state.phase == Phase::Waiting
    });
    tokio::select! {
        biased;
        () = reflector.run(sink, stop) => {}
        _ = refused => tracing::info!(lease = %key, "this account may not watch the lease; it is polled"),
    }
}

// === impl LeaseSink ===

impl LeaseSink {
    fn record(&self, lease: &LeaseView) {
        self.0.send_replace(Observation::Record(lease.spec.clone(), Instant::now()));
    }
}

impl Sink<LeaseView> for LeaseSink {
    fn known(&self, _: &ObjectKey) -> Option<Arc<LeaseView>> {
        None
    }

    fn replace(&mut self, leases: Vec<Arc<LeaseView>>, _: ResourceVersion) {
        match leases.first() {
            Some(lease) => self.record(lease),
            None => drop(self.0.send_replace(Observation::Nothing)),
        }
    }

    fn apply(&mut self, event: WatchEvent<LeaseView>) -> Verdict {
        match event {
            WatchEvent::Added(lease) | WatchEvent::Modified(lease) => self.record(&lease),
            WatchEvent::Deleted(_) => drop(self.0.send_replace(Observation::Nothing)),
            WatchEvent::Unreadable { .. } => return Verdict::NoNews,
        }
        Verdict::News
    }

    fn reached(&mut self, _: ResourceVersion) {}
}

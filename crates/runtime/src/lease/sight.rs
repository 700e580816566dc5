//! What a standby sees of the lease between two polls.
//!
//! A watch makes a standby quick, never right: whatever it shows, the elector reads the lease before it writes it, and it
//! polls on.

use std::sync::Arc;

use steersman_base::watch;
use steersman_base::{ObjectKey, ResourceVersion};
use steersman_informer::__internal::sink::{Sink, Verdict, WatchEvent};
use steersman_informer::reflector::{Phase, ProblemKind, Reflector, ReflectorOptions};
use steersman_informer::{Scope, Target};
use steersman_model::coordination::LeaseSpec;
use steersman_model::{Kind, LeaseView};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

/// A watch on one lease. It ends when this is dropped.
pub(super) struct Watching {
    last: watch::Receiver<Sight>,
    _stop: DropGuard,
}

/// What was seen last.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Sight {
    /// There is none, or nobody has looked yet.
    #[default]
    Nothing,
    /// A record, and when it came.
    Record(LeaseSpec, Instant),
}

struct Eye(watch::Sender<Sight>);

// === impl Watching ===

impl Watching {
    pub(super) fn start(client: kube::Client, key: &ObjectKey) -> Self {
        let (sender, last) = watch::channel(Sight::Nothing);
        let stop = CancellationToken::new();
        let scope = Scope::namespace(&key.namespace).with_fields(&format!("metadata.name={}", key.name));
        let target = Target { resource: LeaseView::RESOURCE, scope };
        let reflector = Reflector::<LeaseView>::new(client, target, ReflectorOptions::default());
        tokio::spawn(watch_or_give_up(reflector, Eye(sender), key.clone(), stop.clone()));
        Self { last, _stop: stop.drop_guard() }
    }

    /// The next sight; none comes if the lease may not be watched.
    pub(super) async fn next(&mut self) -> Sight {
        match self.last.changed().await {
            Ok(()) => self.last.borrow_and_update().clone(),
            Err(_) => std::future::pending().await,
        }
    }
}

/// Asking again for a right that is not there would only fill logs.
async fn watch_or_give_up(reflector: Reflector<LeaseView>, eye: Eye, key: ObjectKey, stop: CancellationToken) {
    let mut state = reflector.state();
    let refused = state.wait_for(|state| {
        let refused = state.problem.as_ref().is_some_and(|problem| problem.kind == ProblemKind::Forbidden);
        refused && state.phase == Phase::Waiting
    });
    tokio::select! {
        biased;
        () = reflector.run(eye, stop) => {}
        _ = refused => tracing::info!(lease = %key, "this account may not watch the lease; it is polled"),
    }
}

// === impl Eye ===

impl Eye {
    fn sees(&self, lease: &LeaseView) {
        self.0.send_replace(Sight::Record(lease.spec.clone(), Instant::now()));
    }
}

impl Sink<LeaseView> for Eye {
    fn known(&self, _: &ObjectKey) -> Option<Arc<LeaseView>> {
        None
    }

    fn replace(&mut self, leases: Vec<Arc<LeaseView>>, _: ResourceVersion) {
        match leases.first() {
            Some(lease) => self.sees(lease),
            None => drop(self.0.send_replace(Sight::Nothing)),
        }
    }

    fn apply(&mut self, event: WatchEvent<LeaseView>) -> Verdict {
        match event {
            WatchEvent::Added(lease) | WatchEvent::Modified(lease) => self.sees(&lease),
            WatchEvent::Deleted(_) => drop(self.0.send_replace(Sight::Nothing)),
            WatchEvent::Unreadable { .. } => return Verdict::NoNews,
        }
        Verdict::News
    }

    fn reached(&mut self, _: ResourceVersion) {}
}

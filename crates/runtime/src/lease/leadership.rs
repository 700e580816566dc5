//! Whether this process may write, and until when.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use steersman_base::Istr;
use steersman_base::watch;
use tokio::time::Instant;

use super::options::LeaseOptions;
use super::suspended::{Moment, Suspends};

/// Whether this process leads, and so may write. Cheap to clone; clones are the same leadership.
///
/// It uses tokio's clock, which is monotonic, and needs no task to run for its deadline to count. Time for which the
/// machine was suspended counts too, where that can be known (on Linux).
#[derive(Clone, Debug)]
pub struct Leadership(Kind);

#[derive(Clone, Debug)]
enum Kind {
    /// There is no election.
    Always,
    Leased(Arc<Shared>),
}

#[derive(Debug)]
struct Shared {
    /// `namespace/name`.
    lease: Box<str>,
    identity: Istr,
    renew_deadline: Duration,
    lease_duration: Duration,
    suspends: Suspends,
    state: watch::Sender<State>,
}

#[derive(Debug, Default)]
struct State {
    term: Term,
    /// The last known holder of the lease.
    holder: Option<Istr>,
    /// The time at which this process learned that it leads.
    acquired: Option<Instant>,
    /// The reason for which the server refused the last request for the lease.
    refused: Option<Box<str>>,
}

/// The phase of an elector's one term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Term {
    /// Another process leads, or none.
    #[default]
    Ahead,
    Leading {
        /// The time at which the last successful renewal was sent.
        renewed: Moment,
    },
    Over,
}

/// This process does not lead, or no longer: nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the leader by lease {lease}: {why}")]
#[non_exhaustive]
pub struct NotLeader {
    lease: Box<str>,
    why: Why,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Why {
    #[error("it is held by {0}")]
    HeldBy(Istr),
    #[error("it has not been acquired yet")]
    NotYet,
    #[error("it was not renewed in time; the deadline passed {0:?} ago")]
    Late(Duration),
    #[error("it was lost or given back")]
    Over,
    #[error("the process is ending")]
    Ending,
}

/// A leader that neither renews its lease nor gives up: something in the process hangs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed election to renew leadership on lease {lease}: renewed {since:?} ago")]
#[non_exhaustive]
pub(crate) struct RenewalOverdue {
    lease: Box<str>,
    since: Duration,
}

// === impl Leadership ===

impl Leadership {
    /// Returns the leadership of a process without an election: it always leads.
    #[must_use]
    pub const fn always() -> Self {
        Self(Kind::Always)
    }

    /// Whether there is no election, so that this process always leads.
    #[must_use]
    pub(crate) const fn is_always(&self) -> bool {
        matches!(self.0, Kind::Always)
    }

    pub(super) fn waiting(options: &LeaseOptions, identity: Istr) -> Self {
        Self::waiting_on(options, identity, Suspends::default())
    }

    /// As `waiting`, with a measure of how long the machine was suspended.
    pub(super) fn waiting_on(options: &LeaseOptions, identity: Istr, suspends: Suspends) -> Self {
        Self(Kind::Leased(Arc::new(Shared {
            lease: format!("{}/{}", options.namespace, options.name).into(),
            identity,
            renew_deadline: options.renew_deadline,
            lease_duration: options.lease_duration,
            suspends,
            state: watch::Sender::default(),
        })))
    }

    /// Whether this process leads now.
    #[must_use]
    pub fn is_leading(&self) -> bool {
        self.check().is_ok()
    }

    /// Checks whether this process may write now: call it right before sending.
    ///
    /// # Errors
    /// This process does not lead, or the deadline has passed. Do not retry: the process is a standby, or it is about
    /// to exit.
    pub fn check(&self) -> Result<(), NotLeader> {
        let Kind::Leased(shared) = &self.0 else { return Ok(()) };
        let state = shared.state.borrow();
        let why = match state.term {
            Term::Leading { renewed } => match shared.suspends.since(renewed).checked_sub(shared.renew_deadline) {
                None => return Ok(()),
                Some(late) => Why::Late(late),
            },
            Term::Over => Why::Over,
            Term::Ahead => match &state.holder {
                Some(holder) if *holder != shared.identity => Why::HeldBy(holder.clone()),
                _ => Why::NotYet,
            },
        };
        Err(NotLeader { lease: shared.lease.clone(), why })
    }

    /// Waits until this process leads; forever, if its election has ended.
    pub async fn acquired(&self) {
        let Kind::Leased(shared) = &self.0 else { return };
        let mut state = shared.state.subscribe();
        loop {
            if self.is_leading() {
                return;
            }
            // `shared` holds the sender, so there is always a next state to wait for.
            let _ = state.changed().await;
        }
    }

    /// Returns when this process learned that it leads; `None` before, and without an election.
    #[must_use]
    pub(crate) fn acquired_at(&self) -> Option<Instant> {
        let Kind::Leased(shared) = &self.0 else { return None };
        shared.state.borrow().acquired
    }

    /// Waits until the leader is known: this process or another one.
    #[doc(hidden)]
    pub async fn decided(&self) {
        let Kind::Leased(shared) = &self.0 else { return };
        let decided = |state: &State| state.term != Term::Ahead || state.holder.is_some();
        // `shared` holds the sender, so this ends with a decision.
        drop(shared.state.subscribe().wait_for(decided).await);
    }

    /// Waits until this process has led and no longer does, even if only the deadline has passed.
    pub async fn lost(&self) {
        let Kind::Leased(shared) = &self.0 else { return std::future::pending().await };
        let mut state = shared.state.subscribe();
        loop {
            let term = state.borrow_and_update().term;
            let Term::Leading { renewed } = term else {
                if term == Term::Over {
                    return;
                }
                let _ = state.changed().await;
                continue;
            };
            let deadline = renewed.at + shared.renew_deadline;
            if Instant::now() >= deadline || shared.suspends.since(renewed) >= shared.renew_deadline {
                return;
            }
            // Renewals wake no task: a sleeper until the old deadline checks again then.
            tokio::select! {
                biased;
                _ = state.changed() => {}
                () = tokio::time::sleep_until(deadline) => {}
            }
        }
    }

    /// Returns the last known holder of the lease; `None` without an election.
    #[must_use]
    pub fn holder(&self) -> Option<Istr> {
        let Kind::Leased(shared) = &self.0 else { return None };
        shared.state.borrow().holder.clone()
    }

    /// Returns the identity of this process in the election; `None` without one.
    #[doc(hidden)]
    #[must_use]
    pub fn identity(&self) -> Option<&str> {
        let Kind::Leased(shared) = &self.0 else { return None };
        Some(&shared.identity)
    }

    /// Runs upstream's health check `leaderElection`: fails for a leader that neither renewed its lease for its
    /// duration and `tolerated` on top, nor gave up. A standby is healthy.
    ///
    /// # Errors
    /// Something hangs; the process should be restarted.
    pub(crate) fn check_renewal(&self, tolerated: Duration) -> Result<(), RenewalOverdue> {
        let Kind::Leased(shared) = &self.0 else { return Ok(()) };
        let Term::Leading { renewed } = shared.state.borrow().term else { return Ok(()) };
        let since = renewed.at.elapsed();
        if since <= shared.lease_duration + tolerated {
            return Ok(());
        }
        Err(RenewalOverdue { lease: shared.lease.clone(), since })
    }

    /// Returns why the server refuses the lease: missing rights, or a missing namespace. Problems that may pass, such
    /// as an unreachable server, are not reported here.
    #[doc(hidden)]
    #[must_use]
    pub fn refusal(&self) -> Option<Box<str>> {
        let Kind::Leased(shared) = &self.0 else { return None };
        shared.state.borrow().refused.clone()
    }

    /// Whether a body must check again when it is sent.
    pub(super) const fn is_leased(&self) -> bool {
        matches!(self.0, Kind::Leased(_))
    }

    /// The refusal of a process whose runtime has ended.
    pub(super) fn ending(&self) -> NotLeader {
        let lease = match &self.0 {
            Kind::Leased(shared) => shared.lease.clone(),
            Kind::Always => Box::default(),
        };
        NotLeader { lease, why: Why::Ending }
    }

    /// Returns the current time, for [`renewed`](Self::renewed) of a request that is about to be sent.
    pub(super) fn moment(&self) -> Moment {
        self.suspends().now()
    }

    /// Returns the time since `moment`, including the time for which the machine was suspended.
    pub(super) fn since(&self, moment: Moment) -> Duration {
        self.suspends().since(moment)
    }

    fn suspends(&self) -> &Suspends {
        match &self.0 {
            Kind::Always => &Suspends::Machine,
            Kind::Leased(shared) => &shared.suspends,
        }
    }

    /// Records that the renewal (or acquisition) that was sent at `renewed` has succeeded.
    pub(super) fn renewed(&self, renewed: Moment) {
        let Kind::Leased(shared) = &self.0 else { return };
        shared.state.send_if_modified(|state| {
            let is_new = state.term == Term::Ahead;
            if is_new {
                state.acquired = Some(Instant::now());
            }
            if state.term != Term::Over {
                state.term = Term::Leading { renewed };
            }
            is_new
        });
    }

    /// Ends the term, for good.
    pub(super) fn end(&self) {
        let Kind::Leased(shared) = &self.0 else { return };
        shared.state.send_if_modified(|state| std::mem::replace(&mut state.term, Term::Over) != Term::Over);
    }

    pub(super) fn set_refusal(&self, why: Option<String>) {
        let Kind::Leased(shared) = &self.0 else { return };
        shared.state.send_if_modified(|state| {
            state.refused = why.map(String::into_boxed_str);
            // No task waits for it.
            false
        });
    }

    pub(super) fn set_holder(&self, holder: Option<&Istr>) {
        let Kind::Leased(shared) = &self.0 else { return };
        shared.state.send_if_modified(|state| {
            let changed = state.holder.as_ref() != holder;
            state.holder = holder.cloned();
            changed
        });
    }
}

// === impl NotLeader ===

impl NotLeader {
    /// Returns the refusal among the causes of an error, by which a client reports that a body was held back.
    #[doc(hidden)]
    #[must_use]
    pub fn cause_of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        let mut causes = std::iter::successors(Some(error), |error| (*error).source());
        causes.find_map(|cause| cause.downcast_ref())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use futures::FutureExt;

    use super::*;

    fn waiting() -> Leadership {
        Leadership::waiting(&LeaseOptions::new("kube-system", "test"), "me".into())
    }

    #[tokio::test(start_paused = true)]
    async fn without_an_election_a_process_always_leads() {
        let leadership = Leadership::always();
        leadership.acquired().await;
        assert_eq!(leadership.check(), Ok(()));
        assert_eq!(leadership.lost().now_or_never(), None);
        assert_eq!(leadership.check_renewal(Duration::ZERO), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn the_deadline_counts_from_the_renewal_and_needs_no_task() {
        let leadership = waiting();
        assert!(!leadership.is_leading());
        let sent = leadership.moment();
        tokio::time::sleep(Duration::from_secs(4)).await;
        leadership.renewed(sent);
        tokio::time::sleep(Duration::from_millis(5_999)).await;
        assert_eq!(leadership.check(), Ok(()));
        tokio::time::sleep(Duration::from_millis(1)).await;
        let refusal = leadership.check().unwrap_err().to_string();
        assert_eq!(
            refusal,
            "not the leader by lease kube-system/test: it was not renewed in time; the deadline passed 0ns ago"
        );
        assert_eq!(leadership.lost().now_or_never(), Some(()));
    }

    #[tokio::test(start_paused = true)]
    async fn time_for_which_the_machine_was_suspended_counts() {
        let slept = Arc::new(AtomicU64::new(86_400));
        let suspends = Suspends::Given(Arc::clone(&slept));
        let leadership = Leadership::waiting_on(&LeaseOptions::new("kube-system", "test"), "me".into(), suspends);
        let sent = leadership.moment();
        leadership.renewed(sent);
        tokio::time::sleep(Duration::from_secs(4)).await;
        slept.fetch_add(5, Ordering::Relaxed);
        assert_eq!(leadership.check(), Ok(()), "nine seconds");
        slept.fetch_add(3600, Ordering::Relaxed);
        let refusal = leadership.check().unwrap_err().to_string();
        assert!(refusal.ends_with("the deadline passed 3599s ago"), "{refusal}");
        assert_eq!(leadership.lost().now_or_never(), Some(()));
        assert_eq!(leadership.since(sent), Duration::from_secs(3609));
    }

    #[tokio::test(start_paused = true)]
    async fn many_can_wait_for_the_term_and_for_its_end() {
        let leadership = waiting();
        let start = Instant::now();
        let wait = |leadership: Leadership| {
            tokio::spawn(async move {
                leadership.acquired().await;
                let acquired = start.elapsed().as_secs();
                leadership.lost().await;
                (acquired, start.elapsed().as_secs())
            })
        };
        let waiters = [wait(leadership.clone()), wait(leadership.clone()), wait(leadership.clone())];
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_secs(6)).await;
            leadership.renewed(leadership.moment());
        }
        for waiter in waiters {
            assert_eq!(waiter.await.unwrap(), (6, 40), "ten seconds after the last renewal");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_term_that_is_over_does_not_come_back() {
        let leadership = waiting();
        leadership.renewed(leadership.moment());
        assert!(leadership.is_leading());
        leadership.end();
        leadership.renewed(leadership.moment());
        assert!(!leadership.is_leading());
        assert_eq!(leadership.lost().now_or_never(), Some(()));
        assert_eq!(leadership.acquired().now_or_never(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_leader_that_neither_renews_nor_gives_up_is_unhealthy() {
        let leadership = waiting();
        let tolerated = Duration::from_secs(20);
        leadership.renewed(leadership.moment());
        tokio::time::sleep(Duration::from_secs(35)).await;
        assert_eq!(leadership.check_renewal(tolerated), Ok(()));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(leadership.check_renewal(tolerated).is_err());
        leadership.end();
        assert_eq!(leadership.check_renewal(tolerated), Ok(()), "it gave up");
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_names_the_holder_and_is_found_among_causes() {
        let leadership = waiting();
        leadership.set_holder(Some(&"other".into()));
        let refusal = leadership.check().unwrap_err();
        assert_eq!(refusal.to_string(), "not the leader by lease kube-system/test: it is held by other");
        let wrapped = kube::Error::Service(Box::new(kube::Error::Service(Box::new(refusal.clone()))));
        assert_eq!(NotLeader::cause_of(&wrapped), Some(&refusal));
        assert_eq!(NotLeader::cause_of(&kube::Error::Service("else".into())), None);
    }
}

//! The shell: sends what [`decide`](super::decide) decides, and keeps the time.

use std::time::Duration;

use steersman_base::{Clock, Istr, Meta, ObjectKey};
use steersman_model::coordination::LeaseSpec;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::decide::{Candidate, Decision, Role};
use super::lease_watch::{Observation, Watching};
use super::options::JITTER;
use super::server::{Lease, LeaseError, LeaseServer};
use super::suspended::Moment;
use super::{Leadership, LeaseMetrics, LeaseOptions, LeaseOptionsError, default_identity};

/// A participant in an election, for one term.
#[must_use = "an elector does nothing until it runs"]
pub struct Elector {
    server: LeaseServer,
    options: LeaseOptions,
    key: ObjectKey,
    identity: Istr,
    clock: Clock,
    candidate: Candidate,
    /// The lease as the server last sent it.
    lease: Option<Lease>,
    leadership: Leadership,
    /// The leader that was reported last.
    reported: Option<Istr>,
    metrics: Option<LeaseMetrics>,
    on_transition: Box<dyn Fn(&Transition) + Send + Sync>,
}

/// The end of an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub enum Ended {
    /// The stop signal was given.
    Stopped,
    /// The lease was held and is lost: the process should exit, as upstream's do.
    Lost,
}

/// An event of an election.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Transition {
    /// This process leads now.
    BecameLeader {
        /// The identity of this process.
        identity: Istr,
        /// The metadata of the lease.
        lease: Meta,
    },
    /// This process led, and no longer does.
    StoppedLeading {
        /// The identity of this process.
        identity: Istr,
        /// The metadata of the lease.
        lease: Meta,
    },
    /// A new leader was observed, possibly this process.
    NewLeader {
        /// The identity of the leader.
        identity: Istr,
    },
}

/// The outcome of one try.
enum Try {
    /// The lease is held; the successful request was sent at this time.
    Held(Moment),
    /// The lease is not held, or not known to be.
    NotHeld,
    /// A leader's lease has another holder.
    Taken,
}

// === impl Elector ===

impl Elector {
    /// Creates an elector for the lease in `options`. `client` should have a connection of its own, so that a renewal
    /// waits behind no other request. `clock` provides the times that people read in the lease; nothing is decided by
    /// it.
    ///
    /// # Errors
    /// The options are invalid.
    pub fn new(client: kube::Client, options: LeaseOptions, clock: Clock) -> Result<Self, LeaseOptionsError> {
        options.validate()?;
        let identity = match &options.identity {
            Some(identity) => Istr::new(identity),
            None => Istr::from(default_identity()?),
        };
        let key = ObjectKey::new(&options.namespace, &options.name);
        Ok(Self {
            server: LeaseServer::new(client, key.clone(), options.answer_within()),
            leadership: Leadership::waiting(&options, identity.clone()),
            candidate: Candidate::new(identity.clone(), options.lease_seconds()),
            options,
            key,
            identity,
            clock,
            lease: None,
            reported: None,
            metrics: None,
            on_transition: Box::new(|_| {}),
        })
    }

    /// Sets the metrics, under the name of the lease.
    pub fn metrics(mut self, metrics: &LeaseMetrics) -> Self {
        metrics.leads(&self.options.name, false);
        self.metrics = Some(metrics.clone());
        self
    }

    /// Sets a function that is called for each event. It runs in the elector's task and must not block: a renewal would
    /// wait.
    pub fn on_transition(mut self, observe: impl Fn(&Transition) + Send + Sync + 'static) -> Self {
        self.on_transition = Box::new(observe);
        self
    }

    /// Returns the leadership of this process: for writers, and to wait for it.
    #[must_use]
    pub fn leadership(&self) -> Leadership {
        self.leadership.clone()
    }

    /// Runs for one term: until the lease is lost, or until the stop signal. With
    /// [`release_on_exit`](LeaseOptions::release_on_exit), the lease is given back after the signal; so all work under
    /// it must have ended before the signal is given.
    pub async fn run(mut self, stop: CancellationToken) -> Ended {
        tracing::info!(lease = %self.key, identity = %self.identity, "waiting for the lease");
        let Some(renewed) = self.acquire(&stop).await else {
            self.leadership.end();
            return Ended::Stopped;
        };
        self.begin(renewed);
        let ended = self.hold(renewed, &stop).await;
        // Writes are refused first, then the lease may be released.
        self.leadership.end();
        if let Some(metrics) = &self.metrics {
            metrics.leads(&self.options.name, false);
        }
        if ended == Ended::Stopped && self.options.release_on_exit {
            self.release().await;
        }
        tracing::info!(lease = %self.key, identity = %self.identity, ?ended, "stopped leading");
        (self.on_transition)(&Transition::StoppedLeading { identity: self.identity.clone(), lease: self.meta() });
        ended
    }

    /// Tries until the lease is held; returns when the successful request was sent. `None`: stopped.
    async fn acquire(&mut self, stop: &CancellationToken) -> Option<Moment> {
        let mut watching = Watching::start(self.server.client(), &self.key);
        loop {
            let outcome = stop.run_until_cancelled(self.try_once(Role::Standby)).await?;
            self.report();
            if let Try::Held(renewed) = outcome {
                if self.leadership.since(renewed) < self.options.renew_deadline {
                    return Some(renewed);
                }
                // The answer took so long that the term is over before it began. The lease is held: renew it.
                continue;
            }
            stop.run_until_cancelled(self.wait(&mut watching)).await?;
        }
    }

    /// Waits until the next try.
    async fn wait(&mut self, watching: &mut Watching) {
        let poll = Instant::now() + jittered(self.options.retry_period);
        loop {
            // A lease that has expired already was tried for.
            let end = self.candidate.ends().map(Instant::from_std).filter(|end| *end > Instant::now());
            let wake = end.map_or(poll, |end| end.min(poll));
            tokio::select! {
                biased;
                observation = watching.next() => {
                    let Observation::Record(record, at) = observation else { return };
                    self.candidate.observe(record, at.into_std());
                    self.report();
                    if !self.candidate.is_held(Instant::now().into_std()) {
                        return;
                    }
                }
                () = sleep_until(wake) => return,
            }
        }
    }

    fn begin(&mut self, renewed: Moment) {
        self.leadership.renewed(renewed);
        if let Some(metrics) = &self.metrics {
            metrics.leads(&self.options.name, true);
        }
        tracing::info!(lease = %self.key, identity = %self.identity, "became leader");
        (self.on_transition)(&Transition::BecameLeader { identity: self.identity.clone(), lease: self.meta() });
    }

    /// Renews until that fails for too long, or until the stop signal.
    async fn hold(&mut self, mut renewed: Moment, stop: &CancellationToken) -> Ended {
        loop {
            let deadline = renewed.at + self.options.renew_deadline;
            let next = (Instant::now() + self.options.retry_period).min(deadline);
            let renewal = async {
                sleep_until(next).await;
                // A process that was stopped meanwhile, alone or with its machine, must not even try: it would hold a
                // lease that it did not lead by.
                if self.leadership.since(renewed) >= self.options.renew_deadline {
                    return None;
                }
                timeout_at(deadline, self.try_once(Role::Leader)).await.ok()
            };
            let Some(outcome) = stop.run_until_cancelled(renewal).await else { return Ended::Stopped };
            self.report();
            match outcome {
                Some(Try::Held(sent)) => renewed = sent,
                Some(Try::NotHeld) => {}
                Some(Try::Taken) => {
                    let holder = self.candidate.holder().map_or("nobody", Istr::as_str);
                    tracing::warn!(lease = %self.key, holder, "the lease has another holder");
                    return Ended::Lost;
                }
                None => {}
            }
            if self.leadership.since(renewed) >= self.options.renew_deadline {
                tracing::warn!(lease = %self.key, within = ?self.options.renew_deadline, "the lease was not renewed in time");
                return Ended::Lost;
            }
            self.leadership.renewed(renewed);
        }
    }

    /// Runs client-go's ladder once: replace the last observed record (fast), or read and decide (slow).
    async fn try_once(&mut self, role: Role) -> Try {
        let asked = self.leadership.moment();
        if let (Some(record), Some(lease)) =
            (self.candidate.renewal(asked.at.into_std(), self.clock.now_micros()), self.lease.as_ref())
        {
            match self.server.update(lease, &record).await {
                Ok(lease) => return self.wrote(lease, asked),
                Err(error) => {
                    tracing::debug!(lease = %self.key, %error, "cannot renew the lease as last observed; reading it");
                }
            }
        }
        let asked = Instant::now();
        let found = match self.server.get().await {
            Ok(found) => found,
            Err(error) => return self.failed("read", &error),
        };
        let record = found.as_ref().map(|lease| lease.view.spec.clone());
        self.lease = found;
        let times = (asked.into_std(), Instant::now().into_std());
        let decision = self.candidate.look(record, role, times, self.clock.now_micros());
        let sent = self.leadership.moment();
        let (outcome, what) = match decision {
            Decision::Wait => {
                self.leadership.set_refusal(None);
                return Try::NotHeld;
            }
            Decision::Lost => return Try::Taken,
            Decision::Create(record) => (self.server.create(&record).await, "create"),
            Decision::TakeOver(record) => (self.replace(&record).await, "take over"),
            Decision::Renew(record) => {
                if let Some(metrics) = &self.metrics {
                    metrics.slow_path(&self.options.name);
                }
                (self.replace(&record).await, "renew")
            }
        };
        match outcome {
            Ok(lease) => self.wrote(lease, sent),
            Err(error) => self.failed(what, &error),
        }
    }

    async fn replace(&self, record: &LeaseSpec) -> Result<Lease, LeaseError> {
        match &self.lease {
            Some(lease) => self.server.update(lease, record).await,
            None => Err(LeaseError::Conflict),
        }
    }

    fn wrote(&mut self, lease: Lease, sent: Moment) -> Try {
        self.candidate.observe(lease.view.spec.clone(), Instant::now().into_std());
        self.lease = Some(lease);
        self.leadership.set_refusal(None);
        Try::Held(sent)
    }

    fn failed(&self, what: &'static str, error: &LeaseError) -> Try {
        match error {
            // Another process was faster, which is normal.
            LeaseError::Conflict => {
                tracing::debug!(lease = %self.key, what, "the lease was changed by another process");
            }
            error => tracing::warn!(lease = %self.key, what, %error, "cannot use the lease"),
        }
        if error.is_lasting() {
            self.leadership.set_refusal(Some(format!("cannot {what} the lease {}: {error}", self.key)));
        }
        Try::NotHeld
    }

    /// Reports a new leader.
    fn report(&mut self) {
        let holder = self.candidate.holder().cloned();
        self.leadership.set_holder(holder.as_ref());
        if holder == self.reported {
            return;
        }
        self.reported.clone_from(&holder);
        if let Some(identity) = holder {
            tracing::info!(lease = %self.key, leader = %identity, "new leader");
            (self.on_transition)(&Transition::NewLeader { identity });
        }
    }

    /// Empties the lease, if this process holds it: a renewal that was in flight at the stop signal may have been
    /// executed, so the lease is read first.
    async fn release(&mut self) {
        let within = self.options.renew_deadline;
        let released = timeout(within, async {
            loop {
                let Some(lease) = self.server.get().await? else { return Ok(None) };
                let Some(record) = self.candidate.release(&lease.view.spec, self.clock.now_micros()) else {
                    return Ok(None);
                };
                match self.server.update(&lease, &record).await {
                    // Every conflict is another process's progress, and the time is bounded.
                    Err(LeaseError::Conflict) => {}
                    outcome => return outcome.map(Some),
                }
            }
        });
        match released.await {
            Ok(Ok(Some(lease))) => {
                tracing::info!(lease = %self.key, "gave the lease back");
                self.wrote(lease, self.leadership.moment());
                self.report();
            }
            Ok(Ok(None)) => tracing::info!(lease = %self.key, "the lease has another holder and is not given back"),
            Ok(Err(error)) => {
                tracing::warn!(lease = %self.key, %error, "cannot give the lease back; others wait until it expires");
            }
            Err(_) => {
                tracing::warn!(lease = %self.key, ?within, "the lease was not given back in time; others wait until it expires");
            }
        }
    }

    fn meta(&self) -> Meta {
        self.lease.as_ref().map(|lease| lease.view.metadata.clone()).unwrap_or_default()
    }
}

/// One period and up to [`JITTER`] more, so that candidates do not ask in step: `wait.Jitter`.
fn jittered(period: Duration) -> Duration {
    period + period.mul_f64(fastrand::f64() * JITTER)
}

impl Drop for Elector {
    fn drop(&mut self) {
        // The lease is no longer renewed.
        self.leadership.end();
    }
}

impl std::fmt::Debug for Elector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Elector").field("lease", &self.key).field("identity", &self.identity).finish_non_exhaustive()
    }
}

// === impl Transition ===

impl Transition {
    /// The reason of the events about the lease.
    pub(crate) const EVENT_REASON: &'static str = "LeaderElection";

    /// The event that upstream records about the lease: `<identity> became leader`; the arrival of another leader is none.
    #[doc(hidden)]
    #[must_use]
    pub fn event(&self) -> Option<(&Meta, String)> {
        match self {
            Self::BecameLeader { identity, lease } => Some((lease, format!("{identity} became leader"))),
            Self::StoppedLeading { identity, lease } => Some((lease, format!("{identity} stopped leading"))),
            Self::NewLeader { .. } => None,
        }
    }
}

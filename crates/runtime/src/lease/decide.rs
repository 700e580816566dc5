//! The decision about the lease, from what was observed and when.
//!
//! Pure: it gets the time, twice. Monotonic time decides; wall time is only written into the record.
//!
//! The ladder is client-go's (`tryAcquireOrRenew` in `tools/leaderelection/leaderelection.go`, v0.37.1), except for a
//! leader whose lease has another holder: see [`Decision::Lost`].

use std::time::{Duration, Instant};

use steersman_base::{Istr, MicroTime};
use steersman_model::coordination::LeaseSpec;

/// A candidate, and its last observation of the lease.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    identity: Istr,
    lease_seconds: i32,
    observed: Option<Observed>,
}

/// A record, and the time since when it is unchanged, as far as this process knows.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Observed {
    record: LeaseSpec,
    at: Instant,
}

/// Whether the candidate leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Standby,
    Leader,
}

/// The next request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// There is no lease: create one with this record.
    Create(LeaseSpec),
    /// The lease has no holder, or has expired: replace its record.
    TakeOver(LeaseSpec),
    /// This process holds the lease: replace its record.
    Renew(LeaseSpec),
    /// Another process holds the lease.
    Wait,
    /// A leader's lease has another holder. client-go would keep trying until its deadline, and might lead again
    /// without reporting that another process led in between.
    Lost,
}

/// A holder that steps down leaves this duration, as client-go's does: the server requires one.
const RELEASED_SECONDS: i32 = 1;

// === impl Candidate ===

impl Candidate {
    pub(super) fn new(identity: Istr, lease_seconds: i32) -> Self {
        Self { identity, lease_seconds, observed: None }
    }

    /// Returns the holder that was last observed.
    pub(super) fn holder(&self) -> Option<&Istr> {
        self.observed.as_ref().and_then(|observed| holder(&observed.record))
    }

    /// The fast path: a holder renews the record that it observed last without reading it again, if that is still
    /// valid. The server refuses if the lease has changed.
    pub(super) fn renewal(&self, now: Instant, wall: MicroTime) -> Option<LeaseSpec> {
        let observed = self.observed.as_ref()?;
        (self.is_ours(&observed.record) && observed.counts(now)).then(|| self.renewed(&observed.record, wall))
    }

    /// The slow path: the lease as found (`None`: there is none) by a request that was sent at `asked` and answered at
    /// `seen`.
    pub(super) fn look(
        &mut self,
        found: Option<LeaseSpec>,
        role: Role,
        (asked, seen): (Instant, Instant),
        wall: MicroTime,
    ) -> Decision {
        let Some(found) = found else { return Decision::Create(self.taken(0, LeaseSpec::default(), wall)) };
        self.observe(found.clone(), seen);
        if self.is_ours(&found) {
            return Decision::Renew(self.renewed(&found, wall));
        }
        if role == Role::Leader {
            return Decision::Lost;
        }
        let counts = self.observed.as_ref().is_some_and(|observed| observed.counts(asked));
        if holder(&found).is_some() && counts {
            return Decision::Wait;
        }
        let transitions = found.lease_transitions.unwrap_or(0).saturating_add(1);
        Decision::TakeOver(self.taken(transitions, found, wall))
    }

    /// Records the lease. Its time starts anew if it has changed, and only then.
    pub(super) fn observe(&mut self, record: LeaseSpec, at: Instant) {
        if self.observed.as_ref().is_none_or(|observed| observed.record != record) {
            self.observed = Some(Observed { record, at });
        }
    }

    /// Whether the lease, as last observed, has a holder and has not expired.
    pub(super) fn is_held(&self, now: Instant) -> bool {
        self.holder().is_some() && self.observed.as_ref().is_some_and(|observed| observed.counts(now))
    }

    /// Returns when the lease of the current holder expires, if its record stays unchanged.
    pub(super) fn ends(&self) -> Option<Instant> {
        self.holder()?;
        self.observed.as_ref()?.ends()
    }

    /// Returns the record that a holder leaves when it steps down; `None` if it does not hold the lease.
    pub(super) fn release(&self, found: &LeaseSpec, wall: MicroTime) -> Option<LeaseSpec> {
        self.is_ours(found).then(|| LeaseSpec {
            holder_identity: Some(Istr::new("")),
            lease_duration_seconds: Some(RELEASED_SECONDS),
            acquire_time: Some(wall),
            renew_time: Some(wall),
            ..found.clone()
        })
    }

    fn is_ours(&self, record: &LeaseSpec) -> bool {
        holder(record) == Some(&self.identity)
    }

    fn renewed(&self, record: &LeaseSpec, wall: MicroTime) -> LeaseSpec {
        LeaseSpec {
            lease_duration_seconds: Some(self.lease_seconds),
            renew_time: Some(wall),
            // A lease that was created by hand may lack these, and the server does not allow them to be removed.
            acquire_time: Some(record.acquire_time.unwrap_or(wall)),
            lease_transitions: Some(record.lease_transitions.unwrap_or(0)),
            ..record.clone()
        }
    }

    fn taken(&self, transitions: i32, record: LeaseSpec, wall: MicroTime) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: Some(self.lease_seconds),
            acquire_time: Some(wall),
            renew_time: Some(wall),
            lease_transitions: Some(transitions),
            ..record
        }
    }
}

// === impl Observed ===

impl Observed {
    /// By the duration in the record, as its holder set it; a record without one does not count.
    fn ends(&self) -> Option<Instant> {
        let seconds = self.record.lease_duration_seconds.unwrap_or(0);
        self.at.checked_add(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
    }

    fn counts(&self, now: Instant) -> bool {
        // An end beyond the clock's range is never reached.
        self.ends().is_none_or(|end| now < end)
    }
}

/// Returns the holder; an empty name means none.
fn holder(record: &LeaseSpec) -> Option<&Istr> {
    record.holder_identity.as_ref().filter(|holder| !holder.is_empty())
}

#[cfg(test)]
mod tests;

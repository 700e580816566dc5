//! What to do about the lease, given what was seen of it and when.
//!
//! Pure: it is told the time, twice. Monotonic time decides; wall time is only written down.
//!
//! The ladder is client-go's (`tryAcquireOrRenew` in `tools/leaderelection/leaderelection.go`, v0.37.1), but for a leader
//! that finds its lease in other hands: see [`Decision::Lost`].

use std::time::{Duration, Instant};

use steersman_base::{Istr, MicroTime};
use steersman_model::coordination::LeaseSpec;

/// One who would lead, and what it saw of the lease.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    identity: Istr,
    lease_seconds: i32,
    observed: Option<Observed>,
}

/// A record, and since when it has been what it is, as far as this process can tell.
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

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// There is no lease: create one with this record.
    Create(LeaseSpec),
    /// Nobody holds it, or no longer: write this record over it.
    TakeOver(LeaseSpec),
    /// It is ours: write this record over it.
    Renew(LeaseSpec),
    /// Somebody holds it.
    Wait,
    /// A leader's lease is no longer in its name. client-go would go on trying until its deadline, and might lead again
    /// without telling anybody that somebody else did in between.
    Lost,
}

/// A holder that steps down leaves this duration, as client-go's does: the server wants one.
const RELEASED_SECONDS: i32 = 1;

// === impl Candidate ===

impl Candidate {
    pub(super) fn new(identity: Istr, lease_seconds: i32) -> Self {
        Self { identity, lease_seconds, observed: None }
    }

    /// Whose name was last seen in the lease.
    pub(super) fn holder(&self) -> Option<&Istr> {
        self.observed.as_ref().and_then(|observed| holder(&observed.record))
    }

    /// The fast path: a holder renews what it saw last without looking again, if that still counts. The server refuses if
    /// something else is there by now.
    pub(super) fn renewal(&self, now: Instant, wall: MicroTime) -> Option<LeaseSpec> {
        let observed = self.observed.as_ref()?;
        (self.is_ours(&observed.record) && observed.counts(now)).then(|| self.renewed(&observed.record, wall))
    }

    /// The slow path: what the lease is found to be (`None`: there is none) when it was asked for at `asked` and the answer
    /// came at `seen`.
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

    /// Notes what the lease is. Time starts anew if that is news, and only then.
    pub(super) fn observe(&mut self, record: LeaseSpec, at: Instant) {
        if self.observed.as_ref().is_none_or(|observed| observed.record != record) {
            self.observed = Some(Observed { record, at });
        }
    }

    /// Whether the lease, as it was seen last, is somebody's who has not let it end.
    pub(super) fn is_held(&self, now: Instant) -> bool {
        self.holder().is_some() && self.observed.as_ref().is_some_and(|observed| observed.counts(now))
    }

    /// When the lease ends that somebody holds, if its record stays what it is.
    pub(super) fn ends(&self) -> Option<Instant> {
        self.holder()?;
        self.observed.as_ref()?.ends()
    }

    /// What a holder leaves behind that steps down; nothing if the lease is not in its name.
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
            // Somebody who made the lease by hand may have left these out, and the server wants none of them to vanish.
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
    /// By the duration in the record, as its holder meant it; a record without one counts for nothing.
    fn ends(&self) -> Option<Instant> {
        let seconds = self.record.lease_duration_seconds.unwrap_or(0);
        self.at.checked_add(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
    }

    fn counts(&self, now: Instant) -> bool {
        // An end that no clock can show is never reached.
        self.ends().is_none_or(|end| now < end)
    }
}

/// Who holds it; an empty name is nobody's.
fn holder(record: &LeaseSpec) -> Option<&Istr> {
    record.holder_identity.as_ref().filter(|holder| !holder.is_empty())
}

#[cfg(test)]
mod tests;

//! What invariants remember from write to write, beside the world.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use steersman_base::{Istr, Uid};

use super::{CRON_JOB, Options, REPLICA_SET, REPLICATION};
use crate::record::{Actor, Change};
use crate::world::{Body, Object, Step, World};

mod emptied;
mod scaling;

use emptied::Emptied;
use scaling::Scaling;

/// What is remembered.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Every pod that ever was.
    pub(super) pods: BTreeSet<Uid>,
    /// Under which identity each manager took the lease.
    pub(super) identities: BTreeMap<usize, Istr>,
    /// By how many the pods that were created for the owner of the last write's pod exceed what was needed.
    pub(super) overrun: u64,
    /// Whether the Job that was created with the last write was started for a time for which one had been started before.
    pub(super) is_started_again: bool,
    /// By Job: the pods that have ended, or were deleted.
    ended: BTreeMap<Uid, BTreeSet<Uid>>,
    /// The CronJobs and times for which Jobs were started.
    started: BTreeSet<(Uid, Istr)>,
    ledgers: BTreeMap<Uid, Ledger>,
    /// Nodes whose pods were told to leave.
    pub(super) emptied: Emptied,
    /// What autoscalers have changed.
    pub(super) scaling: Scaling,
    /// By volume: the claim whose data is on it.
    pub(super) holders: BTreeMap<Uid, Uid>,
    /// By claim: the volume that it was bound to.
    pub(super) bound_to: BTreeMap<Uid, Uid>,
}

/// What one owner of pods needed, and what was created for it, over the whole run.
#[derive(Clone, Copy, Debug, Default)]
struct Ledger {
    want: i64,
    have: i64,
    /// How often a pod went missing: each is one that may be created.
    needed: u64,
    created: u64,
}

// === impl Memory ===

impl Memory {
    /// Takes in a write, before it is judged.
    pub(super) fn note(&mut self, world: &World, change: &Change, step: &Step, options: &Options) {
        self.overrun = 0;
        self.is_started_again = false;
        self.emptied.since_last = None;
        let object = step.after.as_ref().or(step.before.as_ref());
        match object.map(|object| &object.body) {
            Some(Body::Pod(_)) => self.note_pod(change, step),
            Some(Body::Set(_)) => self.note_set(world, step),
            Some(Body::Job(job)) if step.before.is_none() && change.by.controller() == Some(CRON_JOB) => {
                let owner = step.after.as_ref().and_then(|after| after.controller());
                let again = owner.map(|owner| !self.started.insert((owner.uid.clone(), job.scheduled.clone())));
                self.is_started_again = again.unwrap_or(false);
            }
            Some(Body::Node(_)) => self.emptied.note(change, step),
            Some(Body::Deployment(_) | Body::StatefulSet(_)) => self.scaling.note(change, step),
            Some(Body::Claim(_)) => self.note_claim(world, step),
            Some(Body::Volume(_)) => self.note_volume(change, step),
            Some(Body::Lease { holder }) if options.lease.as_ref() == Some(&change.key) => {
                if let Some(manager) = change.by.manager().filter(|_| !holder.is_empty()) {
                    self.identities.insert(manager, holder.clone());
                }
            }
            _ => {}
        }
    }

    /// The data of a claim is on the volume that it is bound to.
    fn note_claim(&mut self, world: &World, step: &Step) {
        let Some(object) = &step.after else {
            if let Some(before) = &step.before {
                self.bound_to.remove(&before.uid);
            }
            return;
        };
        let Some(claim) = object.claim().filter(|claim| claim.is_bound()) else { return };
        let volume = world.get(super::storage::VOLUMES, &steersman_base::ObjectKey::cluster(&claim.volume));
        let is_its = |volume: &&Arc<Object>| volume.volume().is_some_and(|it| it.claim_uid() == Some(&object.uid));
        if let Some(volume) = volume.filter(is_its) {
            self.holders.insert(volume.uid.clone(), object.uid.clone());
            self.bound_to.insert(object.uid.clone(), volume.uid.clone());
        }
    }

    /// A user who takes away the reference of a volume says that its data is of no use any more; one that is recycled has none.
    fn note_volume(&mut self, change: &Change, step: &Step) {
        let Some(after) = &step.after else {
            if let Some(before) = &step.before {
                self.holders.remove(&before.uid);
            }
            return;
        };
        let is_by_user = matches!(change.by, Actor::User);
        let refers = |object: &Object| object.volume().and_then(|volume| volume.claim_uid().cloned());
        let is_taken = step.before.as_ref().is_some_and(|before| refers(before) != refers(after));
        if is_by_user && is_taken {
            self.holders.remove(&after.uid);
        }
    }

    /// How many pods of a Job have ended, or were deleted.
    pub(super) fn ended_of(&self, job: &Uid) -> usize {
        self.ended.get(job).map_or(0, BTreeSet::len)
    }

    fn note_ended(&mut self, step: &Step) {
        let Some(pod) = step.after.as_ref().or(step.before.as_ref()) else { return };
        let has_ended = step.after.is_none() || !pod.is_active_pod();
        if let Some(owner) = pod.controller().filter(|owner| has_ended && owner.kind == "Job") {
            self.ended.entry(owner.uid.clone()).or_default().insert(pod.uid.clone());
        }
    }

    fn note_pod(&mut self, change: &Change, step: &Step) {
        self.note_ended(step);
        if let Some(after) = &step.after {
            self.pods.insert(after.uid.clone());
        }
        let before = active_owner(step.before.as_ref());
        let after = active_owner(step.after.as_ref());
        let is_create = step.before.is_none() && matches!(change.by.controller(), Some(REPLICA_SET | REPLICATION));
        if before == after {
            return;
        }
        if let Some(ledger) = before.and_then(|owner| self.ledgers.get_mut(owner)) {
            ledger.have -= 1;
            ledger.needed += u64::from(ledger.have < ledger.want);
        }
        if let Some(owner) = after {
            let ledger = self.ledgers.entry(owner.clone()).or_default();
            ledger.have += 1;
            if is_create {
                ledger.created += 1;
                self.overrun = ledger.created.saturating_sub(ledger.needed);
                // A surplus one is reported once.
                ledger.needed += self.overrun;
            }
        }
    }

    fn note_set(&mut self, world: &World, step: &Step) {
        let Some(set) = step.after.as_ref().or(step.before.as_ref()) else { return };
        if step.after.is_none() {
            self.ledgers.remove(&set.uid);
            return;
        }
        let wanted = set.set().filter(|_| !set.is_terminating()).map_or(0, |set| i64::from(set.replicas));
        let count = || world.controlled("pods", &set.uid).filter(|pod| pod.is_active_pod()).count();
        let ledger = self
            .ledgers
            .entry(set.uid.clone())
            .or_insert_with(|| Ledger { have: i64::try_from(count()).unwrap_or(i64::MAX), ..Ledger::default() });
        let missing = |want: i64| (want - ledger.have).max(0);
        ledger.needed += u64::try_from(missing(wanted) - missing(ledger.want)).unwrap_or(0);
        ledger.want = wanted;
    }
}

/// The uid of the controller of an active pod.
fn active_owner(pod: Option<&Arc<Object>>) -> Option<&Uid> {
    let pod = pod.filter(|pod| pod.is_active_pod())?;
    pod.controller().map(|owner| &owner.uid)
}

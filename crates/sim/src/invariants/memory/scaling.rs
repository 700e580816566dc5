//! What autoscalers have changed, for the policies that limit how fast they do.

use std::collections::{BTreeMap, VecDeque};

use steersman_base::{Istr, ObjectKey, Time};

use crate::invariants::AUTOSCALER;
use crate::invariants::scaling::replicas;
use crate::record::{Actor, Change};
use crate::world::{Object, Step};

/// The newest changes of each object that is scaled, by its name: an autoscaler keeps what it did to an object that was deleted
/// when another one takes its name, as upstream's does.
#[derive(Debug, Default)]
pub(in crate::invariants) struct Scaling(BTreeMap<(Istr, ObjectKey), VecDeque<Scaled>>);

/// A change of an object's replicas.
#[derive(Debug)]
struct Scaled {
    at: Time,
    actor: Actor,
    /// How many replicas more there are.
    by: i32,
}

/// How many changes of an object are remembered: more than there are in the longest period.
const CHANGES_MAX: usize = 64;
/// Times are in whole seconds, and a change counts from when it was decided.
const ROUNDED_SECONDS: i64 = 3;

// === impl Scaling ===

impl Scaling {
    pub(super) fn note(&mut self, change: &Change, step: &Step) {
        let Some(after) = &step.after else { return };
        if change.by.controller() != Some(AUTOSCALER) {
            return;
        }
        let before = step.before.as_ref().and_then(|before| replicas(before));
        let Some(by) = before.zip(replicas(after)).map(|(was, is)| is - was).filter(|by| *by != 0) else { return };
        let changes = self.0.entry((after.resource.clone(), after.key.clone())).or_default();
        changes.push_back(Scaled { at: change.at, actor: change.by.clone(), by });
        if changes.len() > CHANGES_MAX {
            changes.pop_front();
        }
    }

    /// How many pods more there are by the author's changes of the last seconds, without this one.
    pub(in crate::invariants) fn net(&self, object: &Object, change: &Change, seconds: i64) -> i32 {
        let since = change.at.plus_seconds(ROUNDED_SECONDS - seconds);
        let changes = self.0.get(&(object.resource.clone(), object.key.clone())).into_iter().flatten().rev().skip(1);
        changes.filter(|scaled| scaled.at > since && scaled.actor == change.by).map(|scaled| scaled.by).sum()
    }
}

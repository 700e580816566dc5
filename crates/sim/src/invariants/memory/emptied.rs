//! When the pods of nodes were told to leave.

use std::collections::BTreeMap;

use steersman_base::{Istr, Time};

use crate::invariants::NODE_LIFECYCLE;
use crate::invariants::nodes::is_emptied;
use crate::record::Change;
use crate::world::{Step, zone_of};

/// When each manager last told the pods of a node to leave, by zone.
#[derive(Debug, Default)]
pub(in crate::invariants) struct Emptied {
    last: BTreeMap<(usize, (Istr, Istr)), Time>,
    /// How many seconds after the one before the last write did so; none if it did not, or there was none before.
    pub(in crate::invariants) since_last: Option<i64>,
}

// === impl Emptied ===

impl Emptied {
    pub(super) fn note(&mut self, change: &Change, step: &Step) {
        let Some(manager) = change.by.manager().filter(|_| change.by.controller() == Some(NODE_LIFECYCLE)) else {
            return;
        };
        let Some((before, after)) = step.before.as_ref().zip(step.after.as_ref()) else { return };
        if is_emptied(before) || !is_emptied(after) {
            return;
        }
        let sent = change.shown.as_ref().and_then(|shown| shown.sent).unwrap_or(change.at);
        let last = self.last.insert((manager, zone_of(&after.labels)), sent);
        self.since_last = last.map(|last| sent.unix() - last.unix());
    }
}

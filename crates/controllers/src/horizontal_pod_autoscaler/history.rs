//! Pure: what is remembered of an autoscaler: its recommendations, and the changes it made.
//!
//! What is older than every window is dropped, and what falls into the same second is one entry: an autoscaler has at most
//! one recommendation and two changes per second of its longest window.

use std::time::Duration;

use steersman_base::MicroTime;

/// The recommendations and changes of one autoscaler, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    recommendations: Vec<Recommendation>,
    added: Vec<Change>,
    removed: Vec<Change>,
    /// The last change, if it is not known whether it was made.
    attempted: Option<Attempt>,
}

/// A change with an unknown outcome.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    at: MicroTime,
    from: i32,
    to: i32,
    kept_for: Duration,
}

/// The recommendations of one second.
#[derive(Clone, Copy, Debug)]
struct Recommendation {
    at: MicroTime,
    lowest: i32,
    highest: i32,
}

/// The number of replicas added or removed in one second.
#[derive(Clone, Copy, Debug)]
struct Change {
    at: MicroTime,
    replicas: i32,
}

/// Whether an entry that is exactly as old as the window is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edge {
    Inside,
    Outside,
}

// === impl History ===

impl History {
    /// Begins a pass that has found this number of replicas: that of the first pass counts as recommended. An attempted change
    /// counts as made once the number is another one.
    pub(super) fn begin(&mut self, replicas: i32, now: MicroTime) {
        if let Some(Attempt { at, from, to, kept_for }) = self.attempted.filter(|attempt| attempt.from != replicas) {
            self.scaled(from, to, kept_for, at);
        }
        if self.recommendations.is_empty() {
            self.recommendations.push(Recommendation { at: now, lowest: replicas, highest: replicas });
        }
    }

    /// Records a recommendation, and drops those that are older than `kept_for`.
    pub(super) fn recommend(&mut self, replicas: i32, kept_for: Duration, now: MicroTime) {
        self.recommendations.retain(|held| is_within(held.at, kept_for, Edge::Inside, now));
        match self.recommendations.last_mut().filter(|last| last.at.to_seconds() == now.to_seconds()) {
            Some(last) => {
                last.at = now;
                last.lowest = last.lowest.min(replicas);
                last.highest = last.highest.max(replicas);
            }
            None => self.recommendations.push(Recommendation { at: now, lowest: replicas, highest: replicas }),
        }
    }

    /// Returns the highest recommendation within a window.
    pub(super) fn highest(&self, window: Duration, edge: Edge, now: MicroTime) -> Option<i32> {
        let within = self.recommendations.iter().filter(|held| is_within(held.at, window, edge, now));
        within.map(|held| held.highest).max()
    }

    /// Returns the lowest recommendation within a window.
    pub(super) fn lowest(&self, window: Duration, edge: Edge, now: MicroTime) -> Option<i32> {
        let within = self.recommendations.iter().filter(|held| is_within(held.at, window, edge, now));
        within.map(|held| held.lowest).min()
    }

    /// Records a change that may have been made or not: its response was lost.
    pub(super) fn attempted(&mut self, from: i32, to: i32, kept_for: Duration, now: MicroTime) {
        self.attempted = Some(Attempt { at: now, from, to, kept_for });
    }

    /// Records a change, and drops those that are older than `kept_for`.
    pub(super) fn scaled(&mut self, from: i32, to: i32, kept_for: Duration, now: MicroTime) {
        self.attempted = None;
        for changes in [&mut self.added, &mut self.removed] {
            changes.retain(|held| is_within(held.at, kept_for, Edge::Inside, now));
        }
        let changes = if to > from { &mut self.added } else { &mut self.removed };
        let replicas = to.saturating_sub(from).saturating_abs();
        match changes.last_mut().filter(|last| last.at.to_seconds() == now.to_seconds()) {
            Some(last) => {
                last.at = now;
                last.replicas = last.replicas.saturating_add(replicas);
            }
            None => changes.push(Change { at: now, replicas }),
        }
    }

    /// Returns the number of replicas before the changes of a period.
    pub(super) fn before(&self, current: i32, period: Duration, now: MicroTime) -> i64 {
        let sum = |changes: &[Change]| -> i64 {
            let within = changes.iter().filter(|held| is_within(held.at, period, Edge::Outside, now));
            within.map(|held| i64::from(held.replicas)).sum()
        };
        i64::from(current) - sum(&self.added) + sum(&self.removed)
    }

    /// Returns the number of entries.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.recommendations.len() + self.added.len() + self.removed.len()
    }
}

fn is_within(at: MicroTime, window: Duration, edge: Edge, now: MicroTime) -> bool {
    match edge {
        Edge::Inside => at + window >= now,
        Edge::Outside => at + window > now,
    }
}

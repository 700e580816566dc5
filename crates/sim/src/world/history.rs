//! What an object was, version by version: bounded, and without the raw values.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use steersman_base::Time;

use super::Object;
use crate::record::Actor;

/// For how long versions are kept, by the world's clock: as long as the latest watch of any world is late, and a pass.
pub(super) const SECONDS_MAX: i64 = 3600;
/// How many versions of one object are kept. Heartbeats make the most.
const VERSIONS_MAX: usize = 4096;

/// One version of an object, or its end.
#[derive(Clone, Debug)]
pub struct Version {
    /// The store's revision.
    pub revision: u64,
    /// When it was written.
    pub at: Time,
    /// The author.
    pub by: Actor,
    /// The object; none if it was deleted.
    pub object: Option<Arc<Object>>,
}

/// The versions of one object, oldest first.
#[derive(Clone, Debug, Default)]
pub struct History {
    versions: VecDeque<Version>,
    /// Whether older versions were dropped: then the first one stands for all before it.
    is_cut: bool,
}

// === impl History ===

impl History {
    pub(super) fn push(&mut self, version: Version) {
        let oldest = version.at.plus_seconds(-SECONDS_MAX);
        self.versions.push_back(version);
        while self.versions.len() > 1 && (self.versions.len() > VERSIONS_MAX || self.versions[1].at < oldest) {
            self.versions.pop_front();
            self.is_cut = true;
        }
    }

    /// The object was there before the first version that is known.
    pub(super) fn begin(&mut self, version: Version) {
        self.versions.push_back(version);
        self.is_cut = true;
    }

    /// Returns the current object; none if it is deleted.
    #[must_use]
    pub fn now(&self) -> Option<&Arc<Object>> {
        self.versions.back()?.object.as_ref()
    }

    /// The newest version.
    #[must_use]
    pub fn last(&self) -> Option<&Version> {
        self.versions.back()
    }

    /// Returns the object at a revision, for an observer from whom these revisions were hidden.
    #[must_use]
    pub fn at(&self, revision: u64, hidden: Option<&BTreeSet<u64>>) -> Option<&Arc<Object>> {
        match self.place(revision, hidden) {
            Some(place) => self.versions[place].object.as_ref(),
            None if self.is_cut => self.versions.front()?.object.as_ref(),
            None => None,
        }
    }

    /// The versions from the one that was valid at a revision to the newest. The object may not have been there before the
    /// first; then `absent` is true.
    #[must_use]
    pub fn since(&self, revision: u64, hidden: Option<&BTreeSet<u64>>) -> Since<'_> {
        let place = self.place(revision, hidden);
        let absent = place.is_none() && !self.is_cut;
        Since { versions: self.versions.range(place.unwrap_or(0)..).collect(), absent }
    }

    /// The revisions of versions after this one.
    pub fn revisions_after(&self, revision: u64) -> impl Iterator<Item = u64> {
        let first = self.versions.partition_point(|version| version.revision <= revision);
        self.versions.range(first..).map(|version| version.revision)
    }

    /// The place of the version that was valid at a revision.
    fn place(&self, revision: u64, hidden: Option<&BTreeSet<u64>>) -> Option<usize> {
        let mut place = self.versions.partition_point(|version| version.revision <= revision);
        while place > 0 {
            place -= 1;
            if hidden.is_none_or(|hidden| !hidden.contains(&self.versions[place].revision)) {
                return Some(place);
            }
        }
        None
    }
}

/// The versions that a decision may be based on.
#[derive(Debug)]
pub struct Since<'a> {
    versions: Vec<&'a Version>,
    absent: bool,
}

// === impl Since ===

impl<'a> Since<'a> {
    /// Removes the versions before the last write that `actor` made at one of these revisions: an author knows its own writes.
    #[must_use]
    pub fn known_to(mut self, actor: &Actor, until: u64) -> Self {
        let is_known = |version: &&Version| version.by == *actor && version.revision <= until;
        if let Some(place) = self.versions.iter().rposition(is_known) {
            self.versions.drain(..place);
            self.absent = false;
        }
        self
    }

    /// Removes the versions that were written after this revision.
    #[must_use]
    pub fn until(mut self, revision: u64) -> Self {
        self.versions.retain(|version| version.revision <= revision);
        self
    }

    /// Removes the newest version: what there was before the last write.
    #[must_use]
    pub fn but_last(mut self) -> Self {
        self.versions.pop();
        self
    }

    /// Returns the objects; none stands for a time at which it did not exist.
    pub fn objects(&self) -> impl Iterator<Item = Option<&'a Arc<Object>>> {
        let absent = self.absent.then_some(None);
        absent.into_iter().chain(self.versions.iter().map(|version| version.object.as_ref()))
    }

    /// Whether it was there at some time, and `holds` of it.
    #[must_use]
    pub fn ever(&self, holds: impl Fn(&Object) -> bool) -> bool {
        self.objects().flatten().any(|object| holds(object))
    }

    /// Whether it was there all the time, and `holds` of it.
    #[must_use]
    pub fn always(&self, holds: impl Fn(&Object) -> bool) -> bool {
        self.objects().all(|object| object.is_some_and(|object| holds(object)))
    }
}

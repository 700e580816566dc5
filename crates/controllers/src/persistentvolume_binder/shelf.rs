//! Pure: the free volumes, by class and access modes, sorted by size; and the claims that wait for one.
//!
//! 1. Finding a volume for a claim, and a claim for a volume, takes a search in a sorted map, not a walk over all of them.
//! 2. Of the volumes that suit, the one with the fewest access modes is taken, of those the smallest, of those the first by
//!    name.
//! 3. A volume that was given away is not offered again before a cache shows a state that is newer than that write.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use steersman_base::{Istr, ObjectKey, Quantity, ResourceVersion};
use steersman_model::View;
use steersman_model::core::{PersistentVolumeClaimView, PersistentVolumeView};

use super::class;
use super::matching::{self, Wanted};

/// Free volumes and waiting claims.
#[derive(Default)]
pub(super) struct Shelf {
    places: BTreeMap<Place, BTreeMap<(Quantity, Istr), Arc<PersistentVolumeView>>>,
    /// The place of each volume on the shelf.
    held: HashMap<Istr, (Place, Quantity)>,
    /// Volumes that were given away: the version of that write.
    given: HashMap<Istr, ResourceVersion>,
    /// Claims that found no volume, by class and size.
    waiting: BTreeMap<Istr, BTreeMap<Quantity, BTreeSet<ObjectKey>>>,
    /// The place of each waiting claim.
    waits_at: HashMap<ObjectKey, (Istr, Quantity)>,
}

/// The properties that must be equal to those that a claim asks for, and the access modes, sorted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    class: Istr,
    mode: Istr,
    attributes: Istr,
    /// First, so that places with fewer modes come first.
    count: usize,
    access: Box<[Istr]>,
}

// === impl Shelf ===

impl Shelf {
    /// Notes the state of a volume in the cache. Returns whether it is free, and was not on the shelf before.
    pub(super) fn note(&mut self, volume: &Arc<PersistentVolumeView>) -> bool {
        let meta = volume.meta();
        let name = &meta.name;
        if let Some(given) = self.given.get(name) {
            if !meta.resource_version.has_reached(given) {
                return false;
            }
            self.given.remove(name);
        }
        let was_there = self.remove(name);
        if !matching::is_free(volume) {
            return false;
        }
        let place = Place::of(volume);
        let size = matching::size_of_volume(volume);
        self.held.insert(name.clone(), (place.clone(), size));
        self.places.entry(place).or_default().insert((size, name.clone()), Arc::clone(volume));
        !was_there
    }

    /// Removes a volume that is gone.
    pub(super) fn forget(&mut self, name: &Istr) {
        self.given.remove(name);
        self.remove(name);
    }

    /// Removes a volume that was given to a claim with the write of this version.
    pub(super) fn give(&mut self, name: &Istr, version: ResourceVersion) {
        self.remove(name);
        self.given.insert(name.clone(), version);
    }

    fn remove(&mut self, name: &Istr) -> bool {
        let Some((place, size)) = self.held.remove(name) else { return false };
        if let Some(volumes) = self.places.get_mut(&place) {
            volumes.remove(&(size, name.clone()));
            if volumes.is_empty() {
                self.places.remove(&place);
            }
        }
        true
    }

    /// Returns the volume that suits best; `may_have` can refuse volumes.
    pub(super) fn find(
        &self,
        wanted: &Wanted,
        may_have: impl Fn(&PersistentVolumeView) -> bool,
    ) -> Option<Arc<PersistentVolumeView>> {
        let first = Place {
            class: wanted.class.clone(),
            mode: wanted.mode.clone(),
            attributes: wanted.attributes.clone(),
            count: 0,
            access: Box::default(),
        };
        let places = self.places.range(first.clone()..).take_while(|(place, _)| place.is_like(&first));
        for (_, volumes) in places.filter(|(place, _)| matching::has_access(&place.access, &wanted.access)) {
            let mut large_enough = volumes.range((wanted.size, Istr::default())..).map(|(_, volume)| volume);
            if let Some(volume) = large_enough.find(|volume| wanted.accepts(volume) && may_have(volume)) {
                return Some(Arc::clone(volume));
            }
        }
        None
    }

    /// Notes that a claim waits for a volume.
    pub(super) fn wait(&mut self, key: &ObjectKey, wanted: &Wanted) {
        self.leave(key);
        self.waits_at.insert(key.clone(), (wanted.class.clone(), wanted.size));
        let by_size = self.waiting.entry(wanted.class.clone()).or_default();
        by_size.entry(wanted.size).or_default().insert(key.clone());
    }

    /// Notes that a claim does not wait any more.
    pub(super) fn leave(&mut self, key: &ObjectKey) {
        let Some((class, size)) = self.waits_at.remove(key) else { return };
        let Some(by_size) = self.waiting.get_mut(&class) else { return };
        if let Some(claims) = by_size.get_mut(&size) {
            claims.remove(key);
            if claims.is_empty() {
                by_size.remove(&size);
            }
        }
        if by_size.is_empty() {
            self.waiting.remove(&class);
        }
    }

    /// Returns the waiting claim that a free volume suits best: the largest that fits. It does not wait any more.
    pub(super) fn wake(
        &mut self,
        volume: &PersistentVolumeView,
        claim: impl Fn(&ObjectKey) -> Option<Arc<PersistentVolumeClaimView>>,
    ) -> Option<ObjectKey> {
        let by_size = self.waiting.get(class::of_volume(volume))?;
        let size = matching::size_of_volume(volume);
        let suits = |key: &ObjectKey| {
            let Some(claim) = claim(key) else { return false };
            let selector = Wanted::by(&claim).ok().and_then(|wanted| wanted.selector);
            claim.spec.volume_name.is_empty()
                && matching::suits_named(volume, &claim).is_ok()
                && selector.is_none_or(|selector| selector.matches(&volume.meta().labels))
        };
        let mut fitting = by_size.range(..=size).rev().flat_map(|(_, claims)| claims);
        let found = fitting.find(|key| suits(key)).cloned()?;
        self.leave(&found);
        Some(found)
    }
}

// === impl Place ===

impl Place {
    fn of(volume: &PersistentVolumeView) -> Self {
        let mut access = volume.spec.access_modes.clone();
        access.sort_unstable();
        Self {
            class: class::of_volume(volume).clone(),
            mode: matching::mode(volume.spec.volume_mode.as_ref()),
            attributes: matching::attributes_of_volume(volume),
            count: access.len(),
            access,
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        self.class == other.class && self.mode == other.mode && self.attributes == other.attributes
    }
}

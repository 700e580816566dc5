//! Owners that the server reported as absent: their other dependents need not ask again.

use std::collections::{BTreeMap, HashMap};

use super::identity::Identity;

/// The identities last found absent; the least recently used is dropped first.
#[derive(Debug, Default)]
pub(crate) struct Absent {
    used_at: HashMap<Identity, u64>,
    by_use: BTreeMap<u64, Identity>,
    uses: u64,
}

/// Upstream's figure: enough for the owners of one cascade, with little memory.
pub(crate) const ABSENT_MAX: usize = 500;

// === impl Absent ===

impl Absent {
    /// Records that an object is absent. A deleted uid does not reappear, unless the server is restored from a backup:
    /// then everything is [forgotten](Self::clear).
    pub(crate) fn add(&mut self, identity: Identity) {
        self.uses += 1;
        if let Some(before) = self.used_at.insert(identity.clone(), self.uses) {
            self.by_use.remove(&before);
        }
        self.by_use.insert(self.uses, identity);
        if self.used_at.len() > ABSENT_MAX
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.used_at.remove(&oldest);
        }
    }

    /// Records that an object exists.
    pub(crate) fn forget(&mut self, identity: &Identity) {
        if !self.used_at.is_empty()
            && let Some(used_at) = self.used_at.remove(identity)
        {
            self.by_use.remove(&used_at);
        }
    }

    /// Forgets everything: the server went back in time.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Whether the object is known to be absent.
    pub(crate) fn has(&mut self, identity: &Identity) -> bool {
        let Some(used_at) = self.used_at.get_mut(identity) else { return false };
        self.uses += 1;
        let before = std::mem::replace(used_at, self.uses);
        if let Some(identity) = self.by_use.remove(&before) {
            self.by_use.insert(self.uses, identity);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(n: usize) -> Identity {
        let uid = format!("uid-{n}");
        Identity {
            kind: "Pod".into(),
            api_version: "v1".into(),
            namespace: "a".into(),
            name: "p".into(),
            uid: uid.as_str().into(),
        }
    }

    #[test]
    fn the_longest_unused_goes_first() {
        let mut absent = Absent::default();
        (0..ABSENT_MAX).for_each(|n| absent.add(owner(n)));
        assert!(absent.has(&owner(0)), "used again");
        absent.add(owner(ABSENT_MAX));
        absent.add(owner(ABSENT_MAX));
        let held: Vec<bool> = [0, 1, 2, ABSENT_MAX].iter().map(|n| absent.has(&owner(*n))).collect();
        assert_eq!(held, [true, false, true, true]);
        assert_eq!((absent.used_at.len(), absent.by_use.len()), (ABSENT_MAX, ABSENT_MAX));
    }

    #[test]
    fn what_is_there_again_is_not_absent() {
        let mut absent = Absent::default();
        absent.add(owner(1));
        absent.add(owner(2));
        absent.forget(&owner(1));
        assert!(!absent.has(&owner(1)) && absent.has(&owner(2)));
        absent.clear();
        assert!(!absent.has(&owner(2)));
        assert_eq!((absent.used_at.len(), absent.by_use.len()), (0, 0));
    }

    #[test]
    fn an_identity_is_absent_as_a_whole() {
        let mut absent = Absent::default();
        absent.add(owner(1));
        assert!(!absent.has(&Identity { namespace: "b".into(), ..owner(1) }));
        assert!(!absent.has(&owner(1).cluster_wide()));
    }
}

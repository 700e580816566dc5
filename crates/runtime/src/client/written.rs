//! The last writes of a client, per kind.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use steersman_base::{Resource, ResourceVersion};

/// The newest written version per resource; bounded by the number of written kinds.
#[derive(Default)]
pub(super) struct Written(Mutex<BTreeMap<Resource, ResourceVersion>>);

// === impl Written ===

impl Written {
    /// Notes a write.
    pub(super) fn note(&self, resource: &Resource, version: ResourceVersion) {
        if version.is_empty() {
            return;
        }
        let mut held = self.0.lock();
        match held.get_mut(resource) {
            Some(newest) if newest.is_newer_than(&version) => {}
            Some(newest) => *newest = version,
            None => drop(held.insert(resource.clone(), version)),
        }
    }

    /// Returns the version that a cache must have reached to show all writes.
    pub(super) fn newest(&self, resource: &Resource) -> Option<ResourceVersion> {
        self.0.lock().get(resource).cloned()
    }

    /// Forgets a version that a cache will never show: the server was restored from a backup.
    pub(super) fn forget(&self, resource: &Resource, version: &ResourceVersion) {
        let mut held = self.0.lock();
        if held.get(resource) == Some(version) {
            held.remove(resource);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_write_of_a_kind_is_kept() {
        let pods = Resource::namespaced("", "v1", "pods", "Pod");
        let written = Written::default();
        assert_eq!(written.newest(&pods), None);
        for version in ["9", "12", "11", ""] {
            written.note(&pods, version.into());
        }
        assert_eq!(written.newest(&pods), Some("12".into()));
        written.forget(&pods, &"11".into());
        assert_eq!(written.newest(&pods), Some("12".into()));
        written.forget(&pods, &"12".into());
        assert_eq!(written.newest(&pods), None);
    }
}

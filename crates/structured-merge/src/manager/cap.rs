//! Not more managers than anybody can read.

use std::collections::BTreeMap;

use crate::managed::{Managed, ManagerId, Operation};
use crate::time;

/// The maximum number of managers of updates that an object distinguishes; upstream's `DefaultMaxUpdateManagers`.
pub const UPDATE_MANAGERS_MAX: usize = 10;
/// The manager that the oldest ones become.
const ANCIENT_CHANGES: &str = "ancient-changes";

/// Folds the oldest managers of updates into one per API version, until there are few enough.
pub(super) fn cap_update_managers(managed: &mut Managed) {
    let is_update = |id: &&ManagerId| id.operation == Operation::Update;
    let mut count = managed.entries.keys().filter(is_update).count();
    if count <= UPDATE_MANAGERS_MAX {
        return;
    }
    let mut oldest: Vec<ManagerId> = managed.entries.keys().filter(is_update).cloned().collect();
    oldest.sort_by_key(|id| time::unix_seconds(managed.entries[id].time.as_deref()));
    let mut first_of: BTreeMap<String, ManagerId> = BTreeMap::new();
    for id in oldest {
        if count <= UPDATE_MANAGERS_MAX {
            return;
        }
        let version = managed.entries[&id].api_version.clone();
        // One alone is not worth a bucket.
        let Some(first) = first_of.get(&version) else {
            first_of.insert(version, id);
            continue;
        };
        let bucket = ManagerId::new(ANCIENT_CHANGES, Operation::Update, &version, "");
        if !managed.entries.contains_key(&bucket)
            && let Some(entry) = managed.entries.remove(first)
        {
            managed.entries.insert(bucket.clone(), entry);
        }
        let folded = if id == bucket { first } else { &id };
        let Some(folded) = managed.entries.remove(folded) else {
            continue;
        };
        count -= 1;
        if let Some(entry) = managed.entries.get_mut(&bucket) {
            entry.fields = folded.fields.union(&entry.fields);
            if id != bucket {
                entry.time = folded.time;
            }
        }
    }
}

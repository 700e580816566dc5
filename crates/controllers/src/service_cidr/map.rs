//! Pure: which ranges a change concerns.

use std::sync::Arc;

use steersman_base::ObjectKey;
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::networking::{IpAddressView, ServiceCidrView};

use super::ranges;

/// Returns the changed range, and the terminating ranges that a new one may cover.
pub(super) fn ranges_to_check(
    change: &Change<ServiceCidrView>,
    terminating: &[Arc<ServiceCidrView>],
) -> Vec<ObjectKey> {
    let mut keys = vec![change.key()];
    if let Change::Added { new, .. } = change {
        let covered = terminating.iter().filter(|range| range.metadata.name != new.metadata.name);
        keys.extend(covered.filter(|range| ranges::overlap(range, new)).map(|range| range.meta().key()));
    }
    keys
}

/// Returns the terminating ranges that a new address keeps, or that a deleted one releases.
pub(super) fn ranges_of_address(
    change: &Change<IpAddressView>,
    terminating: &[Arc<ServiceCidrView>],
) -> Vec<ObjectKey> {
    let (Change::Added { new: object, .. } | Change::Deleted { last: object, .. }) = change else {
        return Vec::new();
    };
    let Some(address) = ranges::allocated(object).filter(|_| !terminating.is_empty()) else { return Vec::new() };
    let holding = terminating.iter().filter(|range| ranges::any_holds(range, address));
    holding.map(|range| range.meta().key()).collect()
}

//! Pure: which active pods are deleted when there are too many.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::sync::Arc;

use steersman_model::View;
use steersman_model::batch::JobView;
use steersman_model::core::PodView;

use super::{pods, spec};
use crate::pod;
use crate::replicaset::ranking::{before_cost, restarts};

/// Returns the active pods to delete: at least this number, and of an indexed Job all that have no index of its own, or
/// one that another pod has, too.
pub(super) fn surplus(job: &JobView, active: &[Arc<PodView>], at_least: usize) -> Vec<Arc<PodView>> {
    let mut surplus = Vec::new();
    let mut left = Vec::new();
    if spec::indexes(job).is_some() {
        let mut by_index: BTreeMap<i32, Vec<Arc<PodView>>> = BTreeMap::new();
        for pod in active {
            match pods::valid_index(job, pod) {
                Some(index) => by_index.entry(index).or_default().push(Arc::clone(pod)),
                None => surplus.push(Arc::clone(pod)),
            }
        }
        for mut same in by_index.into_values() {
            same.sort_by(|one, other| order(one, other));
            left.extend(same.pop());
            surplus.extend(same);
        }
    } else {
        left.extend(active.iter().cloned());
    }
    if surplus.len() < at_least {
        left.sort_by(|one, other| order(one, other));
        left.truncate(at_least - surplus.len());
        surplus.extend(left);
    }
    surplus
}

/// The order of `ActivePods` in upstream's `controller_utils.go`: the least useful pods first. Equal ones by uid, so that
/// the answer does not depend on the order of a cache.
fn order(one: &PodView, other: &PodView) -> Ordering {
    // Those without a time come before all others.
    let latest_first = |time: Option<steersman_base::Time>| (time.is_some(), Reverse(time));
    let ready = |pod: &PodView| latest_first(pod::ready_since(pod));
    let created = |pod: &PodView| latest_first(pod.meta().creation_timestamp);
    before_cost(one, other)
        .then_with(|| ready(one).cmp(&ready(other)))
        .then_with(|| restarts(other).cmp(&restarts(one)))
        .then_with(|| created(one).cmp(&created(other)))
        .then_with(|| one.meta().uid.cmp(&other.meta().uid))
}

//! Pure: a rolling update: which old pods are deleted, so that new ones replace them.
//!
//! 1. Pods are replaced from the highest ordinal down to the partition.
//! 2. No available pod is deleted while `maxUnavailable` pods of wanted ordinals are unavailable: missing, terminating,
//!    not ready long enough, or about to be deleted in this pass.
//! 3. With `OrderedReady` and our gate, an old pod that is not ready is replaced instead of waited for: upstream waits for
//!    ever if it never becomes ready (issue 67250).
//! 4. With `Parallel`, old pods that are unavailable are deleted first, whatever `maxUnavailable`: they serve nobody,
//!    and could block the update.

use std::sync::Arc;

use steersman_base::IntOrString;
use steersman_base::int_or_string::Rounding;
use steersman_model::View;
use steersman_model::apps::StatefulSetView;
use steersman_model::core::PodView;

use super::identity::{Ordinals, ordinal, revision_of};
use super::plan::{Observed, is_running_and_ready};
use crate::pod;

/// Returns the number of wanted pods that may be unavailable: at least one.
pub(super) fn max_unavailable(set: &StatefulSetView) -> i64 {
    let rolling = set.spec.update_strategy.rolling_update.as_ref();
    let replicas = i32::try_from(Ordinals::of(set).count).unwrap_or(i32::MAX);
    let scaled = |max: &IntOrString| max.scaled(replicas, Rounding::Down).unwrap_or(1);
    rolling.and_then(|rolling| rolling.max_unavailable.as_ref()).map_or(1, scaled).max(1).into()
}

/// Returns the old pods to delete, highest ordinal first.
pub(super) fn replaced(seen: &Observed<'_>) -> Vec<Arc<PodView>> {
    if !seen.options.max_unavailable {
        return one_by_one(seen).into_iter().collect();
    }
    let missing = Ordinals::of(seen.set).count - i64::try_from(seen.pods.wanted.len()).unwrap_or(i64::MAX);
    let unavailable = seen.pods.wanted.values().filter(|pod| is_unavailable(seen, pod)).count();
    let unavailable = missing.saturating_add(i64::try_from(unavailable).unwrap_or(i64::MAX));
    let budget = usize::try_from(max_unavailable(seen.set).saturating_sub(unavailable)).unwrap_or(0);
    let mut gone: Vec<Arc<PodView>> = Vec::new();
    if !seen.is_ordered() {
        let is_idle = |pod: &&Arc<PodView>| !pod.meta().is_terminating() && !seen.is_available(pod);
        gone.extend(old(seen).filter(is_idle).filter(|pod| !pod::has_ended(pod)).cloned());
    }
    gone.extend(old(seen).filter(|pod| !is_unavailable(seen, pod)).take(budget).cloned());
    gone
}

/// Returns the old pods that are to be replaced, highest ordinal first.
fn old<'a>(seen: &'a Observed<'_>) -> impl Iterator<Item = &'a Arc<PodView>> {
    let lowest = lowest(seen);
    seen.pods.wanted.range(lowest..).rev().map(|(_, pod)| pod).filter(|pod| is_old(seen, pod))
}

/// Whether a pod would be replaced by the update, and is not ready: whoever waits for it may wait for ever.
pub(super) fn is_broken(seen: &Observed<'_>, pod: &PodView) -> bool {
    let is_updated = ordinal(pod).is_some_and(|ordinal| ordinal >= lowest(seen));
    is_updated && is_old(seen, pod) && !pod.meta().is_terminating() && !is_running_and_ready(pod)
}

fn is_old(seen: &Observed<'_>, pod: &PodView) -> bool {
    revision_of(pod) != seen.update.name.as_str()
}

/// Whether a wanted pod is unavailable. One that has ended is deleted in this pass, whatever its conditions say.
fn is_unavailable(seen: &Observed<'_>, pod: &PodView) -> bool {
    pod::has_ended(pod) || seen.is_unavailable(pod)
}

/// Returns the lowest ordinal that is updated.
fn lowest(seen: &Observed<'_>) -> i64 {
    let rolling = seen.set.spec.update_strategy.rolling_update.as_ref();
    let partition = rolling.and_then(|rolling| rolling.partition).unwrap_or(0);
    Ordinals::of(seen.set).start + i64::from(partition.max(0))
}

/// Returns the old pod of the highest ordinal, if all behind it are available: the rule without the feature gate
/// `MaxUnavailableStatefulSet`.
fn one_by_one(seen: &Observed<'_>) -> Option<Arc<PodView>> {
    let ordinals = Ordinals::of(seen.set);
    let mut next = ordinals.end() - 1;
    for (ordinal, pod) in seen.pods.wanted.range(lowest(seen)..).rev() {
        if *ordinal != next {
            return None;
        }
        next -= 1;
        if is_old(seen, pod) && !pod.meta().is_terminating() {
            return Some(Arc::clone(pod));
        }
        if is_unavailable(seen, pod) {
            return None;
        }
    }
    None
}

//! Pure: the status of a StatefulSet, and when to check again.

use std::time::Duration;

use steersman_base::{Condition, ConditionStatus, condition};
use steersman_model::View;
use steersman_model::apps::{StatefulSetStatus, StatefulSetView};

use super::identity::revision_of;
use super::plan::{Observed, Plan, is_recreated, min_ready};
use crate::pod;

/// The condition that reports on the strategy `Recreate`.
const PROGRESSING: &str = "Progressing";

/// Whether the StatefulSet has fewer pods than it wants, by its status.
pub(super) fn lacks_pods(set: &StatefulSetView) -> bool {
    // Absent means one: the API server's default.
    set.status.replicas < set.spec.replicas.unwrap_or(1)
}

/// Returns the status that the StatefulSet should have. `replaced` is the number of old pods that this pass deleted in a
/// rolling update.
pub(super) fn status(seen: &Observed<'_>, plan: &Plan, collisions: i32, replaced: usize) -> StatefulSetStatus {
    let is_ready = |pod: &steersman_model::core::PodView| pod.status.phase == "Running" && pod::is_ready(pod);
    let mut status = StatefulSetStatus {
        observed_generation: seen.set.meta().generation,
        current_revision: seen.current.name.clone(),
        update_revision: seen.update.name.clone(),
        collision_count: Some(collisions),
        conditions: conditions(seen, plan),
        ..StatefulSetStatus::default()
    };
    for pod in seen.pods.all() {
        status.replicas += 1;
        if is_ready(pod) {
            status.ready_replicas += 1;
            status.available_replicas += i32::from(seen.is_available(pod));
        }
        if !pod.meta().is_terminating() {
            status.current_replicas += i32::from(revision_of(pod) == seen.current.name.as_str());
            status.updated_replicas += i32::from(revision_of(pod) == seen.update.name.as_str());
        }
    }
    // Those that this pass deleted are still seen. Of a third revision, they were not counted.
    let replaced = plan.replace.iter().take(replaced).filter(|pod| revision_of(pod) == seen.current.name.as_str());
    status.current_replicas -= i32::try_from(replaced.count()).unwrap_or(i32::MAX);
    complete(seen, &mut status);
    status
}

/// Makes the update revision the current one when all pods are updated and ready.
fn complete(seen: &Observed<'_>, status: &mut StatefulSetStatus) {
    let want = seen.set.spec.replicas.unwrap_or(1);
    if [status.updated_replicas, status.ready_replicas, status.replicas] != [want; 3] {
        return;
    }
    status.current_replicas = status.updated_replicas;
    status.current_revision = status.update_revision.clone();
    if is_recreated(seen.set) && condition::find(&status.conditions, PROGRESSING).is_some() {
        let done = Condition::new(PROGRESSING, ConditionStatus::False)
            .because("RecreateCompleted", "All pods recreated successfully");
        let mut conditions = status.conditions.to_vec();
        condition::set(&mut conditions, done, seen.now);
        status.conditions = conditions.into();
    }
}

fn conditions(seen: &Observed<'_>, plan: &Plan) -> Box<[Condition]> {
    let mut conditions = seen.set.status.conditions.to_vec();
    if let Some(text) = plan.progress {
        let progress = Condition::new(PROGRESSING, ConditionStatus::True).because("RecreateInProgress", text);
        condition::set(&mut conditions, progress, seen.now);
    }
    conditions.into()
}

/// Returns when the next ready pod becomes available, if one is waiting for `minReadySeconds`.
pub(super) fn next_check(seen: &Observed<'_>, status: &StatefulSetStatus) -> Option<Duration> {
    let min_ready = min_ready(seen.set);
    if min_ready.is_zero() || status.ready_replicas == status.available_replicas {
        return None;
    }
    let waits = seen.pods.all().filter_map(|pod| pod::available_in(pod, min_ready, seen.now));
    // A ready pod without a time is checked again after the whole period.
    Some(waits.filter(|wait| !wait.is_zero()).min().unwrap_or(min_ready))
}

//! Pure: which ReplicaSet of a Deployment is the new one, and sums over all of them.

use std::cmp::Ordering;
use std::sync::Arc;

use steersman_model::View;
use steersman_model::apps::ReplicaSetView;
use steersman_model::template::Template;

/// The ReplicaSets of a Deployment.
#[derive(Debug, Default)]
pub(super) struct Sets {
    /// The ReplicaSet with the Deployment's template; `None` before it is created.
    pub(super) new: Option<Arc<ReplicaSetView>>,
    /// All others, oldest first.
    pub(super) old: Vec<Arc<ReplicaSetView>>,
}

/// Returns the number of pods a ReplicaSet wants. An absent count means one: the API server's default.
pub(super) fn wanted(set: &ReplicaSetView) -> i32 {
    set.spec.replicas.unwrap_or(1)
}

/// Whether the ReplicaSet's status is about its current spec. Until then its counts are those of an older one.
pub(super) fn is_observed(set: &ReplicaSetView) -> bool {
    set.status.observed_generation >= set.meta().generation
}

/// Orders by age, oldest first, then by name: upstream's order wherever one is needed.
pub(super) fn by_age(left: &ReplicaSetView, right: &ReplicaSetView) -> Ordering {
    let created = |set: &ReplicaSetView| set.meta().creation_timestamp;
    created(left).cmp(&created(right)).then_with(|| left.meta().name.cmp(&right.meta().name))
}

// === impl Sets ===

impl Sets {
    /// Sorts a Deployment's ReplicaSets. The new one is found by its template alone, regardless of who created it and
    /// of its hash. Of several, the oldest is used.
    pub(super) fn find(template: &Template, mut sets: Vec<Arc<ReplicaSetView>>) -> Self {
        sets.sort_by(|left, right| by_age(left, right));
        let new = sets.iter().position(|set| set.spec.template.equals_but_for_hash(template));
        let new = new.map(|at| sets.remove(at));
        Self { new, old: sets }
    }

    /// Returns the old ReplicaSets, then the new one.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<ReplicaSetView>> {
        self.old.iter().chain(&self.new)
    }

    /// Returns the old ReplicaSets that want pods.
    pub(super) fn active_old(&self) -> impl Iterator<Item = &Arc<ReplicaSetView>> {
        self.old.iter().filter(|set| wanted(set) > 0)
    }

    /// Whether every status is about the current spec.
    pub(super) fn are_observed(&self) -> bool {
        self.all().all(|set| is_observed(set))
    }

    /// Returns a sum over all of them.
    pub(super) fn sum(&self, count: impl Fn(&ReplicaSetView) -> i32) -> i32 {
        self.all().fold(0, |sum, set| sum.saturating_add(count(set)))
    }
}

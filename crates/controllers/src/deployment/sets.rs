//! Pure: which of a Deployment's ReplicaSets is the new one, and what they have between them.

use std::cmp::Ordering;
use std::sync::Arc;

use steersman_model::View;
use steersman_model::apps::ReplicaSetView;
use steersman_model::template::Template;

/// The ReplicaSets of a Deployment.
#[derive(Debug, Default)]
pub(super) struct Sets {
    /// The one with the Deployment's template; none before it is made.
    pub(super) new: Option<Arc<ReplicaSetView>>,
    /// All others, oldest first.
    pub(super) old: Vec<Arc<ReplicaSetView>>,
}

/// How many pods a ReplicaSet wants. An absent count means one: the API server's default.
pub(super) fn wanted(set: &ReplicaSetView) -> i32 {
    set.spec.replicas.unwrap_or(1)
}

/// Whether the ReplicaSet's status is about its spec as it is. Until then its counts are those of an older one.
pub(super) fn is_observed(set: &ReplicaSetView) -> bool {
    set.status.observed_generation >= set.meta().generation
}

/// Older first, then by name: upstream's order wherever one is needed.
pub(super) fn by_age(left: &ReplicaSetView, right: &ReplicaSetView) -> Ordering {
    let created = |set: &ReplicaSetView| set.meta().creation_timestamp;
    created(left).cmp(&created(right)).then_with(|| left.meta().name.cmp(&right.meta().name))
}

// === impl Sets ===

impl Sets {
    /// Sorts a Deployment's ReplicaSets. The new one is found by its template and by nothing else: whoever made it, and
    /// whatever its hash, it is kept. Of several, the oldest counts.
    pub(super) fn find(template: &Template, mut sets: Vec<Arc<ReplicaSetView>>) -> Self {
        sets.sort_by(|left, right| by_age(left, right));
        let new = sets.iter().position(|set| set.spec.template.equals_but_for_hash(template));
        let new = new.map(|at| sets.remove(at));
        Self { new, old: sets }
    }

    /// Old ones first, then the new one.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<ReplicaSetView>> {
        self.old.iter().chain(&self.new)
    }

    /// Old ones that want pods.
    pub(super) fn active_old(&self) -> impl Iterator<Item = &Arc<ReplicaSetView>> {
        self.old.iter().filter(|set| wanted(set) > 0)
    }

    /// Whether every status is about the spec as it is.
    pub(super) fn are_observed(&self) -> bool {
        self.all().all(|set| is_observed(set))
    }

    /// The sum of something over all of them.
    pub(super) fn sum(&self, count: impl Fn(&ReplicaSetView) -> i32) -> i32 {
        self.all().fold(0, |sum, set| sum.saturating_add(count(set)))
    }
}

//! Pure: a StatefulSet, its revisions, pods and claims → the writes of a pass. The decision ladder.
//!
//! 1. At most one pod per ordinal: its name is the ordinal's, and a pod that is on its way out is waited for.
//! 2. `OrderedReady`: a pod is created when all before it are available, and deleted when all that stay are; one at a
//!    time. `Parallel`: no pod waits for another.
//! 3. Surplus pods are deleted before old ones are replaced.
//!
//! Follows `updateStatefulSet` in `stateful_set_control.go` of Kubernetes 1.37.1.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use steersman_base::Time;
use steersman_model::View;
use steersman_model::apps::StatefulSetView;
use steersman_model::core::{PersistentVolumeClaimView, PodView};

use super::identity::{self, ClaimTemplates, Ordinals, Revision, revision_of};
use super::retention::{self, Owners, Policy};
use super::{CREATES_MAX, Options, rolling};
use crate::pod;

/// The observed state.
pub(super) struct Observed<'a> {
    pub(super) set: &'a StatefulSetView,
    pub(super) templates: &'a ClaimTemplates,
    /// The revision of pods that are not updated yet.
    pub(super) current: &'a Revision,
    /// The revision of the template.
    pub(super) update: &'a Revision,
    pub(super) pods: &'a Pods,
    pub(super) claim: &'a (dyn Fn(&str) -> Option<Arc<PersistentVolumeClaimView>> + Sync),
    pub(super) options: Options,
    pub(super) now: Time,
}

/// The pods of a StatefulSet by their ordinals.
#[derive(Debug, Default)]
pub(super) struct Pods {
    /// Pods of wanted ordinals.
    pub(super) wanted: BTreeMap<i64, Arc<PodView>>,
    /// Pods of other ordinals, highest first.
    pub(super) surplus: Vec<Arc<PodView>>,
}

/// The actions, in this order; the status is written last.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// The writes for wanted pods, in the order of their ordinals.
    pub(super) wanted: Vec<Step>,
    /// Surplus pods whose claims have wrong owners.
    pub(super) own: Vec<Arc<PodView>>,
    /// Surplus pods to delete.
    pub(super) scale_down: Vec<Arc<PodView>>,
    /// Old pods to delete, so that new ones replace them.
    pub(super) replace: Vec<Arc<PodView>>,
    /// The message of the condition `Progressing`, with the strategy `Recreate`.
    pub(super) progress: Option<&'static str>,
}

/// A write for a wanted pod.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// Create the pod of this ordinal, and its claims, from the update revision or from the current one.
    Create { ordinal: i64, is_update: bool },
    /// Delete a pod that has ended.
    DeleteEnded(Arc<PodView>),
    /// Delete an old pod that is not ready, and holds back the update that would replace it.
    DeleteBroken(Arc<PodView>),
    /// Create the missing claims of a pending pod, and give its claims the right owners.
    Claims(Arc<PodView>),
    /// Give the pod its label and volumes, and its claims the right owners.
    Amend(Arc<PodView>),
}

/// Whether the pods behind a pod may be looked at.
enum Next {
    Go,
    Wait,
}

/// Decides what to do.
pub(super) fn plan(seen: &Observed<'_>) -> Plan {
    let mut plan = Plan::default();
    if seen.set.meta().is_terminating() {
        return plan;
    }
    if is_recreated(seen.set) {
        plan.replace = old_pods(seen).filter(|pod| !pod.meta().is_terminating()).cloned().collect();
        if old_pods(seen).next().is_some() {
            plan.progress = Some("Deleting old revision pods");
            return plan;
        }
        if seen.current.name != seen.update.name {
            plan.progress = Some("Waiting for new-revision pods to be created");
        }
    }
    let may_go_on = plan_wanted(seen, &mut plan.wanted);
    if !may_go_on {
        return plan;
    }
    plan.own = seen.pods.surplus.iter().filter(|pod| !seen.has_right_owners(pod)).cloned().collect();
    plan.scale_down = scale_down(seen);
    let is_ordered_scale_down = seen.is_ordered() && !seen.pods.surplus.is_empty();
    if !is_ordered_scale_down && is_rolling(seen.set) {
        plan.replace = rolling::replaced(seen);
    }
    plan
}

/// Whether old pods are replaced step by step. An absent strategy means so: the API server's default.
fn is_rolling(set: &StatefulSetView) -> bool {
    matches!(&*set.spec.update_strategy.type_, "" | "RollingUpdate")
}

/// Whether all old pods are deleted before new ones are created.
pub(super) fn is_recreated(set: &StatefulSetView) -> bool {
    set.spec.update_strategy.type_ == "Recreate"
}

fn old_pods<'a>(seen: &'a Observed<'_>) -> impl Iterator<Item = &'a Arc<PodView>> {
    seen.pods.all().filter(|pod| revision_of(pod) != seen.update.name.as_str())
}

/// Plans the writes for wanted pods; returns whether anything else may be done.
fn plan_wanted(seen: &Observed<'_>, steps: &mut Vec<Step>) -> bool {
    let ordinals = Ordinals::of(seen.set);
    let mut next = ordinals.start;
    let mut missing = 0;
    // Of a gap of a billion pods, some are created; their events lead to the next pass. The claims of those behind them
    // are not known, so that one which has to wait counts, too.
    let mut fill = |until: i64, steps: &mut Vec<Step>| {
        for ordinal in next..until {
            if missing >= CREATES_MAX {
                break;
            }
            missing += 1;
            if seen.has_claim_of_earlier_pod(ordinal) {
                if seen.is_ordered() {
                    return Next::Wait;
                }
                continue;
            }
            steps.push(Step::Create { ordinal, is_update: is_of_update(seen, ordinal) });
            if seen.is_ordered() {
                return Next::Wait;
            }
        }
        next = until + 1;
        Next::Go
    };
    for (ordinal, pod) in &seen.pods.wanted {
        if matches!(fill(*ordinal, steps), Next::Wait) {
            return false;
        }
        let verdict = plan_existing(seen, pod, steps);
        if matches!(verdict, Next::Wait) && seen.is_ordered() {
            return false;
        }
    }
    matches!(fill(ordinals.end(), steps), Next::Go)
}

fn plan_existing(seen: &Observed<'_>, pod: &Arc<PodView>, steps: &mut Vec<Step>) -> Next {
    if pod::has_ended(pod) {
        if !pod.meta().is_terminating() {
            steps.push(Step::DeleteEnded(Arc::clone(pod)));
        }
        return Next::Wait;
    }
    if pod.status.phase == "Pending" && seen.lacks_claims(pod) {
        steps.push(Step::Claims(Arc::clone(pod)));
    }
    if pod.meta().is_terminating() || !is_running_and_ready(pod) || !seen.is_available(pod) {
        if seen.is_ordered() {
            if seen.options.replace_broken && is_rolling(seen.set) && rolling::is_broken(seen, pod) {
                steps.push(Step::DeleteBroken(Arc::clone(pod)));
            }
            return Next::Wait;
        }
        if pod.meta().is_terminating() {
            return Next::Go;
        }
    }
    let is_right = identity::has_identity(seen.set, pod)
        && identity::has_storage(seen.set, seen.templates, pod)
        && seen.has_right_owners(pod);
    if !is_right && steps.last() != Some(&Step::Claims(Arc::clone(pod))) {
        steps.push(Step::Amend(Arc::clone(pod)));
    }
    Next::Go
}

/// Whether a new pod of this ordinal is created from the update revision.
fn is_of_update(seen: &Observed<'_>, ordinal: i64) -> bool {
    let start = Ordinals::of(seen.set).start;
    match &seen.set.spec.update_strategy.rolling_update {
        Some(rolling) => ordinal >= start + i64::from(rolling.partition.unwrap_or(0)),
        None if is_rolling(seen.set) => ordinal >= start + i64::from(seen.set.status.current_replicas),
        None => true,
    }
}

/// Returns the surplus pods to delete: with `OrderedReady` the highest one, when all others are available.
fn scale_down(seen: &Observed<'_>) -> Vec<Arc<PodView>> {
    let surplus = &seen.pods.surplus;
    if !seen.is_ordered() {
        return surplus.iter().filter(|pod| !pod.meta().is_terminating()).cloned().collect();
    }
    let Some(highest) = surplus.first().filter(|pod| !pod.meta().is_terminating()) else { return Vec::new() };
    // All wanted pods are available. Of the surplus, one that is not, and the lowest of these, may be deleted.
    let lowest_unavailable = surplus.iter().rev().find(|pod| seen.is_unavailable(pod));
    let is_healthy = is_running_and_ready(highest) && seen.is_available(highest);
    let may_go = is_healthy || lowest_unavailable.is_some_and(|pod| Arc::ptr_eq(pod, highest));
    if may_go { vec![Arc::clone(highest)] } else { Vec::new() }
}

pub(super) fn is_running_and_ready(pod: &PodView) -> bool {
    pod.status.phase == "Running" && pod::is_ready(pod)
}

// === impl Observed ===

impl Observed<'_> {
    /// Whether pods are created and deleted one after the other.
    pub(super) fn is_ordered(&self) -> bool {
        !super::is_parallel(self.set)
    }

    pub(super) fn is_available(&self, pod: &PodView) -> bool {
        pod::available_in(pod, min_ready(self.set), self.now) == Some(Duration::ZERO)
    }

    pub(super) fn is_unavailable(&self, pod: &PodView) -> bool {
        pod.meta().is_terminating() || !self.is_available(pod)
    }

    fn has_right_owners(&self, pod: &PodView) -> bool {
        let owners = Owners { set: self.set, pod };
        self.claims_of(pod).all(|(_, claim)| claim.is_none_or(|claim| owners.are_right(claim.meta())))
    }

    /// Whether a claim of the pod does not exist, is terminating or has wrong owners.
    fn lacks_claims(&self, pod: &PodView) -> bool {
        let owners = Owners { set: self.set, pod };
        let is_fine =
            |claim: &Arc<PersistentVolumeClaimView>| !claim.meta().is_terminating() && owners.are_right(claim.meta());
        self.claims_of(pod).any(|(_, claim)| !claim.as_ref().is_some_and(is_fine))
    }

    /// Returns the names of a pod's claims, and those that exist.
    fn claims_of(&self, pod: &PodView) -> impl Iterator<Item = (String, Option<Arc<PersistentVolumeClaimView>>)> {
        let ordinal = identity::ordinal(pod);
        self.templates.iter().filter_map(move |template| {
            let name = template.claim_name(self.set, ordinal?);
            let claim = (self.claim)(&name);
            Some((name, claim))
        })
    }

    /// Returns the names of a pod's claims that another controller owns, so that the retention policy does not apply.
    pub(super) fn claims_of_others(&self, pod: &PodView) -> Vec<String> {
        let owners = Owners { set: self.set, pod };
        let claims = self.claims_of(pod);
        let is_of_another = |claim: &Arc<PersistentVolumeClaimView>| owners.is_of_another(claim.meta());
        claims.filter(|(_, claim)| claim.as_ref().is_some_and(is_of_another)).map(|(name, _)| name).collect()
    }

    /// Whether a claim of this ordinal is about to be deleted with an earlier pod.
    pub(super) fn has_claim_of_earlier_pod(&self, ordinal: i64) -> bool {
        if !Policy::of(self.set).delete_with_pod {
            return false;
        }
        let pod = identity::pod_name(self.set, ordinal);
        let claims = self.templates.iter().filter_map(|template| (self.claim)(&template.claim_name(self.set, ordinal)));
        claims.into_iter().any(|claim| retention::is_of_earlier_pod(claim.meta(), &pod))
    }
}

// === impl Pods ===

impl Pods {
    /// Sorts the pods of a StatefulSet. A pod whose ordinal is too large for a number is ignored.
    pub(super) fn of(set: &StatefulSetView, pods: Vec<Arc<PodView>>) -> Self {
        let ordinals = Ordinals::of(set);
        let mut sorted = Self::default();
        for pod in pods {
            let Some(ordinal) = identity::ordinal(&pod) else { continue };
            if !ordinals.contains(ordinal) {
                sorted.surplus.push(pod);
                continue;
            }
            // Of `web-1` and `web-01`, the one that has its ordinal's name counts.
            let is_named = pod.meta().name == *identity::pod_name(set, ordinal);
            if is_named || !sorted.wanted.contains_key(&ordinal) {
                sorted.wanted.insert(ordinal, pod);
            }
        }
        sorted.surplus.sort_by(|left, right| {
            let order = |pod: &PodView| (identity::ordinal(pod), pod.meta().name.clone());
            order(right).cmp(&order(left))
        });
        sorted
    }

    /// Returns the ordinals of all pods, and of the missing ones that a pass may create.
    pub(super) fn ordinals(&self, set: &StatefulSetView) -> impl Iterator<Item = i64> {
        let wanted = Ordinals::of(set);
        let missing = (wanted.start..wanted.end()).filter(|ordinal| !self.wanted.contains_key(ordinal));
        let created_max = if super::is_parallel(set) { CREATES_MAX } else { 1 };
        self.all().filter_map(|pod| identity::ordinal(pod)).chain(missing.take(created_max))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<PodView>> {
        self.wanted.values().chain(&self.surplus)
    }
}

/// Returns how long a pod must be ready to be available.
pub(super) fn min_ready(set: &StatefulSetView) -> Duration {
    Duration::from_secs(u64::try_from(set.spec.min_ready_seconds).unwrap_or(0))
}

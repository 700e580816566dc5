//! Which pods go first when there are too many.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use steersman_base::{Istr, ObjectKey, Time, Uid};

use super::{Case, REPLICA_SET, REPLICATION, Verdict};
use crate::world::{Object, Pod};

/// The maximum number of moments of a window that are checked.
const MOMENTS_MAX: usize = 256;

/// "When scaling down, the ReplicaSet controller chooses which pods to delete by sorting the available pods to
/// prioritize scaling down pods based on the following general algorithm". (website: ReplicaSet) The order follows
/// `ActivePodsWithRanks` in `controller_utils.go` of Kubernetes 1.37: without a node, pending, not ready, of lower
/// deletion cost, with more neighbours, ready for a shorter time, with more restarts, younger.
///
/// Asked when the ReplicaSet or ReplicationController controller deletes an active pod. If there are `n` too many,
/// fewer than `n` may rank before it. Ages count by their order of magnitude, and two of neighbouring ones are not told
/// apart: the clock ticks between the choice and the write. Judged against the store; staleness excuses what was right
/// at any moment by what was shown.
pub(super) fn pods_that_are_missed_least_go_first(case: &Case<'_>) -> Verdict {
    if !case.is("pods") || !case.by(&[REPLICA_SET, REPLICATION]) {
        return Verdict::NotMine;
    }
    let Some(pod) = case.deleted().filter(|pod| pod.is_active_pod()) else { return Verdict::NotMine };
    let Some(owner) = pod.controller() else { return Verdict::NotMine };
    let key = ObjectKey { namespace: pod.key.namespace.clone(), name: owner.name.clone() };
    let resource = super::ownership::resource_of(&owner.kind);
    let window = case.window();
    let wanted = window.of_key(resource, &key).and_then(|versions| {
        let mine = versions.objects().flatten().filter(|object| object.uid == owner.uid);
        mine.filter_map(|object| object.set()).map(|set| set.replicas).min()
    });
    // Deleted for a deleted owner: another invariant checks that.
    let Some(wanted) = wanted else { return Verdict::NotMine };
    let wanted = usize::try_from(wanted).unwrap_or(0);
    let left: Vec<_> = case.world.controlled("pods", &owner.uid).filter(|pod| pod.is_active_pod()).collect();
    let neighbours = neighbours(case, &owner.uid);
    let ranking = Ranking { now: case.change.at, neighbours: &neighbours, skew: case.options.clock_skew_seconds };
    let before = |pods: &[&Arc<Object>]| pods.iter().filter(|other| ranking.certainly_before(other, pod)).count();
    let first = before(&left);
    if first == 0 || first < (left.len() + 1).saturating_sub(wanted) {
        return Verdict::Holds;
    }
    let Some(moments) = window.moments("pods", &owner.uid, MOMENTS_MAX) else { return Verdict::Excused };
    let was_right = moments.into_iter().any(|moment| {
        let there: Vec<_> = moment.controlled().filter(|object| object.is_active_pod()).collect();
        let Some(as_seen) = there.iter().find(|object| object.uid == pod.uid) else { return false };
        let first = there.iter().filter(|other| ranking.certainly_before(other, as_seen)).count();
        first < there.len().saturating_sub(wanted)
    });
    if was_right {
        return Verdict::Stale;
    }
    let better =
        left.iter().find(|other| ranking.certainly_before(other, pod)).map_or_else(String::new, ToString::to_string);
    Verdict::Violated(format!(
        "{pod} is deleted, and {better} should go first ({first} before it; {} active pods, {wanted} wanted)",
        left.len() + 1
    ))
}

/// How many active pods of the same Deployment are on each node: at least, and at most, by what may have been seen.
/// Empty if there is no Deployment.
fn neighbours(case: &Case<'_>, set: &Uid) -> Neighbours {
    let mut on_node = Neighbours::new();
    let Some(deployment) = case.world.by_uid(set).and_then(|set| set.controller()) else { return on_node };
    let window = case.window();
    for sibling in case.world.controlled("replicasets.apps", &deployment.uid) {
        for history in case.world.histories("pods", &sibling.uid) {
            let versions = window.all_of("pods", history);
            let nodes: BTreeSet<_> = versions.objects().flatten().filter_map(|pod| Some(&pod.pod()?.node)).collect();
            for node in nodes {
                let counts = |pod: &Object| pod.is_active_pod() && pod.pod().is_some_and(|pod| pod.node == *node);
                let (least, most) = on_node.entry(node.clone()).or_default();
                // A pod that was removed from the set is on its node, and is not counted.
                let is_held = |pod: &Object| counts(pod) && pod.is_controlled_by(&sibling.uid);
                *least += usize::from(versions.always(is_held));
                *most += usize::from(versions.ever(counts));
            }
        }
    }
    on_node
}

type Neighbours = BTreeMap<Istr, (usize, usize)>;

/// What pods are compared with.
struct Ranking<'a> {
    now: Time,
    neighbours: &'a Neighbours,
    skew: i64,
}

// === impl Ranking ===

impl Ranking<'_> {
    /// Whether `left` certainly comes before `right`.
    fn certainly_before(&self, left: &Object, right: &Object) -> bool {
        let Some((a, b)) = left.pod().zip(right.pod()).filter(|_| left.uid != right.uid) else { return false };
        let ladder = [
            Some((!a.node.is_empty()).cmp(&!b.node.is_empty())),
            Some(a.phase.cmp(&b.phase)),
            Some(a.ready.cmp(&b.ready)),
            Some(a.cost.cmp(&b.cost)),
            self.crowded(a, b),
            self.age(ready_since(a), ready_since(b)),
            Some(b.restarts.cmp(&a.restarts)),
            self.age(left.created, right.created),
        ];
        for step in ladder {
            match step {
                Some(Ordering::Equal) => {}
                Some(order) => return order == Ordering::Less,
                None => return false,
            }
        }
        false
    }

    /// The one with more pods on its node comes first; none if that is not certain.
    fn crowded(&self, left: &Pod, right: &Pod) -> Option<Ordering> {
        if left.node == right.node || self.neighbours.is_empty() {
            return Some(Ordering::Equal);
        }
        let of = |pod: &Pod| self.neighbours.get(&pod.node).copied().unwrap_or_default();
        let left = of(left);
        let right = of(right);
        if left.0 > right.1 {
            Some(Ordering::Less)
        } else if right.0 > left.1 {
            Some(Ordering::Greater)
        } else {
            (left.0 == left.1 && left == right).then_some(Ordering::Equal)
        }
    }

    /// Younger first, by order of magnitude; none if that is not beyond doubt.
    fn age(&self, left: Option<Time>, right: Option<Time>) -> Option<Ordering> {
        let (Some(left), Some(right)) = (left, right) else {
            return Some(left.is_some().cmp(&right.is_some()));
        };
        if left == right {
            return Some(Ordering::Equal);
        }
        let age = |time: Time| self.now.unix().saturating_sub(time.unix());
        let left = age(left);
        let right = age(right);
        // Four times as old is another order of magnitude, whenever in a pass the clock was read.
        let slack = crate::world::PASS_SECONDS + self.skew;
        let is_far_older = |old: i64, young: i64| old - slack > 4 * (young + slack);
        if is_far_older(right, left) {
            Some(Ordering::Less)
        } else if is_far_older(left, right) {
            Some(Ordering::Greater)
        } else {
            None
        }
    }
}

/// Since when a ready pod is ready. Pods that are not ready do not differ.
fn ready_since(pod: &Pod) -> Option<Time> {
    pod.ready_since.filter(|_| pod.ready)
}

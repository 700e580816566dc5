//! StatefulSets: the order of their pods, and updates.

use std::sync::Arc;

use steersman_base::ObjectKey;
use steersman_base::names::labels;

use super::availability::count;
use super::replicas::stays;
use super::{Case, Findings, Rest, STATEFUL_SET, Verdict};
use crate::world::{Object, Owner, Phase, StatefulSet};

pub(super) const SETS: &str = "statefulsets.apps";

/// A pod of a StatefulSet that its controller created or deleted, with what is known of the StatefulSet.
struct Pod<'a> {
    pod: &'a Arc<Object>,
    owner: &'a Owner,
    ordinal: i64,
    /// What the StatefulSet was like by what was shown, oldest first; the last one is the present one, if it exists.
    versions: Vec<&'a StatefulSet>,
    now: Option<&'a StatefulSet>,
}

// === impl Pod ===

impl<'a> Pod<'a> {
    fn of(case: &Case<'a>, pod: &'a Arc<Object>) -> Option<Self> {
        if !case.is("pods") || !case.by(&[STATEFUL_SET]) {
            return None;
        }
        let owner = pod.controller()?;
        let ordinal = ordinal(pod, &owner.name)?;
        let key = ObjectKey { namespace: pod.key.namespace.clone(), name: owner.name.clone() };
        let versions = case.window().of_key(SETS, &key)?;
        let mine = |object: &&'a Arc<Object>| object.uid == owner.uid;
        let versions: Vec<_> = versions.objects().flatten().filter(mine).filter_map(|set| set.stateful_set()).collect();
        let now = case.world.by_uid(&owner.uid).and_then(|set| set.stateful_set());
        Some(Self { pod, owner, ordinal, versions, now })
    }

    /// Whether `holds` of each pod of these ordinals at the store.
    fn all(&self, case: &Case<'_>, ordinals: std::ops::Range<i64>, holds: impl Fn(&Object) -> bool) -> bool {
        let mut ordinals = ordinals.filter(|ordinal| *ordinal != self.ordinal);
        ordinals.all(|ordinal| case.world.get("pods", &self.key(ordinal)).is_some_and(|pod| holds(pod)))
    }

    /// Whether `holds` of each pod of these ordinals at some time, by what was shown.
    fn all_shown(&self, case: &Case<'_>, ordinals: std::ops::Range<i64>, holds: impl Fn(&Object) -> bool) -> bool {
        let window = case.window();
        let mut ordinals = ordinals.filter(|ordinal| *ordinal != self.ordinal);
        ordinals.all(|ordinal| {
            let history = case.world.history("pods", &self.key(ordinal));
            history.is_some_and(|history| window.of("pods", history).ever(&holds))
        })
    }

    fn key(&self, ordinal: i64) -> ObjectKey {
        let name = format!("{}-{ordinal}", self.owner.name);
        ObjectKey { namespace: self.pod.key.namespace.clone(), name: name.into() }
    }

    fn is_up(&self) -> impl Fn(&Object) -> bool {
        |pod: &Object| pod.is_controlled_by(&self.owner.uid) && is_up(pod)
    }
}

/// The ordinal of a pod, if its name is one of the StatefulSet's.
fn ordinal(pod: &Object, set: &str) -> Option<i64> {
    pod.key.name.strip_prefix(set)?.strip_prefix('-')?.parse().ok()
}

/// Whether a pod is running and ready, and stays.
fn is_up(pod: &Object) -> bool {
    pod.is_ready_pod() && pod.pod().is_some_and(|pod| pod.phase == Phase::Running)
}

/// "Before a scaling operation is applied to a Pod, all of its predecessors must be Running and Ready." (website:
/// StatefulSets, Deployment and Scaling Guarantees)
///
/// Asked when the StatefulSet controller creates a pod, of a StatefulSet whose pods wait for each other. Judged against
/// the store; staleness excuses predecessors that were running and ready at some time by what was shown, unless the
/// controller has deleted them since.
pub(super) fn pods_start_in_the_order_of_their_ordinals(case: &Case<'_>) -> Verdict {
    let Some(made) = case.created().and_then(|pod| Pod::of(case, pod)) else { return Verdict::NotMine };
    if made.versions.iter().any(|set| set.parallel) {
        return Verdict::NotMine;
    }
    let at_store = made.now.is_some_and(|set| made.all(case, set.start..made.ordinal, made.is_up()));
    let start = made.versions.iter().map(|set| set.start).max().unwrap_or(0);
    let as_shown = || made.all_shown(case, start..made.ordinal, made.is_up());
    Verdict::judge(at_store, as_shown, || format!("{} is created before all pods in front of it are ready", made.pod))
}

/// "all Pods with an ordinal that is greater than or equal to the partition will be updated when the StatefulSet's
/// `.spec.template` is updated. All Pods with an ordinal that is less than the partition will not be updated, and, even
/// if they are deleted, they will be recreated at the previous version." (website: StatefulSets, Partitioned rolling
/// updates)
///
/// Asked when the StatefulSet controller creates a pod below the partition: it is of the current revision. Judged
/// against the StatefulSet as it was shown at any time.
pub(super) fn ordinals_below_the_partition_keep_their_revision(case: &Case<'_>) -> Verdict {
    let Some(made) = case.created().and_then(|pod| Pod::of(case, pod)) else { return Verdict::NotMine };
    let is_below = |set: &&StatefulSet| set.rolling && !set.updates(made.ordinal);
    // Before the first status there is one revision.
    let is_known = |set: &&StatefulSet| !set.status.current_revision.is_empty();
    if made.versions.is_empty() || !made.versions.iter().all(|set| is_below(set) && is_known(set)) {
        return Verdict::NotMine;
    }
    let revision = made.pod.labels.get(labels::CONTROLLER_REVISION_HASH);
    let is_of = |set: &&StatefulSet| revision.is_some_and(|revision| *revision == set.status.current_revision);
    let at_store = made.now.as_ref().is_some_and(is_of);
    let as_shown = || made.versions.iter().any(is_of);
    Verdict::judge(at_store, as_shown, || {
        let known: Vec<_> = made.versions.iter().map(|set| &set.status.current_revision).collect();
        format!("{} is below the partition and of the revision {revision:?}; the current ones were {known:?}", made.pod)
    })
}

/// "When Pods are being deleted, they are terminated in reverse order, from {N-1..0}." "Before a Pod is terminated, all
/// of its successors must be completely shutdown." (website: StatefulSets, Deployment and Scaling Guarantees)
///
/// Asked when the StatefulSet controller deletes an active pod that is not wanted any more, of a StatefulSet whose pods
/// wait for each other: there is none with a higher ordinal, and those that stay are running and ready. Judged against
/// the store; staleness excuses what was so at some time by what was shown.
pub(super) fn surplus_ordinals_go_from_the_highest_down(case: &Case<'_>) -> Verdict {
    let Some(gone) = case.deleted().filter(|pod| pod.is_active_pod()).and_then(|pod| Pod::of(case, pod)) else {
        return Verdict::NotMine;
    };
    if gone.versions.is_empty() || gone.versions.iter().any(|set| set.parallel || set.wants(gone.ordinal)) {
        return Verdict::NotMine;
    }
    let is_surplus = |ordinal: i64| !gone.versions.iter().any(|set| set.wants(ordinal));
    let is_higher = |pod: &Object| {
        let ordinal = ordinal(pod, &gone.owner.name);
        pod.is_controlled_by(&gone.owner.uid) && ordinal.is_some_and(|other| other > gone.ordinal && is_surplus(other))
    };
    let stay = |set: &StatefulSet| set.start..set.start + set.replicas;
    let is_last = !case.world.controlled("pods", &gone.owner.uid).any(|pod| is_higher(pod));
    let at_store = is_last && gone.now.is_some_and(|set| gone.all(case, stay(set), gone.is_up()));
    let window = case.window();
    let as_shown = || {
        let mut others = case.world.histories("pods", &gone.owner.uid);
        let is_last = !others.any(|history| window.of("pods", history).always(is_higher));
        is_last && gone.versions.iter().any(|set| gone.all_shown(case, stay(set), gone.is_up()))
    };
    Verdict::judge(at_store, as_shown, || {
        format!("{} is deleted while one behind it is there, or one that stays is not ready", gone.pod)
    })
}

/// "The maximum number of pods that can be unavailable during the update." (RollingUpdateStatefulSetStrategy,
/// maxUnavailable) "When a StatefulSet's `.spec.updateStrategy.type` is set to `OnDelete`, the StatefulSet controller will
/// not automatically update the Pods in a StatefulSet." (website: StatefulSets, Update strategies)
///
/// Asked when the StatefulSet controller deletes an active pod that is wanted: its ordinal is updated, and with it at
/// most `maxUnavailable` wanted pods are unavailable, or it was unavailable itself. Judged against the store; staleness
/// excuses what was right for the StatefulSet and the other pods as shown, but for what the controller deleted itself.
pub(super) fn stateful_updates_keep_their_available_pods(case: &Case<'_>) -> Verdict {
    let Some(gone) = case.deleted().filter(|pod| pod.is_active_pod()).and_then(|pod| Pod::of(case, pod)) else {
        return Verdict::NotMine;
    };
    if gone.versions.is_empty() || !gone.versions.iter().all(|set| set.wants(gone.ordinal)) {
        return Verdict::NotMine;
    }
    let latest = case.latest();
    let earliest = case.earliest();
    let counts = |set: &StatefulSet, pod: &Object| {
        pod.is_controlled_by(&gone.owner.uid) && pod.is_available_pod(set.min_ready, latest)
    };
    let others = |set: &StatefulSet| (set.start..set.start + set.replicas).filter(|ordinal| *ordinal != gone.ordinal);
    let missing = |set: &StatefulSet| {
        let is_missing = |ordinal: &i64| {
            let pod = case.world.get("pods", &gone.key(*ordinal));
            !pod.is_some_and(|pod| counts(set, pod))
        };
        i64::try_from(others(set).filter(is_missing).count()).unwrap_or(i64::MAX)
    };
    let gone_was = |holds: &dyn Fn(&Object) -> bool| {
        case.window().of_key("pods", &gone.pod.key).is_none_or(|versions| {
            let mut here = versions.objects().flatten().filter(|pod| pod.uid == gone.pod.uid && !pod.is_terminating());
            here.all(|pod| holds(pod))
        })
    };
    let may = |set: &StatefulSet, missing: i64| {
        let serves = gone_was(&|pod: &Object| pod.is_available_pod(set.min_ready, earliest));
        set.updates(gone.ordinal) && (!serves || missing < set.unavailable)
    };
    let at_store = gone.now.is_some_and(|set| may(set, missing(set)));
    let window = case.window();
    let as_shown = || {
        gone.versions.iter().any(|set| {
            let is_missing = |ordinal: &i64| {
                let history = case.world.history("pods", &gone.key(*ordinal));
                !history.is_some_and(|history| window.of("pods", history).ever(|pod| counts(set, pod)))
            };
            let missing = others(set).filter(is_missing).count();
            may(set, i64::try_from(missing).unwrap_or(i64::MAX))
        })
    };
    Verdict::judge(at_store, as_shown, || match gone.now {
        Some(set) => format!(
            "{} is deleted: {} others of {} are unavailable, at most {} may be, and ordinals from {} on are updated ({})",
            gone.pod,
            missing(set),
            set.replicas,
            set.unavailable,
            set.start + set.partition,
            if set.rolling { "RollingUpdate" } else { "OnDelete" }
        ),
        None => format!("{} is deleted, and its StatefulSet is gone", gone.pod),
    })
}

/// StatefulSets that have a controller.
fn sets<'a>(rest: &Rest<'a>) -> impl Iterator<Item = (&'a Arc<Object>, &'a StatefulSet)> {
    let runs = rest.options.runs(STATEFUL_SET);
    let world = rest.world;
    let sets = world.all(SETS).filter(move |set| runs && !set.is_terminating());
    sets.filter_map(|object| Some((object, object.stateful_set()?))).filter(|(_, set)| set.selector.is_some())
}

/// Whether a pod of the StatefulSet cannot be ready, another's pod has the name of one, or one was adopted without the
/// volumes of its claims, which no write can give it: then those behind it may have to wait.
fn is_stuck(rest: &Rest<'_>, object: &Object, set: &StatefulSet) -> bool {
    let is_taken = |ordinal: i64| {
        let name = format!("{}-{ordinal}", object.key.name);
        let key = ObjectKey { namespace: object.key.namespace.clone(), name: name.into() };
        rest.world.get("pods", &key).is_some_and(|pod| !pod.is_controlled_by(&object.uid))
    };
    let lacks_claims = |pod: &Arc<Object>| {
        let uses = |claim: &steersman_base::Istr| {
            let name = format!("{claim}-{}", pod.key.name);
            pod.pod().is_some_and(|pod| pod.claims.iter().any(|used| **used == *name))
        };
        !set.claims.iter().all(uses)
    };
    rest.world.controlled("pods", &object.uid).any(|pod| !is_up(pod) || lacks_claims(pod))
        || (set.start..set.start + set.replicas).any(is_taken)
}

/// "For a StatefulSet with N replicas, each Pod in the StatefulSet will be assigned an integer ordinal, that is unique
/// over the Set." (website: StatefulSets, Ordinal Index)
///
/// At rest: each ordinal has its active pod with its claims, and no other has one. Excused is a StatefulSet with a pod
/// that is never ready, whose name is another's, or that was adopted without its volumes, and one in a namespace that goes.
pub(super) fn every_ordinal_has_its_pod(rest: &Rest<'_>, found: &mut Findings) {
    for (object, set) in sets(rest) {
        let pods = rest.world.controlled("pods", &object.uid).filter(|pod| pod.is_active_pod());
        let mut have: Vec<_> = pods.filter_map(|pod| ordinal(pod, &object.key.name)).collect();
        have.sort_unstable();
        let want: Vec<i64> = (set.start..set.start + set.replicas).collect();
        let is_claimed = |(ordinal, claim): (&i64, &steersman_base::Istr)| {
            let name = format!("{claim}-{}-{ordinal}", object.key.name);
            let key = ObjectKey { namespace: object.key.namespace.clone(), name: name.into() };
            rest.world.get("persistentvolumeclaims", &key).is_some_and(|claim| !claim.is_terminating())
        };
        let has_claims =
            want.iter().flat_map(|ordinal| set.claims.iter().map(move |claim| (ordinal, claim))).all(is_claimed);
        let is_right = have == want && has_claims;
        if !is_right && (!stays(rest, object) || is_stuck(rest, object, set)) {
            found.excuse();
            continue;
        }
        found.expect(is_right, || {
            format!("{object} should have the pods {want:?} and has {have:?}; all claims are there: {has_claims}")
        });
    }
}

/// "the controller will delete and recreate each Pod in the StatefulSet." (website: StatefulSets, Rolling Updates)
///
/// At rest: each pod whose ordinal is updated is of the present template. Excused is a StatefulSet with a pod that is
/// never ready, and one in a namespace that goes.
pub(super) fn stateful_sets_are_rolled_out(rest: &Rest<'_>, found: &mut Findings) {
    for (object, set) in sets(rest) {
        for pod in rest.world.controlled("pods", &object.uid).filter(|pod| pod.is_active_pod()) {
            if !ordinal(pod, &object.key.name).is_some_and(|ordinal| set.updates(ordinal)) {
                continue;
            }
            let image = pod.pod().map(|pod| &pod.image);
            let revision = pod.labels.get(labels::CONTROLLER_REVISION_HASH);
            let is_new = image == Some(&set.image) && revision == Some(&set.status.update_revision);
            if !is_new && (!stays(rest, object) || is_stuck(rest, object, set)) {
                found.excuse();
                continue;
            }
            found.expect(is_new, || {
                format!(
                    "{pod} has {image:?} of {revision:?}; {object} has {:?} of {:?}",
                    set.image, set.status.update_revision
                )
            });
        }
    }
}

/// "replicas is the number of Pods created by the StatefulSet controller." (StatefulSetStatus, replicas)
///
/// At rest: the counts are those of the pods, and the present generation was observed.
pub(super) fn statuses_of_stateful_sets_are_true_at_rest(rest: &Rest<'_>, found: &mut Findings) {
    for (object, set) in sets(rest).filter(|(object, _)| stays(rest, object)) {
        let pods = || rest.world.controlled("pods", &object.uid).filter(|pod| pod.is_active_pod());
        let update = &set.status.update_revision;
        let is_updated = |pod: &&Arc<Object>| pod.labels.get(labels::CONTROLLER_REVISION_HASH) == Some(update);
        let there = (
            count(pods().count()),
            count(pods().filter(|pod| is_up(pod)).count()),
            count(pods().filter(is_updated).count()),
        );
        let status = &set.status;
        let told = (status.replicas, status.ready, status.updated);
        let is_true = told == there && status.observed == object.generation;
        found.expect(is_true, || {
            format!(
                "{object} says {told:?} pods, ready, updated, generation {}; there are {there:?}, generation {}",
                status.observed, object.generation
            )
        });
    }
}

/// "PVC removal is postponed until the PVC is no longer actively used by any Pods." (website: Persistent Volumes, Storage
/// Object in Use Protection)
///
/// At rest: no claim is terminating that no pod names.
pub(super) fn claims_that_nobody_uses_are_let_go(rest: &Rest<'_>, found: &mut Findings) {
    for claim in rest.world.all("persistentvolumeclaims") {
        if !claim.is_terminating() {
            found.count.checked += 1;
            continue;
        }
        let is_used = rest.world.content(&claim.key.namespace).filter(|object| object.pod().is_some()).any(|pod| {
            let raw = rest.world.raw("pods", &pod.key);
            let volumes = raw.and_then(|raw| raw["spec"]["volumes"].as_array()).into_iter().flatten();
            let mut names = volumes.map(|volume| &volume["persistentVolumeClaim"]["claimName"]);
            names.any(|name| name.as_str() == Some(&*claim.key.name))
        });
        found.expect(is_used, || format!("{claim} is terminating with {:?}, and no pod uses it", claim.finalizers));
    }
}

//! DaemonSets: a pod per node, and updates.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use steersman_base::{Istr, ObjectKey};

use super::availability::count;
use super::replicas::stays;
use super::{Case, DAEMON_SET, Findings, Rest, Verdict};
use crate::world::{DaemonSet, Object, Owner, Phase, Place};

pub(super) const SETS: &str = "daemonsets.apps";

/// A pod of a DaemonSet that its controller created or deleted, with what is known of the DaemonSet.
struct Pod<'a> {
    pod: &'a Arc<Object>,
    owner: &'a Owner,
    node: &'a Istr,
    /// What the DaemonSet was like by what was shown, oldest first.
    versions: Vec<&'a DaemonSet>,
    now: Option<&'a DaemonSet>,
}

// === impl Pod ===

impl<'a> Pod<'a> {
    fn of(case: &Case<'a>, pod: &'a Arc<Object>) -> Option<Self> {
        if !case.is("pods") || !case.by(&[DAEMON_SET]) {
            return None;
        }
        let owner = pod.controller()?;
        let key = ObjectKey { namespace: pod.key.namespace.clone(), name: owner.name.clone() };
        let versions = case.window().of_key(SETS, &key)?;
        let mine = |object: &&'a Arc<Object>| object.uid == owner.uid;
        let versions: Vec<_> = versions.objects().flatten().filter(mine).filter_map(|set| set.daemon_set()).collect();
        let now = case.world.by_uid(&owner.uid).filter(|set| !set.is_terminating()).and_then(|set| set.daemon_set());
        Some(Self { pod, owner, node: &pod.pod()?.made_for, versions, now })
    }

    /// Whether it is another pod of the DaemonSet on the same node.
    fn is_beside(&self, pod: &Object) -> bool {
        pod.uid != self.pod.uid && pod.is_controlled_by(&self.owner.uid) && on(pod) == Some(self.node)
    }

    /// How many nodes there are at most that run a pod of the DaemonSet, by the store.
    fn desired(&self, case: &Case<'_>, set: &DaemonSet) -> i32 {
        count(case.world.all("nodes").filter(|node| set.place(node) == Place::Run).count())
    }

    /// Whether the node has this place for some version of both, by what was shown.
    fn ever_placed(&self, case: &Case<'_>, wanted: &[Place]) -> bool {
        let nodes = case.window().of_key("nodes", &ObjectKey::cluster(self.node));
        // A node that was not there is no place.
        let Some(nodes) = nodes else { return wanted.contains(&Place::Leave) };
        nodes.objects().any(|node| match node {
            Some(node) => self.versions.iter().any(|set| wanted.contains(&set.place(node))),
            None => wanted.contains(&Place::Leave),
        })
    }
}

fn on(pod: &Object) -> Option<&Istr> {
    pod.pod().map(|pod| &pod.made_for)
}

fn runs(pod: &Object) -> bool {
    pod.pod().is_some_and(|pod| pod.phase != Phase::Ended)
}

/// "A DaemonSet ensures that all (or some) Nodes run a copy of a Pod." (website: DaemonSet) "The maximum number of nodes
/// with an existing available DaemonSet pod that can have an updated DaemonSet pod during during an update."
/// (RollingUpdateDaemonSet, maxSurge)
///
/// Asked when the DaemonSet controller creates a pod: no other one of it is on the node; with `maxSurge` at most one that
/// stays. Judged against the store; staleness excuses pods that were not there, or had ended, at some time by what was
/// shown, unless the controller made them itself.
pub(super) fn a_node_has_one_pod_of_a_daemon_set(case: &Case<'_>) -> Verdict {
    let Some(made) = case.created().and_then(|pod| Pod::of(case, pod)) else { return Verdict::NotMine };
    let counts = |surge: bool, pod: &Object| made.is_beside(pod) && runs(pod) && !(surge && pod.is_terminating());
    let at_store = made.now.is_some_and(|set| {
        let surge = set.surge(1) > 0;
        let beside = case.world.controlled("pods", &made.owner.uid).filter(|pod| counts(surge, pod)).count();
        beside <= usize::from(surge)
    });
    let window = case.window();
    let as_shown = || {
        made.versions.iter().any(|set| {
            let surge = set.surge(1) > 0;
            let histories = case.world.histories("pods", &made.owner.uid);
            let beside = histories.filter(|history| window.of("pods", history).always(|pod| counts(surge, pod)));
            beside.count() <= usize::from(surge)
        })
    };
    Verdict::judge(at_store, as_shown, || {
        let beside: Vec<_> = case.world.controlled("pods", &made.owner.uid).filter(|pod| made.is_beside(pod)).collect();
        let beside: Vec<_> = beside.iter().map(|pod| pod.key.name.to_string()).collect();
        format!("{} is created for node {}, beside {}", made.pod, made.node, beside.join(", "))
    })
}

/// "If you specify a `.spec.template.spec.nodeSelector`, then the DaemonSet controller will create Pods on nodes which
/// match that node selector." (website: DaemonSet, Running Pods on select Nodes)
///
/// Asked when the DaemonSet controller creates a pod: its node is there, has the labels that the template selects, and no
/// taint that the pod does not bear. Judged against the store; staleness excuses what was so at some time by what was shown.
pub(super) fn daemons_start_where_they_should_run(case: &Case<'_>) -> Verdict {
    let Some(made) = case.created().and_then(|pod| Pod::of(case, pod)) else { return Verdict::NotMine };
    let node = case.world.get("nodes", &ObjectKey::cluster(made.node));
    let at_store = made.now.zip(node).is_some_and(|(set, node)| set.place(node) == Place::Run);
    let as_shown = || made.ever_placed(case, &[Place::Run]);
    Verdict::judge(at_store, as_shown, || {
        format!("{} is created for node {}, which should have none", made.pod, made.node)
    })
}

/// "The maximum number of nodes with an existing available DaemonSet pod that can have an updated DaemonSet pod during
/// during an update." (RollingUpdateDaemonSet, maxSurge)
///
/// Asked when the DaemonSet controller creates a pod beside an available one: with it, no more than `maxSurge` nodes have
/// a second pod that is not available yet. Judged against the store; staleness excuses what was right for the limit and the
/// pods as shown, but for those that the controller made itself.
pub(super) fn no_more_nodes_surge_than_may(case: &Case<'_>) -> Verdict {
    let Some(made) = case.created().and_then(|pod| Pod::of(case, pod)) else { return Verdict::NotMine };
    let Some(set) = made.now else { return Verdict::NotMine };
    let serves = |pod: &Object| pod.is_available_pod(set.min_ready, case.earliest());
    let may_serve = |pod: &Object| pod.is_available_pod(set.min_ready, case.latest());
    let pods = || case.world.controlled("pods", &made.owner.uid).filter(|pod| pod.is_active_pod());
    let serving: BTreeSet<_> = pods().filter(|pod| serves(pod)).filter_map(|pod| on(pod)).collect();
    if !serving.contains(made.node) {
        return Verdict::NotMine;
    }
    let surging = |pod: &Object| !may_serve(pod) && on(pod).is_some_and(|node| serving.contains(node));
    let have = count(pods().filter(|pod| surging(pod)).count());
    let may = set.surge(made.desired(case, set));
    let window = case.window();
    let as_shown = || {
        let all = count(case.world.all_histories("nodes").count());
        let may = made.versions.iter().map(|set| set.surge(all)).max().unwrap_or(0);
        let certain = case.world.histories("pods", &made.owner.uid).filter(|history| {
            history.now().is_some_and(|pod| pod.is_active_pod() && surging(pod))
                && window.of("pods", history).always(|pod| pod.is_active_pod() && !may_serve(pod))
        });
        let never_served = |node: &&Istr| {
            let mut beside = case.world.histories("pods", &made.owner.uid);
            !beside.any(|history| window.of("pods", history).always(|pod| serves(pod) && on(pod) == Some(*node)))
        };
        let certain = certain.filter_map(|history| history.now().and_then(|pod| on(pod)));
        count(certain.filter(|node| !never_served(node)).count()) <= may
    };
    Verdict::judge(have <= may, as_shown, || {
        format!("{} is created for node {}: {have} nodes have a second pod, {may} may", made.pod, made.node)
    })
}

/// "The maximum number of DaemonSet pods that can be unavailable during the update." (RollingUpdateDaemonSet,
/// maxUnavailable) "OnDelete: after you update a DaemonSet template, new DaemonSet pods will only be created when you
/// manually delete old DaemonSet pods." (website: Perform a Rolling Update on a DaemonSet)
///
/// Asked when the DaemonSet controller deletes an available pod that should run on its node: another one serves there, or
/// at most `maxUnavailable` nodes are without an available pod then. Judged against the store; staleness excuses what was
/// right for the DaemonSet, the nodes and the other pods as shown, but for pods that the controller deleted itself.
pub(super) fn daemon_updates_keep_their_available_pods(case: &Case<'_>) -> Verdict {
    let Some(gone) = case.deleted().filter(|pod| pod.is_active_pod()).and_then(|pod| Pod::of(case, pod)) else {
        return Verdict::NotMine;
    };
    let serves = |set: &DaemonSet, pod: &Object| pod.is_available_pod(set.min_ready, case.latest());
    let versions = case.window().of_key("pods", &gone.pod.key);
    let has_served = |set: &&DaemonSet| {
        let here = versions.iter().flat_map(|versions| versions.objects().flatten());
        let mut here = here.filter(|pod| pod.uid == gone.pod.uid && !pod.is_terminating());
        here.all(|pod| pod.is_available_pod(set.min_ready, case.earliest()))
    };
    if !gone.versions.iter().all(has_served) || gone.ever_placed(case, &[Place::Leave, Place::GoOn]) {
        return Verdict::NotMine;
    }
    let at_node = |set: &DaemonSet, node: &Istr, pod: &Object| {
        pod.uid != gone.pod.uid && pod.is_controlled_by(&gone.owner.uid) && on(pod) == Some(node) && serves(set, pod)
    };
    let runs_beside = |pod: &Object| gone.is_beside(pod) && pod.is_active_pod();
    // Of several pods the oldest stays, available or not.
    let is_duplicate = case.world.controlled("pods", &gone.owner.uid).any(|pod| runs_beside(pod));
    let missing = |set: &DaemonSet| {
        let nodes = case.world.all("nodes").filter(|node| set.place(node) == Place::Run);
        let served = |node: &Istr| case.world.controlled("pods", &gone.owner.uid).any(|pod| at_node(set, node, pod));
        count(nodes.filter(|node| !served(&node.key.name)).count())
    };
    let may = |set: &DaemonSet, missing: i32, nodes: i32| {
        set.rolling && (missing <= set.unavailable(nodes) && set.surge(nodes) == 0)
    };
    let at_store = is_duplicate || gone.now.is_some_and(|set| may(set, missing(set), gone.desired(case, set)));
    let window = case.window();
    let as_shown = || {
        let mut histories = case.world.histories("pods", &gone.owner.uid);
        if histories.any(|history| window.of("pods", history).ever(runs_beside)) {
            return true;
        }
        let mut served: BTreeMap<&Istr, bool> = BTreeMap::new();
        gone.versions.iter().any(|set| {
            served.clear();
            for history in case.world.histories("pods", &gone.owner.uid) {
                for pod in window.of("pods", history).objects().flatten() {
                    if let Some(node) = on(pod).filter(|node| at_node(set, node, pod)) {
                        served.insert(node, true);
                    }
                }
            }
            let nodes = case.world.all_histories("nodes");
            let certain = nodes.filter(|history| {
                let versions = window.all_of("nodes", history);
                versions.always(|node| set.place(node) == Place::Run)
            });
            let certain: Vec<&Istr> = certain.filter_map(|history| history.now()).map(|node| &node.key.name).collect();
            let missing = certain.iter().filter(|node| !served.contains_key(**node)).count();
            let all = count(case.world.all_histories("nodes").count());
            may(set, count(missing), all)
        })
    };
    Verdict::judge(at_store, as_shown, || match gone.now {
        Some(set) => {
            let nodes = gone.desired(case, set);
            format!(
                "{} is deleted on node {}: {} of {nodes} nodes have no available pod, {} may have none",
                gone.pod,
                gone.node,
                missing(set),
                set.unavailable(nodes)
            )
        }
        None => format!("{} is deleted, and its DaemonSet is gone or terminating", gone.pod),
    })
}

/// DaemonSets that have a controller.
fn sets<'a>(rest: &Rest<'a>) -> impl Iterator<Item = (&'a Arc<Object>, &'a DaemonSet)> {
    let runs = rest.options.runs(DAEMON_SET);
    let world = rest.world;
    let sets = world.all(SETS).filter(move |set| runs && !set.is_terminating());
    sets.filter_map(|object| Some((object, object.daemon_set()?))).filter(|(_, set)| set.selector.is_some())
}

/// "As nodes are added to the cluster, Pods are added to them. As nodes are removed from the cluster, those Pods are
/// garbage collected." (website: DaemonSet)
///
/// At rest: each node that should run a pod has one, which is of the present template unless it is replaced `OnDelete`; other
/// nodes have none, but where a taint came later. Excused are DaemonSets in namespaces that go, and pods that are older than
/// the DaemonSet: an adopted pod counts as one of the template if the number of its template is the same, as upstream.
pub(super) fn every_node_has_its_daemons(rest: &Rest<'_>, found: &mut Findings) {
    for (object, set) in sets(rest) {
        let pods = || rest.world.controlled("pods", &object.uid).filter(|pod| pod.is_active_pod());
        for node in rest.world.all("nodes") {
            let here: Vec<_> = pods().filter(|pod| on(pod) == Some(&node.key.name)).collect();
            let is_new = |pod: &&&Arc<Object>| pod.pod().is_some_and(|pod| pod.image == set.image);
            let is_right = match set.place(node) {
                Place::Run if set.rolling => here.len() == 1 && here.iter().all(|pod| is_new(&pod)),
                Place::Run => here.len() == 1,
                Place::GoOn => here.len() <= 1,
                Place::Leave => here.is_empty(),
            };
            let is_adopted = |pod: &Arc<Object>| pod.created < object.created;
            let is_excused = !stays(rest, object) || here.len() == 1 && here.iter().all(|pod| is_adopted(pod));
            if !is_right && is_excused {
                found.excuse();
                continue;
            }
            found.expect(is_right, || {
                let new = here.iter().filter(is_new).count();
                format!(
                    "{object} has {} pods on node {}, {new} of the template; it is {:?}",
                    here.len(),
                    node.key.name,
                    set.place(node)
                )
            });
        }
    }
}

/// "The total number of nodes that should be running the daemon pod (including nodes correctly running the daemon pod)."
/// (DaemonSetStatus, desiredNumberScheduled)
///
/// At rest: the counts are those of the nodes and pods, and the present generation was observed.
pub(super) fn statuses_of_daemon_sets_are_true_at_rest(rest: &Rest<'_>, found: &mut Findings) {
    for (object, set) in sets(rest).filter(|(object, _)| stays(rest, object)) {
        let desired: BTreeSet<_> =
            rest.world.all("nodes").filter(|node| set.place(node) == Place::Run).map(|node| &node.key.name).collect();
        let pods = || rest.world.controlled("pods", &object.uid).filter(|pod| pod.is_active_pod());
        // On each node the oldest one counts.
        let mut first: BTreeMap<&Istr, &Arc<Object>> = BTreeMap::new();
        for pod in pods() {
            let Some(node) = on(pod).filter(|node| desired.contains(node)) else { continue };
            let age =
                |pod: &Object| (pod.pod().is_some_and(|pod| pod.node.is_empty()), pod.created, pod.key.name.clone());
            let oldest = first.entry(node).or_insert(pod);
            if age(pod) < age(oldest) {
                *oldest = pod;
            }
        }
        let ready = count(first.values().filter(|pod| pod.is_ready_pod()).count());
        let there = (count(desired.len()), count(first.len()), ready);
        let told = (set.status.desired, set.status.current, set.status.ready);
        let is_true = told == there && set.status.observed == object.generation;
        found.expect(is_true, || {
            format!(
                "{object} says {told:?} nodes, pods, ready, generation {}; there are {there:?}, generation {}",
                set.status.observed, object.generation
            )
        });
    }
}

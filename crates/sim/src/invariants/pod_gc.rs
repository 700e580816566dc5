//! Pods that no kubelet will end, and no others.

use steersman_base::ObjectKey;

use super::{Case, Findings, POD_GC, Rest, Verdict};
use crate::world::{Object, Phase};

/// "Additionally, PodGC cleans up any Pods which satisfy any of the following conditions: are orphan Pods - bound to a
/// node which no longer exists, are unscheduled terminating Pods, are terminating Pods, bound to a non-ready node
/// tainted with `node.kubernetes.io/out-of-service`." (website: Pod Lifecycle)
///
/// Asked when the pod garbage collector ends or deletes a pod that has not ended: one of the three holds. Judged
/// against the store; staleness excuses a node that was gone or out of service at some time by what was shown.
pub(super) fn running_pods_on_living_nodes_are_left_alone(case: &Case<'_>) -> Verdict {
    if !case.is("pods") || !case.by(&[POD_GC]) {
        return Verdict::NotMine;
    }
    let Some((before, pod)) = case.step.before.as_ref().and_then(|before| Some((before, before.pod()?))) else {
        return Verdict::NotMine;
    };
    if pod.phase == Phase::Ended {
        return Verdict::NotMine;
    }
    let node = ObjectKey::cluster(&pod.node);
    let is_down = |node: &Object| node.node().is_some_and(|node| !node.ready && node.out_of_service);
    let may_go = |node: Option<&Object>| match node {
        _ if pod.node.is_empty() => before.is_terminating(),
        None => true,
        Some(node) => before.is_terminating() && is_down(node),
    };
    let at_store = may_go(case.world.get("nodes", &node).map(|node| &**node));
    let window = case.window();
    let as_shown = || {
        let versions = window.of_key("nodes", &node);
        versions.is_none_or(|versions| versions.objects().any(|node| may_go(node.map(|node| &**node))))
    };
    Verdict::judge(at_store, as_shown, || {
        let state = if before.is_terminating() { "terminating" } else { "not terminating" };
        format!("{before} is ended; it is {state}, and its node {:?} is there", pod.node.as_str())
    })
}

/// "Number of terminated pods that can exist before the terminated pod garbage collector starts deleting terminated
/// pods." (kube-controller-manager, --terminated-pod-gc-threshold)
///
/// Asked when the pod garbage collector deletes a pod that has ended, is not terminating, and whose node is there:
/// there were more than the threshold; within a pass, as many as were too many go. Judged against the store; staleness
/// excuses pods that were there and had ended at some time by what was shown.
pub(super) fn ended_pods_are_kept_up_to_the_threshold(case: &Case<'_>) -> Verdict {
    let Some(before) = case.deleted().filter(|_| case.is("pods") && case.by(&[POD_GC])) else {
        return Verdict::NotMine;
    };
    let Some(pod) = before.pod().filter(|pod| pod.phase == Phase::Ended) else { return Verdict::NotMine };
    let node = case.world.history("nodes", &ObjectKey::cluster(&pod.node));
    let had_node = node.is_some_and(|node| case.window().of("nodes", node).always(|_| true));
    if pod.node.is_empty() || !had_node {
        return Verdict::NotMine;
    }
    let left = case.world.ended_pods();
    let max = case.options.ended_pods_max;
    let window = case.window();
    // Those that are terminating count, as upstream: a finalizer may keep them.
    let has_ended = |pod: &Object| pod.pod().is_some_and(|pod| pod.phase == Phase::Ended);
    let as_shown = || {
        let shown = case.world.all_histories("pods").filter(|history| window.of("pods", history).ever(has_ended));
        // The deleted one is among them.
        shown.count() > max
    };
    // The deleted pod may be there still, held by a finalizer.
    Verdict::judge(left >= max, as_shown, || {
        format!("{before} has ended and is deleted, and {left} are left of {max} that may be kept")
    })
}

/// PodGC cleans up Pods that "are orphan Pods - bound to a node which no longer exists". (website: Pod Lifecycle)
///
/// At rest. What only a finalizer keeps is left out.
pub(super) fn no_pod_waits_for_a_node_that_is_gone(rest: &Rest<'_>, found: &mut Findings) {
    if !rest.options.runs(POD_GC) {
        return;
    }
    for object in rest.world.all("pods") {
        let Some(pod) = object.pod() else { continue };
        let is_there = rest.world.get("nodes", &ObjectKey::cluster(&pod.node)).is_some();
        let waits = if pod.node.is_empty() { object.is_terminating() } else { !is_there };
        let is_held = object.is_terminating() && !object.finalizers.is_empty();
        found.expect(!waits || is_held, || {
            format!("{object} is bound to {:?}, which is gone, or was never bound", pod.node.as_str())
        });
    }
}

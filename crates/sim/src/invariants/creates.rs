//! Nothing is made twice, over the whole run.

use super::surge::{created_pod, is_needed_as_shown};
use super::{Case, DEPLOYMENT, Verdict};

/// "A ReplicaSet ensures that a specified number of pod replicas are running at any given time." (website: ReplicaSet)
///
/// A ledger is kept per owner: each time a pod goes missing (more are wanted; one ended, was deleted, or was let go),
/// one more may be created, and never more in all. A duplicate counts even if it is deleted later. Judged against the
/// store over the whole run; staleness excuses a manager whose caches did not show the others' pods, never one that
/// made them itself.
pub(super) fn at_most_the_needed_pods_are_created(case: &Case<'_>) -> Verdict {
    let Some((pod, owner)) = created_pod(case) else { return Verdict::NotMine };
    Verdict::judge(
        case.memory.overrun == 0,
        || is_needed_as_shown(case),
        || {
            format!(
                "{pod} is created for {} {}: more pods have been created for it than have ever been missing",
                owner.kind, owner.name
            )
        },
    )
}

/// "This label ensures that child ReplicaSets of a Deployment do not overlap." (website: Deployments, Pod-template-hash
/// label) A ReplicaSet of the present template is used, and none is created beside it. Follows `getNewReplicaSet` in
/// `sync.go` of Kubernetes 1.37.
///
/// Asked when the Deployment controller makes a ReplicaSet: no other one that it controls may have the same template.
/// Judged against the store; staleness excuses one that was not there all the time by what was shown, unless the
/// controller made it.
pub(super) fn a_template_has_one_replica_set(case: &Case<'_>) -> Verdict {
    if !case.is("replicasets.apps") || !case.by(&[DEPLOYMENT]) {
        return Verdict::NotMine;
    }
    let Some((made, owner)) = case.created().and_then(|made| Some((made, made.controller()?))) else {
        return Verdict::NotMine;
    };
    let Some(template) = made.set().map(|set| set.template) else { return Verdict::NotMine };
    let window = case.window();
    let mut verdict = Verdict::Holds;
    for history in case.world.histories("replicasets.apps", &owner.uid) {
        let Some(other) = history.now().filter(|other| other.uid != made.uid && other.is_controlled_by(&owner.uid))
        else {
            continue;
        };
        if other.set().is_none_or(|set| set.template != template) {
            continue;
        }
        let versions = window.of("replicasets.apps", history);
        if versions
            .always(|set| set.is_controlled_by(&owner.uid) && set.set().is_some_and(|set| set.template == template))
        {
            return Verdict::Violated(format!(
                "{made} is made for Deployment {}, and {other} has that template",
                owner.name
            ));
        }
        verdict = Verdict::Stale;
    }
    verdict
}

//! How pods are counted: once, whatever happens between the two writes.

use super::*;
use crate::job::plan::{End as Result_, Verdict};
use crate::job::status::{Progress, Suspension, Tracking, finished, settle, track, tracked};
use crate::job::tally::tally;
use crate::job::{Options, UNCOUNTED_MAX};
use crate::test_objects::now;

fn verdict(end: Result_) -> Verdict {
    Verdict { end, reason: "Reason".into(), message: "A message".into() }
}

fn progress(verdict: Option<Verdict>) -> Progress {
    let start = Some(at("2026-11-15T11:00:00Z"));
    Progress { active: 1, start, is_managed: verdict.is_none(), verdict, ..Progress::default() }
}

fn tracking(job: &JobView, pods: &[Arc<PodView>], progress: &Progress) -> Tracking {
    let tally = tally(job, pods, Some(Record::default()));
    track(job, pods, &tally, progress, Options::default(), now())
}

/// Returns succeeded, failed, and the lists of pods that are not counted yet.
fn suspension(tracking: &Tracking) -> String {
    let status = &tracking.status;
    let uncounted = status.uncounted_terminated_pods.clone().unwrap_or_default();
    let list = |uids: &[steersman_base::Uid]| uids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let release: Vec<&str> = tracking.release.iter().map(|pod| &*pod.meta().name).collect();
    format!(
        "{}/{} noted [{}]/[{}] release [{}]",
        status.succeeded,
        status.failed,
        list(&uncounted.succeeded),
        list(&uncounted.failed),
        release.join(" ")
    )
}

#[test]
fn ended_pods_are_noted_before_they_lose_their_finalizer() {
    let check = |name: &str, job: JobView, pods: &[Arc<PodView>], verdict: Option<Verdict>, want: &str| {
        assert_eq!(suspension(&tracking(&job, pods, &progress(verdict))), want, "{name}");
    };
    let all = [
        pod("runs", json!({})),
        pod("done", phase("Succeeded")),
        pod("failed", phase("Failed")),
        pod("old", merged(phase("Failed"), counted())),
    ];
    check("new ends", job(json!({})), &all, None, "0/0 noted [done]/[failed] release [done failed]");
    let noted = json!({ "status": { "succeeded": 3, "failed": 1,
        "uncountedTerminatedPods": { "succeeded": ["done"], "failed": ["failed"] } } });
    let want = "3/1 noted [done]/[failed] release [done failed]";
    check("a crash before finalizers were removed", job(noted.clone()), &all, None, want);
    let released =
        [pod("done", merged(phase("Succeeded"), counted())), pod("failed", merged(phase("Failed"), counted()))];
    check("a crash after that", job(noted.clone()), &released, None, "4/2 noted []/[] release []");
    check("and they are gone", job(noted.clone()), &[], None, "4/2 noted []/[] release []");
    let half = [Arc::clone(&released[0]), Arc::clone(&all[2])];
    check("a crash in between", job(noted), &half, None, "4/1 noted []/[failed] release [failed]");
    let want = "0/0 noted [done]/[runs failed] release [runs done failed]";
    check("a Job that fails takes all with it", job(json!({})), &all, Some(verdict(Result_::Failed)), want);
    let want = "0/0 noted [done]/[failed] release [runs done failed]";
    check("a Job that completes does not", job(json!({})), &all, Some(verdict(Result_::Complete)), want);
    let want = "0/0 noted [done]/[failed] release [runs done failed]";
    check("a terminating Job releases all", job(terminating()), &all, None, want);
    let ignore = json!({ "spec": { "podFailurePolicy": { "rules": [
        { "action": "Ignore", "onPodConditions": [{ "type": "DisruptionTarget", "status": "True" }] }
    ] } } });
    let conditions = json!([{ "type": "DisruptionTarget", "status": "True" }]);
    let disrupted = [pod("a", json!({ "status": { "phase": "Failed", "conditions": conditions } }))];
    check("an ignored failure is released only", job(ignore), &disrupted, None, "0/0 noted []/[] release [a]");
}

#[test]
fn an_index_counts_once_however_many_pods_succeed_for_it() {
    let of = |name: &str, index: i32, more: Value| pod(name, merged(of_index(index), more));
    let check = |name: &str, more: Value, pods: &[Arc<PodView>], want: &str, indexes: &str| {
        let tracking = tracking(&indexed(more), pods, &progress(None));
        assert_eq!(suspension(&tracking), want, "{name}");
        assert_eq!(tracking.status.completed_indexes, indexes, "{name}");
    };
    let done = |name: &str, index: i32| of(name, index, phase("Succeeded"));
    check("new ends", json!({}), &[done("b", 2), done("a", 1)], "2/0 noted []/[] release [a b]", "1,2");
    check("two of one index", json!({}), &[done("a", 1), done("b", 1)], "1/0 noted []/[] release [a b]", "1");
    let before = json!({ "status": { "succeeded": 2, "completedIndexes": "1,2" } });
    check("counted before a crash", before.clone(), &[done("a", 1)], "2/0 noted []/[] release [a]", "1,2");
    check("out of range", json!({}), &[done("a", 9)], "0/0 noted []/[] release [a]", "");
    let failed = [of("a", 3, phase("Failed"))];
    check("a failure", before, &failed, "2/0 noted []/[a] release [a]", "1,2");
    let scaled = json!({ "spec": { "completions": 2, "parallelism": 2 }, "status": { "succeeded": 3, "completedIndexes": "0-2" } });
    check("it was scaled down", scaled, &[], "2/0 noted []/[] release []", "0,1");
}

#[test]
fn a_failed_pod_keeps_its_finalizer_until_its_index_has_another_one() {
    let job = indexed(json!({ "spec": { "backoffLimitPerIndex": 3, "backoffLimit": 1000 } }));
    let failed = pod("a", merged(of_index(1), exited(1, NOW)));
    let check =
        |pods: &[Arc<PodView>], want: &str| assert_eq!(suspension(&tracking(&job, pods, &progress(None))), want);
    check(std::slice::from_ref(&failed), "0/0 noted []/[] release []");
    check(&[failed, pod("b", of_index(1))], "0/0 noted []/[a] release [a]");
}

#[test]
fn one_pass_notes_a_bounded_number_of_pods() {
    let pods: Vec<_> = (0..UNCOUNTED_MAX + 20).map(|n| pod(&format!("p{n}"), phase("Failed"))).collect();
    let tracking = tracking(&job(json!({})), &pods, &progress(None));
    assert!(tracking.is_cut);
    assert_eq!(tracking.release.len(), UNCOUNTED_MAX);
    let uncounted = tracking.status.uncounted_terminated_pods.unwrap();
    assert_eq!(uncounted.failed.len(), UNCOUNTED_MAX);
}

#[test]
fn an_end_is_announced_and_declared_when_all_pods_are_counted_and_gone() {
    for (end, announced, declared) in
        [(Result_::Complete, "SuccessCriteriaMet", "Complete"), (Result_::Failed, "FailureTarget", "Failed")]
    {
        let verdict = verdict(end);
        let ends = Progress { active: 0, ..progress(Some(verdict.clone())) };
        let pods = [pod("a", phase("Succeeded"))];
        let first = tracking(&job(json!({})), &pods, &ends).status;
        let types: Vec<&str> = first.conditions.iter().map(|condition| &*condition.type_).collect();
        assert_eq!(types, [announced]);
        assert_eq!(finished(&first, &verdict, now()), None, "a pod is not counted yet");
        let settled = settle(&first, &std::collections::BTreeSet::new());
        assert_eq!(settled.succeeded, 1);
        let last = finished(&settled, &verdict, now()).unwrap();
        let types: Vec<&str> = last.conditions.iter().map(|condition| &*condition.type_).collect();
        assert_eq!(types, [announced, declared]);
        assert!(last.conditions.iter().all(|it| it.reason == "Reason" && it.message == "A message" && it.is_true()));
        assert_eq!(last.completion_time, (end == Result_::Complete).then_some(now()));
        let waits = steersman_model::batch::JobStatus { terminating: Some(1), ..settled };
        assert_eq!(finished(&waits, &verdict, now()), None, "a pod has not ended yet");
    }
}

#[test]
fn a_suspended_job_says_so_and_starts_anew_when_it_is_resumed() {
    let at_rest = json!({ "spec": { "suspend": true } });
    let first = tracking(&job(at_rest.clone()), &[], &progress(None));
    assert_eq!(first.suspension, Some(Suspension::Suspended));
    assert_eq!((&*first.status.conditions[0].type_, first.status.start_time), ("Suspended", None));
    let conditions = serde_json::to_value(&first.status.conditions).unwrap();
    let held = |spec: Value| job(merged(spec, json!({ "status": { "conditions": conditions, "startTime": null } })));
    assert_eq!(tracking(&held(at_rest), &[], &progress(None)).suspension, None);
    let resumed = tracking(&held(json!({})), &[], &progress(None));
    assert_eq!(resumed.suspension, Some(Suspension::Resumed));
    assert_eq!(resumed.status.start_time, Some(now()));
    assert!(!resumed.status.conditions[0].is_true());
    assert_eq!(tracking(&job(json!({})), &[], &progress(None)).suspension, None, "it never was suspended");
    let without_gate = Options { mutable_scheduling_directives: false, ..Options::default() };
    let tally = tally(&job(json!({})), &[], None);
    let kept = track(&job(json!({ "spec": { "suspend": true } })), &[], &tally, &progress(None), without_gate, now());
    assert_eq!(kept.status.start_time, Some(at("2026-11-15T11:00:00Z")));
}

/// Every order of crashes: the two writes of a pass are made or not, finalizers are removed or not, and the next pass starts
/// from what is left. In the end every pod is counted exactly once.
#[test]
fn whatever_is_lost_in_between_every_pod_is_counted_once() {
    for crashes in 0..81_u32 {
        let mut held = job(json!({ "spec": { "completions": 3, "parallelism": 3 } }));
        let mut pods = vec![pod("a", phase("Succeeded")), pod("b", phase("Failed")), pod("c", phase("Succeeded"))];
        let mut plan = crashes;
        let mut last = (0, 0);
        for _ in 0..6 {
            // Where this pass ends: before the first write, after it, after some finalizers, or not at all.
            let ends = plan % 3;
            plan /= 3;
            let ends = if plan == 0 && ends == 0 { 3 } else { ends };
            let tracking = tracking(&held, &pods, &progress(None));
            if ends == 0 {
                continue;
            }
            held.status = tracking.status;
            let kept = if ends == 1 { 1 } else { 0 };
            for released in tracking.release.iter().skip(kept) {
                let more = merged(phase(&released.status.phase), counted());
                let at = pods.iter().position(|pod| pod.meta().uid == released.meta().uid).unwrap();
                pods[at] = pod(&released.meta().name, more);
            }
            if ends == 3 {
                held.status = settle(&held.status, &tracked(&pods));
            }
            let now = (held.status.succeeded, held.status.failed);
            assert!(now.0 >= last.0 && now.1 >= last.1, "counters fall: {now:?} after {last:?}");
            last = now;
        }
        assert_eq!((held.status.succeeded, held.status.failed), (2, 1), "crashes {crashes}");
    }
}

//! How a Job ends, and which pods it has until then.

use super::*;
use crate::job::plan::{Plan, Step, Wanted, completed, plan};
use crate::job::tally::tally;
use crate::test_objects::now;

fn planned(job: &JobView, pods: &[Arc<PodView>]) -> Plan {
    let tally = tally(job, pods, Some(Record::default()));
    plan(job, pods, &tally, job.status.start_time, now())
}

#[test]
fn a_job_fails_for_one_reason() {
    let check = |name: &str, job: JobView, pods: &[Arc<PodView>], want: Option<&str>| {
        let verdict = planned(&job, pods).verdict;
        assert_eq!(verdict.as_ref().map(|verdict| &*verdict.reason), want, "{name}");
    };
    let spec = |spec: Value| json!({ "spec": spec });
    let failed = |count: usize| (0..count).map(|n| pod(&format!("p{n}"), phase("Failed"))).collect::<Vec<_>>();
    let limit = Some("BackoffLimitExceeded");
    check("as many failures as allowed", job(spec(json!({ "backoffLimit": 2 }))), &failed(2), None);
    check("one more", job(spec(json!({ "backoffLimit": 2 }))), &failed(3), limit);
    check("an absent limit is six", job(spec(json!({ "backoffLimit": null }))), &failed(7), limit);
    let status = json!({ "status": { "failed": 1, "uncountedTerminatedPods": { "failed": ["p0", "x"] } } });
    let counted = job(merged(spec(json!({ "backoffLimit": 2 })), status));
    check("counted, noted, and noted with its pod", counted, &failed(1), limit);
    let restarted = |count: i32| {
        let status = json!({ "containerStatuses": [{ "name": "main", "restartCount": count }] });
        [pod("a", json!({ "status": status }))]
    };
    let in_place = |limit: i32| {
        job(spec(json!({ "backoffLimit": limit, "template": { "spec": { "restartPolicy": "OnFailure" } } })))
    };
    check("restarts in place", in_place(3), &restarted(2), None);
    check("as many as the limit", in_place(3), &restarted(3), limit);
    check("no restart is allowed", in_place(0), &restarted(1), limit);
    check("no restart at all", in_place(0), &restarted(0), None);
    check("restarts do not count", job(spec(json!({ "backoffLimit": 1 }))), &restarted(9), None);
    let deadline = |seconds: i64| job(spec(json!({ "activeDeadlineSeconds": seconds })));
    check("in time", deadline(3601), &[], None);
    check("too late", deadline(3600), &[], Some("DeadlineExceeded"));
    let suspended = job(spec(json!({ "activeDeadlineSeconds": 60, "suspend": true })));
    check("time stands still", suspended, &[], None);
}

#[test]
fn an_index_fails_by_itself_and_enough_of_them_fail_the_job() {
    let check = |name: &str, more: Value, failed: &[(i32, i32)], want: Option<&str>| {
        let per_index = json!({ "spec": { "completions": 3, "backoffLimitPerIndex": 1, "backoffLimit": 1000 } });
        let job = indexed(merged(per_index, more));
        let pods: Vec<_> = failed
            .iter()
            .map(|(index, earlier)| {
                let count = json!({ "batch.kubernetes.io/job-index-failure-count": earlier.to_string() });
                let marks = merged(of_index(*index), json!({ "metadata": { "annotations": count } }));
                pod(&format!("p{index}"), merged(exited(1, "2026-11-15T11:30:00Z"), marks))
            })
            .collect();
        let verdict = planned(&job, &pods).verdict;
        assert_eq!(verdict.as_ref().map(|verdict| &*verdict.reason), want, "{name}");
    };
    check("the first failure of an index", json!({}), &[(0, 0), (1, 0), (2, 0)], None);
    check("one index has failed", json!({}), &[(0, 1)], None);
    check("all have", json!({}), &[(0, 1), (1, 1), (2, 1)], Some("FailedIndexes"));
    let done = json!({ "status": { "completedIndexes": "1,2" } });
    check("the others have succeeded", done, &[(0, 1)], Some("FailedIndexes"));
    let before = json!({ "status": { "failedIndexes": "0", "completedIndexes": "1" } });
    check("some failed before", before, &[(2, 1)], Some("FailedIndexes"));
    let max = json!({ "spec": { "maxFailedIndexes": 1 } });
    check("as many as allowed", max.clone(), &[(0, 1)], None);
    check("more than allowed", max, &[(0, 1), (1, 1)], Some("MaxFailedIndexesExceeded"));
}

#[test]
fn what_was_announced_comes_before_all_else() {
    let announced =
        |type_: &str| json!({ "status": { "conditions": [{ "type": type_, "status": "True", "reason": "R" }] } });
    let failing = json!({ "spec": { "backoffLimit": 0 } });
    let pods = [pod("a", phase("Failed"))];
    for (type_, end) in [("SuccessCriteriaMet", "Complete"), ("FailureTarget", "Failed")] {
        let verdict = planned(&job(merged(failing.clone(), announced(type_))), &pods).verdict.unwrap();
        assert_eq!((verdict.end.condition(), &*verdict.reason), (end, "R"));
    }
}

#[test]
fn a_job_is_complete_when_enough_have_succeeded_and_none_is_active() {
    let check = |name: &str, more: Value, active: i32, want: bool| {
        let job = job(more);
        let tally = tally(&job, &[], Some(Record::default()));
        assert_eq!(completed(&job, &tally, active).is_some(), want, "{name}");
    };
    let status = |succeeded: i32| json!({ "status": { "succeeded": succeeded } });
    let any = json!({ "spec": { "completions": null } });
    check("too few", status(4), 0, false);
    check("enough", status(5), 0, true);
    check("one is still active", status(5), 1, false);
    check("any success is enough", merged(any.clone(), status(1)), 0, true);
    check("others still run", merged(any.clone(), status(1)), 1, false);
    check("none has succeeded", merged(any, status(0)), 0, false);
    check("nothing to do", json!({ "spec": { "completions": 0 } }), 0, true);
}

#[test]
fn the_plan_makes_up_the_difference() {
    let check = |name: &str, more: Value, active: usize, want: &str| {
        let pods: Vec<_> = (0..active).map(|n| pod(&format!("p{n:04}"), json!({}))).collect();
        let got = match planned(&job(more), &pods).step {
            Step::Create { pods: Wanted::Any(count), .. } => format!("create {count}"),
            Step::Remove { pods, .. } => format!("remove {}", pods.len()),
            other => format!("{other:?}"),
        };
        assert_eq!(got, want, "{name}");
    };
    let spec = |spec: Value| json!({ "spec": spec });
    let succeeded = |count: i32| json!({ "status": { "succeeded": count } });
    check("none runs yet", json!({}), 0, "create 2");
    check("as many as may run", json!({}), 2, "Nothing");
    check("the last one", succeeded(4), 0, "create 1");
    check("no more than are missing", succeeded(4), 2, "remove 1");
    check("too many", json!({}), 4, "remove 2");
    check("very many", spec(json!({ "parallelism": 9000, "completions": 9000 })), 0, "create 500");
    check("very many too many", spec(json!({ "parallelism": 0 })), 600, "remove 500");
    check("any success is enough", spec(json!({ "completions": null })), 0, "create 2");
    let any = merged(spec(json!({ "completions": null })), succeeded(1));
    check("one has succeeded: what runs may end", any, 1, "Nothing");
    check("suspended", spec(json!({ "suspend": true })), 600, "remove 600");
    check("suspended, and idle", spec(json!({ "suspend": true })), 0, "Nothing");
    check("it is terminating", terminating(), 0, "Nothing");
}

#[test]
fn a_failed_pod_is_replaced_after_a_while() {
    let wait = |pods: &[Arc<PodView>], record: Option<Record>| {
        let job = job(json!({ "spec": { "parallelism": 1 } }));
        let tally = tally(&job, pods, record);
        let plan = plan(&job, pods, &tally, job.status.start_time, now());
        (plan.step == Step::Wait, plan.again_in.map(|wait| wait.as_secs()))
    };
    let fresh = Some(Record::default());
    let lately = exited(1, "2026-11-15T11:59:58Z");
    assert_eq!(wait(&[pod("a", lately.clone())], fresh), (true, Some(8)));
    assert_eq!(wait(&[pod("a", exited(1, "2026-11-15T11:59:50Z"))], fresh), (false, None));
    let again = Some(Record { failures: 2, last_failure: Some(at("2026-11-15T11:59:00Z")) });
    assert_eq!(wait(&[pod("a", lately.clone())], again), (true, Some(38)), "the third failure in a row");
    // After a restart, pods that were counted before show the failures before.
    let counted = merged(exited(1, "2026-11-15T11:59:00Z"), counted());
    let pods = [pod("a", counted.clone()), pod("b", counted), pod("c", lately)];
    assert_eq!(wait(&pods, None), (true, Some(38)));
    assert_eq!(wait(&pods, fresh), (true, Some(8)), "what is remembered counts");
}

#[test]
fn terminating_pods_hold_their_place_if_the_policy_says_so() {
    let pods = [pod("a", terminating()), pod("b", json!({}))];
    for (policy, want) in [("Failed", false), ("TerminatingOrFailed", true)] {
        let job = job(json!({ "spec": { "podReplacementPolicy": policy } }));
        // The terminating pod has failed under the other policy, a long time ago.
        let step = planned(&job, &pods).step;
        assert_eq!(step != Step::Nothing, want, "{policy}: {step:?}");
    }
}

#[test]
fn pods_are_created_for_the_first_indexes_that_need_one() {
    let check = |name: &str, job: &JobView, pods: &[Arc<PodView>], want: &[i32]| {
        let got = match planned(job, pods).step {
            Step::Create { pods: Wanted::Indexes(indexes), .. } => indexes.iter().map(|it| it.index).collect(),
            Step::Nothing | Step::Wait => Vec::new(),
            other => panic!("{other:?}"),
        };
        assert_eq!(got, want, "{name}");
    };
    let of = |name: &str, index: i32, more: Value| pod(name, merged(of_index(index), more));
    let three = json!({ "spec": { "parallelism": 3 } });
    check("all are free", &indexed(three.clone()), &[], &[0, 1, 2]);
    let done = merged(three.clone(), json!({ "status": { "completedIndexes": "0,2" } }));
    check("some have succeeded", &indexed(done.clone()), &[], &[1, 3, 4]);
    check("one is active", &indexed(done.clone()), &[of("a", 3, json!({}))], &[1, 4]);
    let just = [of("a", 1, exited(0, NOW))];
    check("one has succeeded just now", &indexed(done), &just, &[3, 4]);
    let terminating = [of("a", 0, terminating())];
    let strict = json!({ "spec": { "parallelism": 3, "podReplacementPolicy": "Failed" } });
    check("one holds its place", &indexed(strict), &terminating, &[1, 2]);
    let many =
        json!({ "spec": { "completions": 100_000, "parallelism": 3 }, "status": { "completedIndexes": "0-99997" } });
    check("the last of very many", &indexed(many), &[], &[99998, 99999]);
}

#[test]
fn an_index_that_failed_waits_for_itself_and_carries_its_failures_on() {
    let job = |rules: Value| {
        indexed(json!({ "spec": {
            "parallelism": 3, "completions": 3, "backoffLimitPerIndex": 5, "backoffLimit": 1000,
            "podFailurePolicy": { "rules": rules },
        } }))
    };
    let failed = |index: i32, failures: i32, ignored: i32, time: &str| {
        let marks = json!({ "metadata": { "annotations": {
            "batch.kubernetes.io/job-index-failure-count": failures.to_string(),
            "batch.kubernetes.io/job-index-ignored-failure-count": ignored.to_string(),
        } } });
        pod(&format!("p{index}"), merged(merged(exited(7, time), of_index(index)), marks))
    };
    let pods = [failed(0, 1, 1, "2026-11-15T11:30:00Z"), failed(1, 1, 0, "2026-11-15T11:59:50Z")];
    let check = |rules: Value, counts: (i32, i32)| {
        let plan = planned(&job(rules), &pods);
        let Step::Create { pods: Wanted::Indexes(indexes), .. } = plan.step else { panic!("{plan:?}") };
        let got: Vec<_> = indexes.iter().map(|it| (it.index, it.failures, it.ignored)).collect();
        assert_eq!(got, [(0, counts.0, counts.1), (2, 0, 0)]);
        // The second failure of index 1 waits for 20 seconds, 10 of which are over.
        assert_eq!(plan.again_in, Some(Duration::from_secs(10)));
    };
    check(json!([]), (2, 1));
    let ignored = json!([{ "action": "Ignore", "onExitCodes": { "operator": "In", "values": [7] } }]);
    check(ignored, (1, 2));
}

#[test]
fn surplus_pods_go_by_index_first_then_by_use() {
    let check = |name: &str, job: &JobView, pods: &[Arc<PodView>], want: &[&str]| {
        let Step::Remove { pods, .. } = planned(job, pods).step else { panic!("{name}: nothing is removed") };
        let mut got: Vec<&str> = pods.iter().map(|pod| &*pod.meta().name).collect();
        got.sort_unstable();
        assert_eq!(got, want, "{name}");
    };
    let of = |name: &str, index: i32, more: Value| pod(name, merged(of_index(index), more));
    let pending = || merged(phase("Pending"), json!({ "spec": { "nodeName": "" } }));
    let pods = [of("a", 0, json!({})), of("b", 0, pending()), of("c", 7, json!({})), pod("d", json!({}))];
    check("twice, out of range, without one", &indexed(json!({})), &pods, &["b", "c", "d"]);
    let one = json!({ "spec": { "parallelism": 1 } });
    check("the unscheduled one", &indexed(one.clone()), &[of("a", 0, json!({})), of("b", 1, pending())], &["b"]);
    let created = |time: &str| json!({ "metadata": { "creationTimestamp": time } });
    let ages = [pod("old", created("2026-11-15T10:00:00Z")), pod("new", created("2026-11-15T11:59:00Z"))];
    check("the younger one", &job(one), &ages, &["new"]);
}

/// A pod is never created for an index that has succeeded, nor is a running one of it kept from ending.
#[test]
fn no_index_that_has_succeeded_gets_a_pod() {
    for seed in 0..200_u32 {
        let bits =
            |shift: u32| (0..8).filter(move |index| (seed.wrapping_mul(2_654_435_761) >> (shift + index)) & 1 == 1);
        let completed = bits(0).map(|index| index.to_string()).collect::<Vec<_>>().join(",");
        let pods: Vec<_> = bits(12)
            .map(|index| {
                let index = i32::try_from(index).unwrap();
                let state = if index % 2 == 0 { exited(0, NOW) } else { json!({}) };
                pod(&format!("p{index}"), merged(of_index(index), state))
            })
            .collect();
        let spec = json!({ "completions": 8, "parallelism": 8 });
        let job = indexed(json!({ "spec": spec, "status": { "completedIndexes": completed } }));
        let before = Indexes::parse(&completed, 8);
        if let Step::Create { pods: Wanted::Indexes(new), .. } = planned(&job, &pods).step {
            for it in new {
                assert!(!before.contains(it.index), "index {} of {completed}", it.index);
                assert!(pods.iter().all(|pod| *pod.meta().name != *format!("p{}", it.index)), "index {}", it.index);
            }
        }
    }
}
